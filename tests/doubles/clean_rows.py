"""Rows of imported tables, written short."""

from itertools import pairwise
from typing import Any

import polars as pl

from schemas.dialogues import ImportedDialogues
from schemas.posts import ImportedPosts

SAID = {"lang": "zh", "lineage": [], "licence": "CC0-1.0", "consent": "invented"}


def post(source_id: int | str, title: str = "", description: str = "", *answers: str, **more: Any) -> dict[str, Any]:
    post_id = f"s:{source_id}"
    return {
        **dict.fromkeys(ImportedPosts.column_names()),
        **SAID,
        "post_id": post_id,
        "source": "s",
        "source_id": str(source_id),
        "title": title,
        "description": description,
        "subtopics": [],
        "origin": "human",
        "answers": [
            {"answer_id": f"{post_id}/{n}", "author_role": "unknown", "text": text, "spans": []}
            for n, text in enumerate(answers)
        ],
        **more,
    }


def posts(*rows: dict[str, Any]) -> pl.DataFrame:
    return ImportedPosts.validate(pl.DataFrame(rows, schema=ImportedPosts.polars_schema()))


def dialogue(source_id: int | str, *said: str, **more: Any) -> dict[str, Any]:
    """Turns as "seeker: …" or "supporter: …"."""
    turns = [dict(zip(("role", "text"), turn.split(": ", 1), strict=True)) for turn in said]
    answered = [a["role"] == "seeker" and b["role"] == "supporter" for a, b in pairwise(turns)]
    return {
        **dict.fromkeys(ImportedDialogues.column_names()),
        **SAID,
        "dialogue_id": f"s:{source_id}",
        "source": "s",
        "source_id": str(source_id),
        "turns": [
            {**turn, "strategies": [], "source_strategies": [], "origin": "human", "media": []} for turn in turns
        ],
        "n_rounds": sum(answered),
        "modality": "text",
        "attributes": [],
        **more,
    }


def dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    return ImportedDialogues.validate(pl.DataFrame(rows, schema=ImportedDialogues.polars_schema()))
