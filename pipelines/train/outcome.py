"""What a run leaves behind beside its model: its rollouts as a table, alarms, and its page. Also where it failed."""

from pathlib import Path
from typing import NamedTuple

from pipelines.store import Store, Version
from pipelines.train import page
from pipelines.train.alarms import Alarm, Curve, alarms, terms
from pipelines.train.processes import no_erasure
from pipelines.train.rollouts import TABLE, write
from pipelines.train.runs import metrics
from schemas.training import Rollouts


class Outcome(NamedTuple):
    """The rollouts of a run (None where it made none), the mean of every term of the reward by step, what to look at,
    and where its page lies.
    """

    rollouts: Version | None
    terms: dict[str, Curve]
    alarms: list[Alarm]
    page: Path


def tell(store: Store, run: Path) -> Outcome:
    """Keep and tell what the folder of a run says. Raises Busy where somebody erases, and what the store raises."""
    with no_erasure(run.parents[1]):
        version = write(store, run)
        rows = Rollouts.create_empty() if version is None else store.read(TABLE, version.version, run.name).collect()
        found = alarms(rows, metrics(run))
        return Outcome(version, terms(rows), found, page.write(run, rows, found))
