"""The text of a row, for people to read: what a post, an answer or a dialogue says, or what a model wrote."""

from collections.abc import Mapping, Sequence
from typing import Any

from schemas.table import LlmMade
from schemas.tables import TABLES

_NO_TEXT = (
    "reasoning",
    "url",
    "topic",
    "emotion",
)  # private columns of what a model made that say nothing of their own


def text_of(row: Mapping[str, Any], part: str | None = None) -> str | None:
    """A post's title and description, an answer's text (`part` is its id), a dialogue's turns, a line each; None for a
    row that is neither.
    """
    for answer in row.get("answers") or []:
        if answer["answer_id"] == part:
            return str(answer["text"])
    if row.get("turns") is not None:
        return spoken(row["turns"])
    if "description" in row and "title" in row:
        return "\n".join(filter(None, (row["title"], row["description"])))
    return None


def spoken(turns: Sequence[Mapping[str, Any]]) -> str:
    """What was said, a line a turn."""
    return "\n".join(f"{turn['role']}: {turn['text']}" for turn in turns)


def written_of(table: str, row: Mapping[str, Any]) -> str | None:
    """What a model wrote into a row of a table, a line each; None for a table that no model makes."""
    if not issubclass(TABLES[table], LlmMade):
        return None
    names = [name for name in TABLES[table].private_columns() if name not in _NO_TEXT and isinstance(row[name], str)]
    return "\n".join(f"{name}: {row[name]}" for name in names) or None
