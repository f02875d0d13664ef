"""Figures of a calibration: what was counted, shares with their intervals, agreement of readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pipelines.core.estimates import Estimate, wilson
from pipelines.operations.paper_tables import kappa


@dataclass(frozen=True, slots=True)
class Figures:
    """What was counted of one kind; the fields are columns of `schemas.calibrations.Calibrations`."""

    stage: str
    kind: str
    posts: int
    labelled: int
    found: int
    right: int
    missed: int
    wrongly_changed: int | None = None
    kappa: float | None = None
    readers: int = 1
    auc: float | None = None

    @property
    def precision(self) -> Estimate | None:
        """The share of what was found that is labelled."""
        return wilson(self.right, self.found)

    @property
    def recall(self) -> Estimate | None:
        """The share of what is labelled that was found."""
        return wilson(self.labelled - self.missed, self.labelled)


def mean_kappa(readings: Sequence[Mapping[str, bool]]) -> float | None:
    """Cohen's kappa of each two readers, in the mean (Light 1971).

    Args:
        readings: Of each post what each of its readers says, by their names.

    Returns None where no two readers have read the same posts, or where it is defined of no two.
    """
    names = sorted({name for reading in readings for name in reading})
    kappas = [
        kappa([(str(one[first]), str(one[second])) for one in readings if first in one and second in one])
        for first, second in combinations(names, 2)
    ]
    defined = [one for one in kappas if one is not None]
    return sum(defined) / len(defined) if defined else None
