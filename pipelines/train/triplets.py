"""Triplets of `rm_triplets` as E's encoder learns from them: rows, batches, and whose negative an answer is."""

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import RequestError

_COLUMNS = ("made_from", "group_id", "kind", "query", "positive", "negative")


class Triplet(NamedTuple):
    """A row of `rm_triplets`, as far as it is learnt from."""

    made_from: str
    group_id: str
    kind: str
    query: str
    positive: str
    negative: str


def read_triplets(paths: Sequence[Path]) -> list[Triplet]:
    """Triplets of Parquet files. Raises RequestError for a file of something else than `rm_triplets`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    triplets: list[Triplet] = []
    for path in paths:
        try:
            rows = pq.read_table(path, columns=list(_COLUMNS), partitioning=None).to_pylist()
            triplets += [Triplet(**row) for row in rows]
        except (OSError, pa.ArrowException, TypeError) as error:
            raise RequestError(
                f"no rows of rm_triplets: {str(error).splitlines()[0]}", where=path, hint="name a file of a release"
            ) from error
    return triplets


def require_several(triplets: Sequence[Triplet], split: str) -> None:
    """Raises RequestError for fewer than two groups of questions: nothing is an answer to another question then."""
    groups = {one.group_id for one in triplets}
    if len(groups) < 2:
        raise RequestError(
            f"{len(triplets)} triplets of {len(groups)} groups of questions are too few to learn from or to measure on",
            where=split,
            hint="gongqing refresh --select training on more questions with answers, then make another release",
        )


def apart(triplets: Sequence[Triplet]) -> NDArray[np.bool_]:
    """[n, n], whether the positive of column j is a negative for the question of row i: of another question, of another
    group, and another text.
    """
    mask = np.ones((len(triplets), len(triplets)), bool)
    for column in ("made_from", "group_id", "positive", "query"):
        _, number = np.unique([getattr(one, column) for one in triplets], return_inverse=True)
        mask &= number[:, None] != number[None, :]
    return mask


def plan_batches(triplets: Sequence[Triplet], size: int, epochs: int, seed: int) -> list[list[int]]:
    """The rows of every step. Each epoch has each row once, in an order that follows from the seed and its number; a
    row never ends up alone, without others to be held against.
    """
    plan: list[list[int]] = []
    for epoch in range(epochs):
        order = list(range(len(triplets)))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        n = math.ceil(len(order) / size)
        plan += [order[place::n] for place in range(n)]
    return plan
