"""`persona_fits` and `personas` (C): profiles in clusters, seekers and supporters apart; the clusters stay.

`persona_fits` is incremental state, as `splits` is; docs/rewriting.md, "Personas", lists when it is fitted again. K is
at the elbow of the errors of k-means. Ours, for C does not say how: on logarithmic axes, where the errors of a cloud
are a straight line, the point that kneed (Satopää et al. 2011) sees furthest below the chord.
"""

import json
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.tasks import Result, rows
from pipelines.rewrite.encoding import encoder_id, sentence_encoder
from pipelines.settings import Rewrite, Settings
from schemas.dropped import Row
from schemas.labels import LANGUAGES, ROLES, TRAITS
from schemas.personas import PersonaFits, Personas
from schemas.table import Dropped

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


class Clusters(NamedTuple):
    """Centres, `[k, d]`, the largest cluster first; and the curve that K was read off, with whether it had an elbow."""

    centres: Vectors
    curve: list[float]
    elbow: bool


def cluster(vectors: Vectors, most: int, seed: int) -> Clusters:
    """k-means with the K of the elbow, or without one 4, no more than a tenth of the vectors, and at least 1.

    An elbow that leaves a cluster of one vector is none. Clusters are numbered by size, then by centre, so that no
    number hangs on how k-means began. `vectors` are `[n, d]`, n ≥ 1; K is `most` at most.
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
    """The centres, `[k, d]`, and the sum of squared errors. On one thread: several would add up in the order in which
    they finish, and the last digits would hang on that.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        fitted = KMeans(n_clusters=k, n_init=_STARTS, random_state=seed).fit(vectors)
    return np.asarray(fitted.cluster_centers_, np.float64), float(fitted.inertia_)


# From how many standard deviations away from the mean on a trait leads a cluster. Ours.
_LEADS = 0.5

# Stands for the error of a fit whose profiles were all the same, of which any other would be a drift: each of four
# scores about a sixth away. Ours.
_ERROR_OF_EQUALS = 0.1

# A pool that many times as large as it was when it was fitted is fitted again: new dialogues are not drawn. Ours.
_MOST_GROWTH = 2


def personas(profiles: pl.DataFrame, fits: pl.DataFrame, settings: Rewrite, seed: int) -> Result:
    """The clusters of the profiles, and which profile is in which.

    Args:
        profiles: Rows of `disc_profiles`.
        fits: Rows of `persona_fits`, as they are: one that still fits stays.
        settings: With an `encoder`, the sentence embeddings of the descriptions are clustered; without, the scores.
        seed: Of k-means.

    Returns rows of `persona_fits`, one a role that has profiles, and of `personas`, one a profile.

    Raises RequestError where the settings name an encoder that cannot be read.
    """
    # What most profiles were made by: another profiler has another scale.
    made_by = profiles.group_by("provider", "model_asked").len().sort("len", "provider", "model_asked")
    fitted_by = json.dumps(
        {
            "fit": settings.fit,
            "max_clusters": settings.max_clusters,
            "encoder": None if settings.encoder is None else encoder_id(settings.encoder),
            "seed": seed,
            "profiled_by": "/".join(made_by.row(-1)[:2]) if made_by.height else None,
        }
    )
    fit_of = {row["role"]: row for row in fits.iter_rows(named=True) if row["fitted_by"] == fitted_by}
    new_fits: list[Row] = []
    assigned: list[Row] = []
    for role in ROLES:
        # By id, whatever the order they come in: k-means begins by drawing rows.
        of_role = sorted(profiles.filter(role=role).iter_rows(named=True), key=_persona_id)
        if not of_role:
            continue
        scores = np.array([[row[trait] for trait in TRAITS] for row in of_role], np.float64)
        raw = scores
        if settings.encoder is not None:
            raw = sentence_encoder(settings.encoder)([row["description"] for row in of_role])
        fit = fit_of.get(role)
        if fit is None or _outgrown(of_role, fit) or _drifted(raw, fit, settings.drift):
            fit = _fit(role, of_role, scores, raw, settings, seed) | {"fitted_by": fitted_by}
        new_fits.append(fit)
        assigned += _assigned(of_role, raw, fit)
    return rows(PersonaFits, new_fits), rows(Personas, assigned)


