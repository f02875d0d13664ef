"""How many clusters there are: the elbow of the sum of squared errors (C, "Personality-based Conversation Rewriting").

C names the elbow and not how it was found. Ours: of the curve on logarithmic axes, both, the point that kneed
(Satopää et al. 2011) sees furthest below the chord. The errors of a cloud without clusters fall as a power of K, which
is a straight line there; on plain axes the first splits dwarf the others, and six clusters are seen as two or three.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]

# How far below the chord the elbow must lie, both axes scaled to 1. Ours. Measured on 240 standardised points in four
# dimensions: .08 to .38 where the centres of 2, 3, 4, 6 or 8 clusters (sd .05) lie .35 apart (8: .3), .00 to .01 in a
# single cloud.
LEAST_HEIGHT = 0.06

# Starts of each k-means; the best is kept. Ours.
_STARTS = 10
# Where each point has a cluster of its own the error is 0, and has no logarithm: this share of the first stands for it.
_LEAST_SHARE = 1e-12


def sse_curve(vectors: Vectors, most: int, seed: int) -> list[float]:
    """The sum of squared errors of k-means for K = 1, 2, … clusters.

    Args:
        vectors: One row a profile, `[n, d]`, n ≥ 1.
        most: The greatest K. The curve ends before it where there are fewer than K + 1 different rows.
        seed: Of k-means.
    """
    ks = range(1, most_clusters(vectors, most) + 1)
    return [float(k_means(vectors, k, seed)[1]) for k in ks]


def most_clusters(vectors: Vectors, most: int) -> int:
    """`most`, or as many clusters as leave one of them more than one different row; at least 1."""
    return max(1, min(most, len(np.unique(vectors, axis=0)) - 1))


def elbow(curve: Sequence[float]) -> int | None:
    """The K at which the curve bends, or None where it shows no elbow.

    Args:
        curve: The sum of squared errors for K = 1, 2, …
    """
    if len(curve) < 3 or curve[0] <= 0:
        return None
    from kneed import KneeLocator

    errors = np.log(np.maximum(curve, _LEAST_SHARE * curve[0]))
    if errors.min() == errors.max():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kneed warns where its own rule, the first bend, finds none
        below = KneeLocator(np.log(np.arange(1, len(curve) + 1)), errors, curve="convex", direction="decreasing")
    found = int(below.y_difference.argmax())
    return found + 1 if below.y_difference[found] >= LEAST_HEIGHT else None


def k_means(vectors: Vectors, k: int, seed: int) -> tuple[Vectors, float]:
    """The centres, `[k, d]`, and the sum of squared errors.

    On one thread: several would add up in the order in which they finish, and the last digits would hang on that.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        fitted = KMeans(n_clusters=k, n_init=_STARTS, random_state=seed).fit(vectors)
    return np.asarray(fitted.cluster_centers_, np.float64), float(fitted.inertia_)
