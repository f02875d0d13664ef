"""Which rows are of an erased post, answer or dialogue, or were made from one, by their ids (`schemas.ids`).

A row is gone where one of its ids is gone, or is a part of one that is: an answer or a round, a speaker, a rewriting.
Lineage that stands in no id is found by what a row says: `pipelines.operations.erase.traces`.
"""

import re
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_

import polars as pl

# What stands between an id and a part of it.
_MARKS = re.compile(r"[#/~]")
# How an id that a text names may go on to a part of it, and what would make it the beginning of another id.
_PART = re.compile(r"(?:[#/~][\w-]+)*")
_GOES_ON = re.compile(r"[-.:]?\w")

# Ids of what a row is, or was made from; and what else `made_as` looks at.
IDS = (
    *("post_id", "answer_id", "dialogue_id", "source_dialogue_id", "row_id", "persona_id", "supporter_persona_id"),
    *("made_from", "positive_id"),
)
ID_LISTS = ("negative_ids",)
LOOKED_AT = (*IDS, *ID_LISTS, "unit", "variant", "round", "candidate")

Mask = Callable[[str], str]


class Gone:
    """The ids that are gone, and the addresses of posts. It grows while what was made from them is found.

    `namesakes` are ids of posts and dialogues that stand, and look like parts of what is gone: a source may have a post
    `1` and a post `1/2`.
    """

    def __init__(self, ids: Iterable[str], namesakes: Iterable[str] = ()) -> None:
        self.ids = set(ids)
        self.namesakes = set(namesakes)
        self._counted = 0
        self._lengths: list[int] = []
        self._found = re.compile(r"(?!)")

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
        """`told` with a mask for every id in it that is gone, whatever stands around it and whatever it holds."""
        done, shown = 0, []
        for found in self._beginnings().finditer(told):
            if found.start() >= done and (name := self._named(told, found.start())):
                shown += [told[done : found.start()], mask(name)]
                done = found.start() + len(name)
        return "".join([*shown, told[done:]])

    def _named(self, told: str, start: int) -> str:
        """The id that is gone, with the part of it, that stands at a place of a text; empty where there is none."""
        for length in self._lengths:
            name = told[start : start + length]
            end = start + length
            if len(name) == length and name in self.ids:
                goes_on = _GOES_ON.match(told, end)
                # Chinese words follow an id without a space; a letter after one that ends in Chinese is another id.
                if goes_on is None or (name[-1].isascii() and not goes_on[0].isascii()):
                    part = _PART.match(told, end)
                    whole = told[start : part.end()] if part else name
                    return whole if whole in self else ""
        return ""

    def _beginnings(self) -> re.Pattern[str]:
        """What ids that are gone begin with: their sources. Made again once there are more ids."""
        if len(self.ids) != self._counted:
            self._counted = len(self.ids)
            self._lengths = sorted({len(name) for name in self.ids}, reverse=True)
            sources = sorted({name.partition(":")[0] for name in self.ids}, key=len, reverse=True)
            # A source may be called `b`, and another `a-b`; Chinese words go before an id without a space.
            self._found = re.compile(rf"(?<![0-9A-Za-z_.-])(?:{'|'.join(map(re.escape, sources))})")
        return self._found

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
