"""Which rows are made from which posts, answers and dialogues, by the ids in them (`schemas.ids`).

What an erasure takes with it, and what a release leaves out. Lineage that no id shows is found by the text of a row:
`pipelines.operations.erase.traces`.
"""

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_

import polars as pl

IDS = (
    *("post_id", "answer_id", "dialogue_id", "source_dialogue_id", "row_id", "persona_id", "supporter_persona_id"),
    *("made_from", "positive_id", "item_id"),
)
ID_COLUMNS = (*IDS, "negative_ids", "unit", "variant", "round", "candidate")  # and what `derived_ids` reads

# What stands between an id and a part of it.
_MARKS = re.compile(r"[#/~]")


class RowIds:
    """Ids of rows, with all their parts; the set grows while derived rows are found.

    `namesakes` are ids of posts and dialogues that are not meant and look like parts of one that is: a source may have
    a post `1` and a post `1/2`.
    """

    def __init__(self, ids: Iterable[str], namesakes: Iterable[str] = ()) -> None:
        self.ids = set(ids)
        self.namesakes = set(namesakes)

    def __contains__(self, name: object) -> bool:
        """Whether an id is one of these, or is a part of one that is."""
        if not isinstance(name, str):
            return False
        ends = [*(mark.start() for mark in _MARKS.finditer(name)), len(name)]
        for whole in (name[:end] for end in reversed(ends)):
            if whole in self.ids:
                return True
            if whole in self.namesakes:
                return False
        return False

    def among(self, names: pl.Series) -> pl.Series:
        """Those of a column, each once."""
        if not self.ids:
            return names.clear()
        near = names.unique().to_frame("id").filter(pl.col("id").str.contains_any(list(self.ids))).to_series()
        return near.filter(pl.Series([name in self for name in near], dtype=pl.Boolean))

    def rows(self, frame: pl.DataFrame) -> pl.Series:
        """Which rows of a table have, or hold a part of, any of these, as a column of booleans."""
        columns = [frame[name] for name in IDS if name in frame.columns]
        columns += [] if (derived := derived_ids(frame)) is None else [derived]
        marks = [column.is_in(self.among(column).implode()).fill_null(value=False) for column in columns]
        if "negative_ids" in frame.columns:
            ids = frame["negative_ids"]
            marks.append(ids.list.eval(pl.element().is_in(self.among(ids.explode()).implode())).list.any())
        return reduce(or_, marks, pl.zeros(frame.height, pl.Boolean, eager=True))

    def add_derived(self, frame: pl.DataFrame) -> bool:
        """Adds the ids of what was made from the rows of `frame`, all of them meant; whether any is new."""
        derived = derived_ids(frame)
        new = set() if derived is None else {name for name in derived if name not in self}
        self.ids |= new
        return bool(new)


def derived_ids(frame: pl.DataFrame) -> pl.Series | None:
    """The ids that rows got when they were made from others; None for tables whose rows keep the id of their source.

    A rewriting is named by its source, `~` and the variant, a candidate by its round, `/` and its number.
    """
    columns = set(frame.columns)
    if {"row_id", "unit", "variant"} <= columns:
        derived = pl.format("{}~{}", "row_id", "variant")
    elif {"dialogue_id", "round", "candidate"} <= columns:
        derived = pl.format("{}#{}/{}", "dialogue_id", "round", "candidate")
    elif "source_dialogue_id" in columns:
        derived = pl.col("dialogue_id")
    else:
        return None
    return frame.select(derived).to_series()
