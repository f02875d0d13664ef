"""T of E eq. 6, chosen on validation, and the figures that are told of it.

T is where the balanced accuracy is highest: the mean of the share of positives that pass (cos > T) and of the share of
negatives that do not; E's kinds of negatives weigh the same, however many there are of each. Where several places are
equally good, T is in the middle of the widest of them, and of two as wide, of the higher. E says nothing of all this:
it is ours.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


class Threshold(NamedTuple):
    """T, and what passes it: the balanced accuracy, the share of positives and of each kind of negatives that pass, and
    of each kind how often a positive scores higher (AUC, a tie is half).
    """

    value: float
    balanced_accuracy: float
    positives: float
    passes: dict[str, float]
    auc: dict[str, float]


def threshold(positives: Scores, negatives: Mapping[str, Scores]) -> Threshold:
    """T for cosines of positives and of each kind of negatives. Raises ValueError where either is missing."""
    kinds = {kind: np.sort(scores) for kind, scores in negatives.items() if len(scores)}
    if not len(positives) or not kinds:
        raise ValueError("a threshold stands between positives and negatives, and there are none")
    positives = np.sort(positives)
    scores = np.unique(np.concatenate([positives, *kinds.values()]))
    edges = np.concatenate([[max(-1.0, scores[0] - 1e-3)], scores, [min(1.0, scores[-1] + 1e-3)]])
    middles = (edges[:-1] + edges[1:]) / 2
    right = sum(1 - _pass(one, middles) for one in kinds.values()) / len(kinds)
    accuracy = (_pass(positives, middles) + right) / 2
    best = np.flatnonzero(accuracy >= accuracy.max() - 1e-12)
    width = (edges[1:] - edges[:-1])[best]
    value = float(middles[best[np.flatnonzero(width >= width.max() - 1e-12)[-1]]])
    at = np.array([value])
    passes = {kind: float(_pass(one, at)[0]) for kind, one in kinds.items()}
    passing = float(_pass(positives, at)[0])
    accurate = (passing + 1 - sum(passes.values()) / len(passes)) / 2
    return Threshold(value, accurate, passing, passes, {kind: auc(positives, one) for kind, one in kinds.items()})


def auc(positives: Scores, negatives: Scores) -> float:
    """How often a positive scores higher than a negative; a tie counts half."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, "left").sum()
    not_above = np.searchsorted(ordered, positives, "right").sum()
    return float((below + not_above) / 2 / (len(positives) * len(negatives)))


def _pass(ordered: Scores, at: Scores) -> Scores:
    """The share of sorted scores above each place of `at`."""
    share: Scores = 1 - np.searchsorted(ordered, at, "right") / len(ordered)
    return share
