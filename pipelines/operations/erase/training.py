"""Runs of training (`pipelines.train.runs`): what they wrote down is rid of it, what they have learnt is told.

No rule takes a text out of weights, nor out of a tokenizer that was trained on it. So a run on a release that held it
is named, with those that started from its model or asked it, and whoever has their models removes them.
"""

import html
import json
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipelines.core.files import held, write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy
from pipelines.operations.erase.databases import scrub_file
from pipelines.operations.erase.places import rows_of_runs
from pipelines.operations.erase.releases import erase_from_shard
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.sieve import Sieve
from pipelines.train.runs import CACHE, DATA, LOCK, PAGE, ROLLOUTS, SCORED, learnt_of, runs
from schemas.tables import TABLES


@contextmanager
def no_training(home: Path) -> Iterator[None]:
    """No run trains meanwhile, nor begins to. Raises Busy where one does."""
    with ExitStack() as stack:
        try:
            stack.enter_context(Home(home).lock("training", wait=False))
        except BlockingIOError as error:
            where = next(filter(_is_held, runs(home)), Home(home).training)
            raise Busy("a run is training", where=where, hint="wait for it, or end it") from error
        yield


def _is_held(run: Path) -> bool:
    try:
        with held(run / LOCK, wait=False):
            return False
    except BlockingIOError:
        return True


def erase_from_runs(home: Path, sieve: Sieve, scrub: Scrub) -> int:
    """Rids rows, rollouts, logs and pages of runs, and removes the caches of those that were killed, and what they had
    half written; how many files had some, or were removed.
    """
    found = 0
    for table in TABLES:
        for path in rows_of_runs(home, table):
            before = path.read_bytes()
            erase_from_shard(path, table, sieve)
            found += path.read_bytes() != before
    for run in runs(home):
        found += _erase_outputs(run, scrub)
        found += sum(scrub_file(log, scrub) for log in (*sorted(run.glob("log-*.txt")), *(run / SCORED).glob("*.txt")))
        found += _remove_page(run / PAGE, scrub)
        found += _remove_cache(run / CACHE)
        for part in (*run.glob("*.part"), *run.glob(f"{DATA}/*.part")):
            if part.is_file():
                part.unlink()
                found += 1
    return found


def _erase_outputs(run: Path, scrub: Scrub) -> int:
    """Takes the lines that hold some of it out of the outputs and of what was scored, with all that was written to the
    same prompt: how many files had some.
    """
    files = [*sorted((run / ROLLOUTS).glob("*.jsonl")), *sorted((run / SCORED).glob("*.jsonl"))]
    lines = {path: list(_lines(path)) for path in files}
    traced = {line for told in lines.values() for line in told if scrub(line) != line}
    groups = {group for line in traced if (group := _group(line))}
    found = 0
    for path, told in lines.items():
        left = [line for line in told if line not in traced and _group(line) not in groups]
        if len(left) < len(told):
            found += 1
            write_whole(path, "".join(left).encode("utf-8", "surrogateescape"))
    return found


def _lines(path: Path) -> Iterator[str]:
    return (line.decode("utf-8", "surrogateescape") for line in path.read_bytes().splitlines(keepends=True))


def _group(line: str) -> str | None:
    """The group of an output; None of half a line, that a process which was killed has left."""
    try:
        return str(json.loads(line)["uid"]).partition("_")[0]
    except (ValueError, KeyError, TypeError):
        return None


def _remove_page(page: Path, scrub: Scrub) -> bool:
    """Removes a page that shows some of it: the command that trained makes it again."""
    if not page.exists():
        return False
    shown = html.unescape(page.read_text(encoding="utf-8"))
    if scrub(shown) == shown:
        return False
    page.unlink()
    return True


def _remove_cache(cache: Path) -> int:
    """Removes rows that a run has copied for itself, whosever they are: the next start copies them again."""
    if not cache.is_dir():
        return 0
    files = sum(path.is_file() for path in cache.rglob("*"))
    shutil.rmtree(cache)
    return files


def learnt(home: Path, releases: Collection[str]) -> list[str]:
    """The runs that have learnt of any of these releases, relative to the home: on one, or from a model of such a run,
    or rewarded by one.
    """
    return [str(run.relative_to(home)) for run in runs(home) if not set(releases).isdisjoint(learnt_of(run))]
