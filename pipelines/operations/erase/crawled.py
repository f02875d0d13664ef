"""What crawls keep beside the tables: raw pages, journals, what lists showed; and the list of what is never fetched."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.files import held, write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy
from pipelines.operations.erase.lineage import Gone

# Of a line of a journal: which post it is, and all that somebody wrote in it.
_SAID = dict.fromkeys(("post_id", "url", "title", "description", "topic", "author"), pl.String)
_ANSWER = dict.fromkeys(("answer_id", "author", "text"), pl.String)
_NOTES = ("items.jsonl", "seen.jsonl", "seen-before.jsonl")


@contextmanager
def no_crawl(home: Path) -> Iterator[None]:
    """No crawl is at work, and nobody collects or imports, as long as the block lasts. Raises Busy where one is."""
    with ExitStack() as stack:
        for lock in sorted(Home(home).crawl.glob("*/*/*/.lock")):
            try:
                stack.enter_context(held(lock, wait=False))
            except BlockingIOError as error:
                raise Busy(
                    "a crawl is at work", where=lock.parent, hint="wait for it, or end it: it goes on where it was"
                ) from error
        for source in sorted(Home(home).crawl.glob("*/")):
            stack.enter_context(Home(home).lock(f"crawl-{source.name}"))
        stack.enter_context(Home(home).lock("incoming"))
        yield


def take_down(home: Path, posts: Iterable[str]) -> None:
    """Posts of sites (`source:source_id`) are never fetched from here on."""
    path = Home(home).takedown
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    new = sorted(set(posts) - set(there))
    if new:
        write_whole(path, "".join(f"{line}\n" for line in [*there, *new]).encode())


def journals(home: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Where each journal is, and the posts in it: of crawls that nobody has collected they stand in no table yet.

    A line that a killed crawl left unfinished is no post; nor is one that is damaged.
    """
    for path in sorted(Home(home).crawl.glob("*/*/*/items.jsonl")):
        posts = [post for line in path.read_bytes().splitlines() if (post := _post(line))]
        yield str(path.relative_to(home)), pl.DataFrame(posts, schema=_SAID | {"answers": pl.List(pl.Struct(_ANSWER))})


def _post(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode("utf-8", "replace"))
        answers = [{name: answer.get(name) for name in _ANSWER} for answer in row.get("answers", [])]
        return {name: row.get(name) for name in _SAID} | {"post_id": row["post_id"], "answers": answers}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def clean(home: Path, gone: Gone) -> int:
    """Rids the folders of crawls of what is gone; how many lines and pages' files that was.

    Raw pages go all, of the sources that something is gone from: in a page of any charset and layout nobody can tell
    what belongs to whom, and what is still needed is fetched again.
    """
    found = 0
    for source in sorted(Home(home).crawl.glob("*/")):
        if not any(name.startswith(f"{source.name}:") for name in gone.ids):
            continue
        for path in sorted(source.rglob("*")):
            if path.name in _NOTES:
                found += _clean_notes(path, source.name, gone)
            elif path.name.startswith("pages.sqlite"):
                path.unlink()
                found += 1
            elif path.suffix == ".part":  # of whoever was killed as it wrote one of them
                path.unlink()
            elif path.name == "unknown" and path.is_dir():
                shutil.rmtree(path)
                found += 1
    return found


def _clean_notes(path: Path, source: str, gone: Gone) -> int:
    """Takes lines of posts that are gone out of a file of JSON lines, and answers that are gone out of the others."""
    changed = 0
    left = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            row = json.loads(line)
        except ValueError:
            changed += 1  # half a line, of a crawl that was killed: its post is fetched again
            continue
        answers = [one for one in row.get("answers", []) if one["answer_id"] not in gone]
        if f"{source}:{row['source_id']}" in gone:
            changed += 1
        elif len(answers) < len(row.get("answers", [])):
            changed += 1
            shorter = json.dumps({**row, "answers": answers}, ensure_ascii=False, separators=(",", ":"))
            left.append(shorter.encode("utf-8", "surrogatepass") + b"\n")
        else:
            left.append(line)
    if changed:
        times = path.stat()
        write_whole(path, b"".join(left))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # how old raw pages are counts from it
    return changed
