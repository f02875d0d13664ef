"""Rows of clean and unique tables, written short."""

from itertools import pairwise
from typing import Any

import polars as pl

from schemas.dialogues import CleanDialogues, UniqueDialogues
from schemas.posts import CleanPosts

_SAID = {"lang": "zh", "lineage": [], "licence": "CC0-1.0", "consent": "invented", "source": "s"}
_CLEAN = {"han_ratio": 1.0, "script": "simplified", "pii": [], "risk": [], "under_18": False}


def post(source_id: int | str, description: str, *answers: str, title: str = "", **more: Any) -> dict[str, Any]:
    post_id, words = f"s:{source_id}", f"{title}\n{description}" if title else description
    return {
        **dict.fromkeys(CleanPosts.column_names()),
        **_SAID,
        **_CLEAN,
        "post_id": post_id,
        "source_id": str(source_id),
        "title": title,
        "description": description,
        "text": words,
        "n_chars": len(words),
        "subtopics": [],
        "origin": "human",
        "edits": [],
        "emotional_context": 0.5,
        "doubts": [],
        "answers": [
            {"answer_id": f"{post_id}/{n}", "author_role": "unknown", "text": answer, "risk": [], "under_18": False}
            for n, answer in enumerate(answers)
        ],
        **more,
    }


def posts(*rows: dict[str, Any]) -> pl.DataFrame:
    return CleanPosts.validate(pl.DataFrame(rows, schema=CleanPosts.polars_schema()))


def turn(said: str, **more: Any) -> dict[str, Any]:
    """One turn, written "seeker: …" or "supporter: …"."""
    role, words = said.split(": ", 1)
    labels = {"strategies": [], "source_strategies": [], "origin": "human", "media": []}
    return {"role": role, "text": words, "emotion": None, "feedback": None, **labels, **more}


def dialogue(source_id: int | str, *said: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    turns = [turn(one) if isinstance(one, str) else one for one in said]
    return {
        **dict.fromkeys(CleanDialogues.column_names()),
        **_SAID,
        **_CLEAN,
        "dialogue_id": f"s:{source_id}",
        "source_id": str(source_id),
        "turns": turns,
        "n_rounds": sum(a["role"] == "seeker" and b["role"] == "supporter" for a, b in pairwise(turns)),
        "n_chars": sum(len(one["text"]) for one in turns),
        "modality": "text",
        "attributes": [],
        **more,
    }


def dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    return CleanDialogues.validate(pl.DataFrame(rows, schema=CleanDialogues.polars_schema()))


def unique_dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    made = [
        {"cluster_id": row["dialogue_id"], "cluster_size": 1, "group_id": f"g{n}", **row} for n, row in enumerate(rows)
    ]
    return UniqueDialogues.validate(pl.DataFrame(made, schema=UniqueDialogues.polars_schema()))
