"""Rows of imported tables, written short."""

from typing import Any

import polars as pl
import sample_rows

from schemas.dialogues import ImportedDialogues
from schemas.posts import ImportedPosts


def post(source_id: int | str, title: str = "", description: str = "", *answers: str, **more: Any) -> dict[str, Any]:
    row = sample_rows.post(source_id, description, *answers, title=title, **more)
    said = [
        {name: one[name] for name in ("answer_id", "author_role", "text")} | {"spans": []} for one in row["answers"]
    ]
    return {name: row[name] for name in ImportedPosts.column_names()} | {"answers": said}


def posts(*rows: dict[str, Any]) -> pl.DataFrame:
    return ImportedPosts.validate(pl.DataFrame(rows, schema=ImportedPosts.polars_schema()))


def dialogue(source_id: int | str, *said: str, **more: Any) -> dict[str, Any]:
    """Turns as "seeker: …" or "supporter: …"."""
    row = sample_rows.dialogue(source_id, *said, **more)
    return {name: row[name] for name in ImportedDialogues.column_names()}


def dialogues(*rows: dict[str, Any]) -> pl.DataFrame:
    return ImportedDialogues.validate(pl.DataFrame(rows, schema=ImportedDialogues.polars_schema()))