def _fit(role: str, profiles: Sequence[Row], scores: Vectors, raw: Vectors, settings: Rewrite, seed: int) -> Row:
    """A row of `persona_fits` but for `fitted_by`."""
    if settings.encoder is None:
        mean, scale = _standard(raw)
    else:  # unit vectors as they are: scaled by coordinate, they would not stand for what they mean any more
        mean, scale = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    vectors = _vectors(raw, mean, scale)
    clusters = cluster(vectors, settings.max_clusters, seed)
    place, distance = nearest(vectors, clusters.centres)
    standard = _vectors(scores, *_standard(scores))
    return {
        "role": role,
        "k": len(clusters.centres),
        "elbow": clusters.elbow,
        "curve": clusters.curve,
        "names": [name(standard[place == one].mean(axis=0)) for one in range(len(clusters.centres))],
        "centres": clusters.centres.tolist(),
        "mean": mean.tolist(),
        "scale": scale.tolist(),
        "error": _mean_error(distance),
        "pool": [_persona_id(row) for row in profiles],
    }


def _assigned(profiles: Sequence[Row], raw: Vectors, fit: Row) -> list[Row]:
    """Rows of `personas`: each profile with the nearest of the fit's centres."""
    vectors = _vectors(raw, np.array(fit["mean"]), np.array(fit["scale"]))
    place, distance = nearest(vectors, np.array(fit["centres"]))
    pool = set(fit["pool"])
    return [
        {
            "persona_id": _persona_id(row),
            "role": row["role"],
            "cluster": int(one),
            "cluster_name": fit["names"][one],
            "vector": vector.tolist(),
            "distance": float(away),
            "fitted": _persona_id(row) in pool,
            "description": row["description"],
            "lang": row["lang"],
            "group_id": row["group_id"],
        }
        for row, one, away, vector in zip(profiles, place, distance, vectors, strict=True)
    ]


def _drifted(raw: Vectors, fit: Row, limit: float) -> bool:
    """Whether the profiles lie much further from the centres than those that were fitted, or much nearer."""
    vectors = _vectors(raw, np.array(fit["mean"]), np.array(fit["scale"]))
    error = _mean_error(nearest(vectors, np.array(fit["centres"]))[1])
    return error > limit * (float(fit["error"]) or _ERROR_OF_EQUALS) or error * limit < float(fit["error"])


def _outgrown(profiles: Sequence[Row], fit: Row) -> bool:
    """Whether most profiles are not in the pool that is drawn from, or none of a language is that could draw some."""
    pool = set(fit["pool"])
    drawn = [row for row in profiles if _persona_id(row) in pool]
    groups = {lang: {row["group_id"] for row in profiles if row["lang"] == lang} for lang in LANGUAGES}
    missing = {lang for lang, of in groups.items() if len(of) > 1} - {row["lang"] for row in drawn}
    return len(profiles) > _MOST_GROWTH * len(drawn) or bool(missing)


def name(centre: Sequence[float] | Vectors) -> str:
    """The leading traits of a centre of standardised D, I, S, C, the strongest first, or ``balanced``."""
    leading = [(trait, z) for trait, z in zip(TRAITS, centre, strict=True) if abs(z) >= _LEADS]
    leading.sort(key=lambda one: -abs(one[1]))
    return ", ".join(f"{'high' if z > 0 else 'low'} {trait}" for trait, z in leading) or "balanced"


def _mean_error(distances: Vectors) -> float:
    return round(float(np.square(distances).mean()), DIGITS)


def _standard(scores: Vectors) -> tuple[Vectors, Vectors]:
    """Mean and standard deviation of each coordinate; where all are the same, 1 for the latter."""
    scale = scores.std(axis=0).round(DIGITS)
    return scores.mean(axis=0).round(DIGITS), np.where(scale > 0, scale, 1.0)


def _vectors(raw: Vectors, mean: Vectors, scale: Vectors) -> Vectors:
    standard: Vectors = np.round((raw - mean) / scale, DIGITS)
    return standard


def _persona_id(row: Row) -> str:
    return f"{row['dialogue_id']}/{row['role']}"


# The fit is written first: killed after it, the next run reads it and gives the same personas.
@stage(
    "personas",
    group="rewrite",
    tables=("persona_fits", "personas"),
    reads=("rewrite.max_clusters", "rewrite.encoder", "rewrite.drift", "rewrite.fit", "seed"),
    units={"personas": {"profile": ("disc_profiles",)}},
)
def make_personas(disc_profiles: pl.DataFrame, persona_fits: pl.DataFrame, settings: Settings) -> dict[str, Result]:
    """`personas`, with the fit that they come from: one that still fits stays."""
    fits, assigned = personas(disc_profiles, persona_fits, settings.rewrite, settings.seed)
    return {"persona_fits": (fits, Dropped.create_empty()), "personas": (assigned, Dropped.create_empty())}
