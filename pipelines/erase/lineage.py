"""Which rows are of an erased post, answer or dialogue, or were made from one, by their ids (`schemas.ids`).

A row is gone where one of its ids is gone, or is a part of one that is: an answer or a round, a speaker, a rewriting.
Lineage that stands in no id is found by what a row says: `pipelines.erase.traces`.
"""

import re
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_

import polars as pl

# What stands between an id and a part of it.
_MARKS = re.compile(r"[#/~]")
# Where a word of a drop's detail may end.
_WORD = re.compile(r"[^\s,;()\"'“”，；（）]+")

# Ids of what a row is, or was made from; and what else `made_as` looks at.
IDS = (
    *("post_id", "answer_id", "dialogue_id", "source_dialogue_id", "row_id", "persona_id", "supporter_persona_id"),
    *("made_from", "positive_id"),
)
ID_LISTS = ("negative_ids",)
LOOKED_AT = (*IDS, *ID_LISTS, "unit", "variant", "round", "candidate")

Mask = Callable[[str], str]


class Gone:
    """The ids that are gone. It grows while what was made from them is found.

    `namesakes` are ids of posts and dialogues that stand, and look like parts of what is gone: a source may have a post
    `1` and a post `1/2`.
    """

    def __init__(self, ids: Iterable[str], namesakes: Iterable[str] = ()) -> None:
        self.ids = set(ids)
        self.namesakes = set(namesakes)

    def __contains__(self, name: object) -> bool:
        """Whether an id is gone, or is a part of one that is."""
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
        """Those of a column of ids that are gone, each once."""
        near = names.unique().to_frame("id").filter(pl.col("id").str.contains_any(list(self.ids))).to_series()
        return near.filter(pl.Series([name in self for name in near], dtype=pl.Boolean))

    def masked(self, told: str, mask: Mask) -> str:
        """`told` with a mask for every id in it that is gone."""
        return _WORD.sub(lambda word: mask(word[0]) if word[0] in self else word[0], told)

    def rows(self, frame: pl.DataFrame) -> pl.Series:
        """Which rows of a table are gone, as a column of booleans."""
        named = [frame[name] for name in IDS if name in frame.columns]
        named += [] if (made := made_as(frame)) is None else [made]
        marks = [column.is_in(self.among(column).implode()).fill_null(value=False) for column in named]
        for column in (frame[name] for name in ID_LISTS if name in frame.columns):
            marks.append(column.list.eval(pl.element().is_in(self.among(column.explode()).implode())).list.any())
        return reduce(or_, marks, pl.zeros(frame.height, pl.Boolean, eager=True))

    def take(self, frame: pl.DataFrame) -> bool:
        """What was made from the rows of `frame`, which are gone, goes with them; whether that is anything new."""
        made = made_as(frame)
        fresh = set() if made is None else {name for name in made if name not in self}
        self.ids |= fresh
        return bool(fresh)


def made_as(frame: pl.DataFrame) -> pl.Series | None:
    """The id that a row was given when it was made from another; None for tables whose rows have that of their source.

    A rewriting is named by its source, `~` and the variant, a candidate by its round, `/` and its number.
    """
    columns = set(frame.columns)
    if {"row_id", "unit", "variant"} <= columns:
        made = pl.format("{}~{}", "row_id", "variant")
    elif {"dialogue_id", "round", "candidate"} <= columns:
        made = pl.format("{}#{}/{}", "dialogue_id", "round", "candidate")
    elif "source_dialogue_id" in columns:
        made = pl.col("dialogue_id")
    else:
        return None
    return frame.select(made).to_series()
