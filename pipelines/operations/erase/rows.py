"""Which rows go in an erasure, by the ids in them (`schemas.ids`), and what is left of a table without these rows.

A row goes where one of its ids is erased, or names a part of an erased row: an answer, a round, a speaker, a rewriting.
Lineage that no id shows is found by the text of a row: `pipelines.operations.erase.traces`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import polars as pl

from schemas.tables import TABLES

DROPPED = "/dropped"  # after a table's name: the rows that it dropped
IDS = (
    *("post_id", "answer_id", "dialogue_id", "source_dialogue_id", "row_id", "persona_id", "supporter_persona_id"),
    *("made_from", "positive_id"),
)
ID_COLUMNS = (*IDS, "negative_ids", "unit", "variant", "round", "candidate")  # and what `derived_ids` reads

# What stands between an id and a part of it.
_MARKS = re.compile(r"[#/~]")
# How an id in a text may continue with a part of the row, and what would make it the beginning of another id.
_PART = re.compile(r"(?:[#/~][\w-]+)*")
_CONTINUES = re.compile(r"[-.:]?\w")
# Columns of which a row that stays may lose a part.
_PARTS = ("answers", "edits", "members", "pool", "detail")

Mask = Callable[[str], str]


class ErasedIds:
    """The erased ids, and the addresses of erased posts; the set grows while derived rows are found.

    `namesakes` are ids of posts and dialogues that stay and look like parts of an erased one: a source may have a post
    `1` and a post `1/2`.
    """

    def __init__(self, ids: Iterable[str], namesakes: Iterable[str] = ()) -> None:
        self.ids = set(ids)
        self.namesakes = set(namesakes)
        self._compiled_for = 0  # so many ids
        self._lengths: list[int] = []
        self._pattern = re.compile(r"(?!)")

    def __contains__(self, name: object) -> bool:
        """Whether an id is erased, or is a part of one that is."""
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
        """The erased ids in a column, each once."""
        near = names.unique().to_frame("id").filter(pl.col("id").str.contains_any(list(self.ids))).to_series()
        return near.filter(pl.Series([name in self for name in near], dtype=pl.Boolean))

    def masked(self, text: str, mask: Mask) -> str:
        """`text` with a mask for every erased id in it, whatever characters surround the id or stand in it."""
        done, parts = 0, []
        for match in self._sources().finditer(text):
            if match.start() >= done and (name := self._id_at(text, match.start())):
                parts += [text[done : match.start()], mask(name)]
                done = match.start() + len(name)
        return "".join([*parts, text[done:]])

    def _id_at(self, text: str, start: int) -> str:
        """The erased id, with the part of the row it names, at a position of a text; empty where there is none."""
        for length in self._lengths:
            name = text[start : start + length]
            end = start + length
            if len(name) == length and name in self.ids:
                after = _CONTINUES.match(text, end)
                # Chinese words follow an id without a space; a letter after an id that ends in Chinese continues it.
                if after is None or (name[-1].isascii() and not after[0].isascii()):
                    part = _PART.match(text, end)
                    whole = text[start : part.end()] if part else name
                    return whole if whole in self else ""
        return ""

    def _sources(self) -> re.Pattern[str]:
        """A pattern for the sources of the erased ids, with which these begin; compiled again once there are more."""
        if len(self.ids) != self._compiled_for:
            self._compiled_for = len(self.ids)
            self._lengths = sorted({len(name) for name in self.ids}, reverse=True)
            sources = sorted({name.partition(":")[0] for name in self.ids}, key=len, reverse=True)
            # One source may be called `b` and another `a-b`; Chinese words precede an id without a space.
            self._pattern = re.compile(rf"(?<![0-9A-Za-z_.-])(?:{'|'.join(map(re.escape, sources))})")
        return self._pattern

    def rows(self, frame: pl.DataFrame) -> pl.Series:
        """Which rows of a table are erased, as a column of booleans."""
        columns = [frame[name] for name in IDS if name in frame.columns]
        columns += [] if (derived := derived_ids(frame)) is None else [derived]
        marks = [column.is_in(self.among(column).implode()).fill_null(value=False) for column in columns]
        if "negative_ids" in frame.columns:
            ids = frame["negative_ids"]
            marks.append(ids.list.eval(pl.element().is_in(self.among(ids.explode()).implode())).list.any())
        return reduce(or_, marks, pl.zeros(frame.height, pl.Boolean, eager=True))

    def add_derived(self, frame: pl.DataFrame) -> bool:
        """Adds the ids of what was made from the rows of `frame`, which are erased; whether any is new."""
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


@dataclass(frozen=True)
class RowFilter:
    """What goes: ids, rows that quote erased text (by table and key), and the group keys in `splits` of nothing else.

    `mask` gives what replaces an erased id in a row that stays.
    """

    erased: ErasedIds
    mask: Mask
    quoting: dict[str, set[str]] = field(default_factory=dict)
    group_keys: set[str] = field(default_factory=set)

    def marks(self, table: str, frame: pl.DataFrame) -> pl.Series:
        """Which rows go whole."""
        marks = self.erased.rows(frame)
        if quoting := self.quoting.get(table):
            marks |= row_keys(table, frame).is_in(list(quoting))
        if table == "splits" and self.group_keys:
            left = pl.col("members").list.set_difference(list(self.group_keys)).list.len()
            marks |= frame.select((left == 0) & (pl.col("members").list.len() > 0)).to_series()
        return marks

    def losing(self, table: str, frame: pl.DataFrame) -> pl.Series:
        """Which rows go whole, or lose an answer."""
        marks = self.marks(table, frame)
        if "answers" in frame.columns:
            erased = pl.element().struct.field("answer_id").is_in(self._erased_in(frame, "answers", "answer_id"))
            marks |= frame.select(pl.col("answers").list.eval(erased).list.any()).to_series()
        return marks

    def split(self, table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """The rows that stay, without their erased parts; and how many of them lost or changed a part."""
        before = frame.filter(~self.marks(table, frame))
        after = before.with_columns(*self._changes(before))
        differs = (before[name].ne_missing(after[name]) for name in _PARTS if name in before.columns)
        return after, int(reduce(or_, differs, pl.zeros(before.height, pl.Boolean, eager=True)).sum())

    def removed(self, table: str, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """What goes: whole rows, and the answers of rows that stay."""
        marks = self.marks(table, frame)
        yield frame.filter(marks)
        if "answers" in frame.columns:
            answers = frame.filter(~marks).select(answer="answers").explode("answer", empty_as_null=False)
            erased = self._erased_in(frame, "answers", "answer_id")
            yield answers.unnest("answer").filter(pl.col("answer_id").is_in(erased))

    def _changes(self, frame: pl.DataFrame) -> Iterator[pl.Expr]:
        for column, name in (("answers", "answer_id"), ("edits", "row_id")):
            if column in frame.columns:
                stays = ~pl.element().struct.field(name).is_in(self._erased_in(frame, column, name))
                items = pl.col(column).list.eval(pl.element().filter(stays))
                if column == "answers":
                    clusters = self.erased.among(_field(frame, "answers", "cluster_id"))
                    masks = {cluster: self.mask(cluster) for cluster in clusters}
                    if masks:
                        masked = pl.field("cluster_id").replace(masks)
                        items = items.list.eval(pl.element().struct.with_fields(masked))
                yield items
        if "members" in frame.columns:
            yield pl.col("members").list.eval(pl.element().filter(~pl.element().is_in(list(self.group_keys))))
        if "pool" in frame.columns:
            erased = self.erased.among(frame["pool"].explode(empty_as_null=False)).implode()
            yield pl.col("pool").list.eval(pl.element().filter(~pl.element().is_in(erased)))
        if "detail" in frame.columns:
            details = {text: self.erased.masked(text, self.mask) for text in frame["detail"].drop_nulls().unique()}
            yield pl.col("detail").replace({text: masked for text, masked in details.items() if text != masked})

    def _erased_in(self, frame: pl.DataFrame, column: str, name: str) -> pl.Series:
        return self.erased.among(_field(frame, column, name)).implode()


def row_keys(table: str, frame: pl.DataFrame) -> pl.Series:
    """The key of each row as one string."""
    names = ["unit", "row_id"] if table.endswith(DROPPED) else TABLES[table].key()
    return frame.select(pl.concat_str(*(pl.col(name).cast(pl.String) for name in names), separator="\x1f")).to_series()


def _field(frame: pl.DataFrame, column: str, name: str) -> pl.Series:
    """A field of the structs in a column of lists; empty where they have no such field."""
    structs = frame[column].explode(empty_as_null=False)
    return structs.struct.field(name) if name in structs.struct.fields else pl.Series(name, [], pl.String)
