"""Rows of clean and unique tables, written short."""

from functools import partial
from typing import Any

import polars as pl
from table_rows import dialogue_of, frame, row_of, turn

from schemas.dialogues import CleanDialogues, UniqueDialogues
from schemas.posts import CleanPosts

__all__ = ["turn"]

posts, dialogues = partial(frame, CleanPosts), partial(frame, CleanDialogues)
dialogue = partial(dialogue_of, CleanDialogues)


def post(source_id: int | str, description: str, *answers: str, title: str = "", **more: Any) -> dict[str, Any]:
    post_id, words = f"s:{source_id}", f"{title}\n{description}" if title else description
    answered = [
        {"answer_id": f"{post_id}/{n}", "author_role": "unknown", "text": answer, "risk": [], "under_18": False}
        for n, answer in enumerate(answers)
    ]
    known = {"post_id": post_id, "source_id": str(source_id), "title": title, "description": description}
    return row_of(CleanPosts, **{**known, "text": words, "n_chars": len(words), "answers": answered, **more})


def unique_dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    made = [{"cluster_size": 1, "group_id": f"g{n}", **row} for n, row in enumerate(rows)]
    return frame(UniqueDialogues, *made)
