"""T of E eq. 6, chosen on validation, and the figures that are told of it.

T is the lowest place at which at most `MOST_PASSING` of every kind of negatives pass (cos > T). So it is the score of a
negative: of n negatives of a kind the k highest may pass, k the whole part of n / 20, and T is at least the next one,
the highest of those over all kinds. What scores as much as T does not pass. Of fewer than twenty negatives of a kind
none may. Where the balanced accuracy would be higher at a lower T, that one is not taken: what passes is paid for, and
a policy looks for it. E says that T is chosen on validation, and not how: it is ours.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
MOST_PASSING = 0.05  # of the negatives of a kind: ours


class Threshold(NamedTuple):
    """T, and what passes it: the share of positives and of each kind of negatives, and the balanced accuracy, of which
    kinds are equal parts. Of each kind also how often a positive scores higher (AUC, a tie is half).
    """

    value: float
    balanced_accuracy: float
    positives: float
    passes: dict[str, float]
    auc: dict[str, float]


def choose_threshold(positives: Scores, negatives: Mapping[str, Scores]) -> Threshold:
    """T for cosines of positives and of each kind of negatives.

    Raises ValueError where either is missing, and FloatingPointError for cosines that are no finite numbers.
    """
    every = np.concatenate([positives, *negatives.values()])
    if lost := int((~np.isfinite(every)).sum()):
        raise FloatingPointError(f"of {len(every):,} cosines {lost:,} are NaN or infinite: no threshold parts them")
    kinds = {kind: np.sort(scores) for kind, scores in negatives.items() if len(scores)}
    if not len(positives) or not kinds:
        raise ValueError("a threshold stands between positives and negatives, and there are none")
    value = float(max(-1.0, *(_least(one) for one in kinds.values())))
    passes = {kind: float((one > value).mean()) for kind, one in kinds.items()}
    passing = float((positives > value).mean())
    accuracy = (passing + 1 - sum(passes.values()) / len(passes)) / 2
    return Threshold(value, accuracy, passing, passes, {kind: auc(positives, one) for kind, one in kinds.items()})


def auc(positives: Scores, negatives: Scores) -> float:
    """How often a positive scores higher than a negative; a tie counts half."""
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, "left").sum()
    not_above = np.searchsorted(ordered, positives, "right").sum()
    return float((below + not_above) / 2 / (len(positives) * len(negatives)))


def _least(ordered: Scores) -> float:
    """The lowest of a kind's sorted scores that no more than `MOST_PASSING` of them are above."""
    may_pass = int(MOST_PASSING * len(ordered) + 1e-9)  # a twentieth of 20 is 1
    return float(ordered[-1 - may_pass])
