"""Clusters of vectors: k-means once, kept as rows of numbers that later vectors are held against."""

from dataclasses import dataclass

import numpy as np

from pipelines.rewrite.elbow import Vectors, elbow, k_means, most_clusters, sse_curve

# Where the curve shows no elbow: a cluster a trait, and ten profiles or more for each to draw from. Ours.
_WITHOUT_ELBOW = 4
_LEAST_EACH = 10
# An elbow that parts off a single profile is that profile's, and nobody could be drawn for it. Ours.
_LEAST_TO_DRAW = 2
# What is kept of each figure, in digits: the last ones differ from one processor to another.
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
    found = elbow(curve)
    without = max(1, min(_WITHOUT_ELBOW, len(vectors) // _LEAST_EACH, most_clusters(vectors, most)))
    centres, sizes = _fitted(vectors, found or without, seed)
    if found and sizes.min() < _LEAST_TO_DRAW:
        found, (centres, _) = None, _fitted(vectors, without, seed)
    return Clusters(centres, [round(error, DIGITS) for error in curve], found is not None)


def _fitted(vectors: Vectors, k: int, seed: int) -> tuple[Vectors, np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """The centres of k-means in their order, without those that are nobody's, and how many vectors each has."""
    centres = np.round(k_means(vectors, k, seed)[0], DIGITS)
    sizes = np.bincount(nearest(vectors, centres)[0], minlength=k)
    order = sorted(np.flatnonzero(sizes), key=lambda one: (-sizes[one], *centres[one]))
    return centres[order], sizes[order]


def nearest(vectors: Vectors, centres: Vectors) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], Vectors]:
    """The nearest centre of each vector, `[n]`, and how far it is; of two as near the first."""
    away = np.stack([np.linalg.norm(vectors - centre, axis=1) for centre in centres], axis=1).round(DIGITS)
    place = away.argmin(axis=1)
    return place, away[np.arange(len(vectors)), place]


def mean_error(distances: Vectors) -> float:
    """The mean of the squared distances."""
    return round(float(np.square(distances).mean()), DIGITS)
