"""Runs of training (`pipelines.train.runs`): traces leave their files, and runs that have learnt from them are named.

Nothing takes a text out of weights, nor out of a tokenizer that was trained on it. So the receipt names the runs on a
release that held it, and those that started from such a model or asked it; their owner removes the models.
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
from pipelines.operations.erase.places import erase_from_file, run_data
from pipelines.operations.erase.rows import RowFilter
from pipelines.operations.erase.scrub import Scrub
from pipelines.train.runs import CACHE, DATA, LOCK, PAGE, ROLLOUTS, SCORED, learnt_releases, list_runs
from schemas.tables import TABLES


@contextmanager
def no_training(home: Path) -> Iterator[None]:
    """Keeps runs of training from going on or beginning. Raises Busy where one is at work."""
    with ExitStack() as stack:
        try:
            stack.enter_context(Home(home).lock("training", wait=False))
        except BlockingIOError as error:
            where = next(filter(_is_held, list_runs(home)), Home(home).training)
            raise Busy("a run is training", where=where, hint="wait for it, or end it") from error
        yield


def _is_held(run: Path) -> bool:
    try:
        with held(run / LOCK, wait=False):
            return False
    except BlockingIOError:
        return True


def erase_from_runs(home: Path, row_filter: RowFilter, scrub: Scrub) -> int:
    """Removes rows, rollouts, logs and pages of runs, the caches of killed runs and half-written files; how many files
    had some, or were removed.
    """
    count = 0
    for table in TABLES:
        for path in run_data(home, table):
            before = path.read_bytes()
            erase_from_file(path, table, row_filter)
            count += path.read_bytes() != before
    for run in list_runs(home):
        count += _erase_outputs(run, scrub)
        count += sum(scrub_file(log, scrub) for log in (*sorted(run.glob("log-*.txt")), *(run / SCORED).glob("*.txt")))
        count += _remove_page(run / PAGE, scrub)
        cached = sum(path.is_file() for path in (run / CACHE).rglob("*"))
        shutil.rmtree(run / CACHE, ignore_errors=True)  # the next start copies the rows that are left again
        parts = [path for path in (*run.glob("*.part"), *run.glob(f"{DATA}/*.part")) if path.is_file()]
        for path in parts:
            path.unlink()
        count += cached + len(parts)
    return count


def _erase_outputs(run: Path, scrub: Scrub) -> int:
    """Removes the lines with a trace from outputs and scores, with all of the same prompt; how many files had any."""
    files = [*sorted((run / ROLLOUTS).glob("*.jsonl")), *sorted((run / SCORED).glob("*.jsonl"))]
    lines = {path: list(_lines(path)) for path in files}
    traced = {line for content in lines.values() for line in content if scrub(line) != line}
    groups = {group for line in traced if (group := _group(line))}
    count = 0
    for path, content in lines.items():
        left = [line for line in content if line not in traced and _group(line) not in groups]
        if len(left) < len(content):
            count += 1
            write_whole(path, "".join(left).encode("utf-8", "surrogateescape"))
    return count


def _lines(path: Path) -> Iterator[str]:
    return (line.decode("utf-8", "surrogateescape") for line in path.read_bytes().splitlines(keepends=True))


def _group(line: str) -> str | None:
    """The group of an output; None for half a line of a killed process."""
    try:
        return str(json.loads(line)["uid"]).partition("_")[0]
    except (ValueError, KeyError, TypeError):
        return None


def _remove_page(page: Path, scrub: Scrub) -> bool:
    """Removes a page with a trace: the command that trained makes it again."""
    if not page.exists():
        return False
    shown = html.unescape(page.read_text(encoding="utf-8"))
    if scrub(shown) == shown:
        return False
    page.unlink()
    return True


def learnt(home: Path, releases: Collection[str]) -> list[str]:
    """The runs that learnt on one of these releases, or from or by a model of such a run; relative to the home."""
    return [str(run.relative_to(home)) for run in list_runs(home) if not set(releases).isdisjoint(learnt_releases(run))]
