"""What crawls keep beside the tables: raw pages, journals, posts seen; and the list of what is never fetched."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipelines.core.files import held, write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy
from pipelines.operations.erase.rows import ErasedIds

_NOTES = ("items.jsonl", "seen.jsonl", "seen-before.jsonl")


@contextmanager
def no_crawl(home: Path) -> Iterator[None]:
    """Keeps crawls, collections and imports away while the block lasts. Raises Busy where a crawl is at work."""
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


def add_takedown(home: Path, posts: Iterable[str]) -> None:
    """Posts of sites (`source:source_id`) are never fetched from here on."""
    path = Home(home).takedown
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    new = sorted(set(posts) - set(there))
    if new:
        write_whole(path, "".join(f"{line}\n" for line in [*there, *new]).encode())


def clean_crawls(home: Path, erased: ErasedIds) -> int:
    """Removes what is erased from the folders of crawls; how many lines and pages' files that was.

    Of a source that something is erased from, all raw pages go: in a page of any charset and layout nobody can tell
    what belongs to whom, and what is still needed is fetched again.
    """
    count = 0
    for source in sorted(Home(home).crawl.glob("*/")):
        if not any(name.startswith(f"{source.name}:") for name in erased.ids):
            continue
        for path in sorted(source.rglob("*")):
            if path.name in _NOTES:
                count += _clean_notes(path, source.name, erased)
            elif path.name.startswith("pages.sqlite"):
                path.unlink()
                count += 1
            elif path.suffix == ".part":  # left by a process that was killed as it wrote one
                path.unlink()
            elif path.name == "unknown" and path.is_dir():
                shutil.rmtree(path)
                count += 1
    return count


def _clean_notes(path: Path, source: str, erased: ErasedIds) -> int:
    """Removes lines of erased posts from a file of JSON lines, and erased answers from the others."""
    changed = 0
    left = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            row = json.loads(line)
        except ValueError:
            changed += 1  # half a line of a killed crawl: its post is fetched again
            continue
        answers = [answer for answer in row.get("answers", []) if answer["answer_id"] not in erased]
        if f"{source}:{row['source_id']}" in erased:
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
