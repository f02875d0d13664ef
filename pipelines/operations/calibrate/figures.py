"""Figures of a calibration: what was counted, shares with their intervals, agreement of readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.core import agreement
from pipelines.core.estimates import Estimate, wilson


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
    ratings = [[int(reading.get(name, agreement.MISSING)) for name in names] for reading in readings]
    return agreement.mean_kappa(np.array(ratings, np.int64).reshape(len(readings), len(names)))
