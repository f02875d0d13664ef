"""Rows of the tables that prompt sets and annotations are made from, written short."""

from typing import Any

import polars as pl
import sample_rows

from schemas.posts import UniquePosts
from schemas.training import SampledTurns, Splits

RISK = [{"kind": "self_harm", "rule": "suicide"}]


def answer(answer_id: str, text: str, role: str = "unknown") -> dict[str, Any]:
    return {
        "answer_id": answer_id,
        "text": text,
        "author_role": role,
        "cluster_id": answer_id,
        "n_questions": 1,
        "risk": [],
        "under_18": False,
    }


def post(source_id: int | str, text: str, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    clean = sample_rows.post(source_id, text)
    cluster = {"cluster_id": clean["post_id"], "cluster_size": 1, "group_id": "g1"}
    return {**clean, **cluster, "answers": list(answers), **more}


def posts(*rows: dict[str, Any]) -> pl.DataFrame:
    return UniquePosts.validate(pl.DataFrame(rows, schema=UniquePosts.polars_schema()))


def sampled_round(source_id: int | str, number: int, history: list[str], reference: str, **more: Any) -> dict[str, Any]:
    """One sampled round; turns of the history are written "seeker: …" or "supporter: …"."""
    return {
        **dict.fromkeys(SampledTurns.column_names()),
        "dialogue_id": f"s:{source_id}",
        "round": number,
        "n_rounds": number,
        "probability": 1.0,
        "history": [dict(zip(("role", "text"), turn.split(": ", 1), strict=True)) for turn in history],
        "reference": reference,
        "reference_origin": "human",
        "strategies": [],
        "needs_media": False,
        "lang": "zh",
        "source": "s",
        "risk": [],
        "under_18": False,
        "group_id": "g1",
        **more,
    }


def rounds(*rows: dict[str, Any]) -> pl.DataFrame:
    return SampledTurns.validate(pl.DataFrame(rows, schema=SampledTurns.polars_schema()))


def splits(**split_of: str) -> pl.DataFrame:
    rows = [{"group_id": group, "split": split, "given_at": "", "members": []} for group, split in split_of.items()]
    return Splits.validate(pl.DataFrame(rows, schema=Splits.polars_schema()))
