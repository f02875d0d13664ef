"""Rows of any table, written short: a column that is not named is as usual, else null, or 0 or nothing."""

from itertools import pairwise
from typing import Any

import polars as pl

from schemas.table import Table

USUAL = {
    **{"lang": "zh", "source": "s", "origin": "human", "licence": "CC0-1.0", "consent": "invented", "group_id": "g1"},
    **{"han_ratio": 1.0, "script": "simplified", "emotional_context": 0.5, "modality": "text", "cluster_size": 1},
    **{"provider": "openai", "model_asked": "m", "prompt_version": "p@1", "request_key": "key", "probability": 1.0},
}


def row_of(table: type[Table], **known: Any) -> dict[str, Any]:
    for name, column in table.columns().items():
        if name not in known:
            known[name] = USUAL.get(name, None if column.nullable else column.dtype.to_python()())
    return known


def frame(table: type[Table], *rows: dict[str, Any]) -> pl.DataFrame:
    return table.validate(pl.DataFrame(rows, schema=table.polars_schema()))


def turn(said: str, **more: Any) -> dict[str, Any]:
    """One turn, written "seeker: …" or "supporter: …"."""
    role, words = said.split(": ", 1)
    labels = {"strategies": [], "source_strategies": [], "origin": "human", "media": []}
    return {"role": role, "text": words, "emotion": None, "feedback": None, **labels, **more}


def dialogue_of(table: type[Table], source_id: int | str, *said: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    """One dialogue; turns are written as `turn` takes them."""
    turns = [turn(one) if isinstance(one, str) else one for one in said]
    rounds = sum(a["role"] == "seeker" and b["role"] == "supporter" for a, b in pairwise(turns))
    named = {"dialogue_id": f"s:{source_id}", "source_id": str(source_id), "cluster_id": f"s:{source_id}"}
    known = named | {"turns": turns, "n_rounds": rounds, "n_chars": sum(len(one["text"]) for one in turns)}
    return row_of(table, **known | more)
