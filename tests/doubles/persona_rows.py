"""Profiles that personas are made from, written short."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from pipelines.settings import Rewrite
from schemas.labels import TRAITS
from schemas.personas import DiscProfiles, PersonaFits

NONE = PersonaFits.create_empty()
SETTINGS = Rewrite()
KINDS = {"bold": (0.9, 0.6, 0.1, 0.3), "warm": (0.2, 0.9, 0.6, 0.2), "careful": (0.3, 0.1, 0.6, 0.9)}


def profile(dialogue_id: str, role: str, scores: Sequence[float], **more: Any) -> dict[str, Any]:
    return {
        "dialogue_id": dialogue_id,
        "role": role,
        **dict(zip(TRAITS, scores, strict=True)),
        "evidence": ["我要"],
        "description": f"说话的样子，{dialogue_id}。不多说。",
        "lang": "zh",
        "group_id": f"g/{dialogue_id}",
        "provider": "openai",
        "model_asked": "a",
        "model_served": None,
        "prompt_version": "p@1",
        "request_key": "key",
        **more,
    }


def profiles(*rows: dict[str, Any]) -> pl.DataFrame:
    return DiscProfiles.validate(pl.DataFrame(rows, schema=DiscProfiles.polars_schema()))


def crowd(n: int = 60, role: str = "seeker", seed: int = 0) -> list[dict[str, Any]]:
    """Profiles of three kinds that lie apart."""
    rng = np.random.default_rng((seed, role == "seeker"))
    made = []
    for number in range(n):
        kind = list(KINDS)[number % len(KINDS)]
        scores = np.clip(np.array(KINDS[kind]) + rng.normal(0, 0.04, 4), 0, 1)
        made.append(profile(f"s:{kind}{number}", role, scores.tolist()))
    return made
