"""Clusters of vectors: k-means, with K at the elbow of the sum of squared errors (C, "Personality-based Conversation
Rewriting").

C names the elbow and not how it was found. Ours: of the curve on logarithmic axes, both, the point that kneed
(Satopää et al. 2011) sees furthest below the chord. The errors of a cloud without clusters fall as a power of K, which
is a straight line there; on plain axes the first splits dwarf the others, and six clusters are seen as two or three.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# How far below the chord the elbow must lie, both axes scaled to 1. Ours. Measured on 240 standardised points in four
# dimensions: .08 to .38 where the centres of 2, 3, 4, 6 or 8 clusters (sd .05) lie .35 apart (8: .3), .00 to .01 in a
# single cloud.
_LEAST_HEIGHT = 0.06
# Where each point is its own cluster the error is 0, and has no logarithm: this share of the first stands for it.
_LEAST_SHARE = 1e-12
# Starts of each k-means; the best is kept. Ours.
_STARTS = 10

# Where the curve shows no elbow: a cluster a trait, and ten profiles or more for each to draw from. Ours.
_WITHOUT_ELBOW = 4
_LEAST_EACH = 10
# An elbow that parts off a single profile is that profile's, and nobody could be drawn for it. Ours.
_LEAST_TO_DRAW = 2
# What is kept of each number, in digits: the last ones differ from one processor to another.
DIGITS = 9


@dataclass(frozen=True, slots=True)
class Clusters:
    """Centres, `[k, d]`, the largest cluster first; and the curve that K was read off, with whether it had an elbow."""

    centres: Vectors
    curve: list[float]
    elbow: bool


def cluster(vectors: Vectors, most: int, seed: int) -> Clusters:
    """k-means with the K of the elbow, or without one 4, no more than a tenth of the vectors, and at least 1.

    An elbow that leaves a cluster of one vector is none. Clusters are numbered by size, then by centre, so that no
    number hangs on how k-means began.

    Args:
        vectors: `[n, d]`, n ≥ 1, in an order that hangs on nothing else.
        most: The greatest K.
        seed: Of k-means.
    """
    curve = sse_curve(vectors, most, seed)
    k = elbow(curve)
    default = max(1, min(_WITHOUT_ELBOW, len(vectors) // _LEAST_EACH, len(curve)))
    centres, sizes = _fitted(vectors, k or default, seed)
    if k and sizes.min() < _LEAST_TO_DRAW:
        k, (centres, _) = None, _fitted(vectors, default, seed)
    return Clusters(centres, [round(error, DIGITS) for error in curve], k is not None)


def sse_curve(vectors: Vectors, most: int, seed: int) -> list[float]:
    """The sum of squared errors of k-means for K = 1, 2, … clusters; arguments as of `cluster`.

    The curve ends before `most` where there are fewer than K + 1 different vectors.
    """
    greatest = max(1, min(most, len(np.unique(vectors, axis=0)) - 1))
    return [_k_means(vectors, k, seed)[1] for k in range(1, greatest + 1)]


def elbow(curve: Sequence[float]) -> int | None:
    """The K at which the curve (the errors for K = 1, 2, …) bends, or None where it shows no elbow."""
    if len(curve) < 3 or curve[0] <= 0:
        return None
    from kneed import KneeLocator

    errors = np.log(np.maximum(curve, _LEAST_SHARE * curve[0]))
    if errors.min() == errors.max():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kneed warns where its own rule, the first bend, finds none
        below = KneeLocator(np.log(np.arange(1, len(curve) + 1)), errors, curve="convex", direction="decreasing")
    lowest = int(below.y_difference.argmax())
    return lowest + 1 if below.y_difference[lowest] >= _LEAST_HEIGHT else None


def nearest(vectors: Vectors, centres: Vectors) -> tuple[Indices, Vectors]:
    """The nearest centre of each vector, `[n]`, and how far it is; of two as near the first."""
    distances = np.stack([np.linalg.norm(vectors - centre, axis=1) for centre in centres], axis=1).round(DIGITS)
    place = distances.argmin(axis=1)
    return place, distances[np.arange(len(vectors)), place]


def _fitted(vectors: Vectors, k: int, seed: int) -> tuple[Vectors, Indices]:
    """The centres of k-means in their order, without those that are nobody's, and how many vectors each has."""
    centres = np.round(_k_means(vectors, k, seed)[0], DIGITS)
    sizes = np.bincount(nearest(vectors, centres)[0], minlength=k)
    order = sorted(np.flatnonzero(sizes), key=lambda one: (-sizes[one], *centres[one]))
    return centres[order], sizes[order]


def _k_means(vectors: Vectors, k: int, seed: int) -> tuple[Vectors, float]:
    """The centres, `[k, d]`, and the sum of squared errors.

    On one thread: several would add up in the order in which they finish, and the last digits would hang on that.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        fitted = KMeans(n_clusters=k, n_init=_STARTS, random_state=seed).fit(vectors)
    return np.asarray(fitted.cluster_centers_, np.float64), float(fitted.inertia_)
