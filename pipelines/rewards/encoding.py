"""Vectors of texts, asked of the encoder service (`GONGQING_ENCODER`)."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.rewards.asking import ENCODER, RewardFailed, asked

Vectors: TypeAlias = NDArray[np.float64]


async def encoded(texts: Sequence[str], kind: Literal["query", "answer"]) -> Vectors:
    """Vectors [n, d] of n texts. Raises RewardFailed where the encoder cannot be asked, or gives anything else."""
    told = (await asked(ENCODER, "/embed", {"texts": list(texts), "kind": kind})).get("vectors")
    try:
        vectors: Vectors = np.array(told, np.float64)
    except (TypeError, ValueError):  # rows that differ in length, or hold what is no number
        vectors = np.empty(0)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise RewardFailed(f"the encoder does not give one vector for each text ({len(texts)})")
    if not np.isfinite(vectors).all():
        raise RewardFailed("the encoder gives what is no number: its weights are broken")
    return vectors
