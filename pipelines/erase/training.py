"""Runs of training (`pipelines.train.runs`): what they wrote down is rid of traces, what they have learnt is told.

No rule takes a text out of weights, nor out of a tokenizer that was trained on it. So a run on a release that held it
is named, and whoever has its models removes them.
"""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipelines.erase.databases import scrub_file, scrub_folder
from pipelines.erase.scrub import Scrub
from pipelines.errors import Busy
from pipelines.locks import held
from pipelines.train.runs import LOCK, ROLLOUTS, SCORED, note, runs


@contextmanager
def no_training(home: Path) -> Iterator[None]:
    """No run trains meanwhile. Raises Busy where one does."""
    with ExitStack() as stack:
        for run in runs(home):
            try:
                stack.enter_context(held(run / LOCK, wait=False))
            except BlockingIOError as error:
                raise Busy("a run is training", where=run, remedy="wait for it, or end it") from error
        yield


def scrub_runs(home: Path, scrub: Scrub) -> int:
    """Rids rollouts and logs of traces; how many files had some."""
    return sum(
        scrub_folder(run / ROLLOUTS, scrub)
        + scrub_folder(run / SCORED, scrub)
        + sum(scrub_file(log, scrub) for log in sorted(run.glob("log-*.txt")))
        for run in runs(home)
    )


def learnt(home: Path, releases: Collection[str]) -> list[str]:
    """The runs on any of these releases, relative to the home."""
    return [str(run.relative_to(home)) for run in runs(home) if note(run)["release"]["name"] in releases]
