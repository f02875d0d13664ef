"""Figures of a calibration: shares with their intervals, agreement of readers, the area under a curve."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import polars as pl

from pipelines.core import agreement

_Z = 1.959963984540054  # of the normal distribution 95 % lie within so many standard deviations


class Estimate(NamedTuple):
    """A share, and the bounds of its interval."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Estimate | None:
    """A share with its 95 % interval (Wilson 1927), as if each of the things that are counted were drawn by itself;
    None of nothing.
    """
    if not of:
        return None
    share, spread = hits / of, _Z**2 / of
    centre, half = share + spread / 2, _Z * sqrt(share * (1 - share) / of + spread / (4 * of))
    return Estimate(share, max(0.0, (centre - half) / (1 + spread)), min(1.0, (centre + half) / (1 + spread)))


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


def auc(scores: Sequence[float], positive: Collection[int]) -> float | None:
    """How often one of the `positive` places has a higher score than one of the others, a tie counting half."""
    n_positive, n_negative = len(positive), len(scores) - len(positive)
    if not n_positive or not n_negative:
        return None
    ranks = pl.Series(scores, dtype=pl.Float64).rank("average")
    above = sum(ranks[place] for place in positive) - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))
