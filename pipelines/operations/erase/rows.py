"""Which rows go in an erasure, and what is left of a table without these rows.

A row goes where one of its ids is erased, or names a part of an erased row: an answer, a round, a speaker, a rewriting
(`pipelines.store.derived`). Lineage that no id shows is found by texts: `pipelines.operations.erase.traces`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import polars as pl

from pipelines.store.derived import RowIds
from schemas.posts import has_answers
from schemas.tables import TABLES

DROPPED = "/dropped"  # after a table's name: the rows that it dropped

# How an id in a text may continue with a part of the row, and what would make it the beginning of another id.
_PART = re.compile(r"(?:[#/~][\w-]+)*")
_CONTINUES = re.compile(r"[-.:]?\w")

Mask = Callable[[str], str]


class ErasedIds(RowIds):
    """The erased ids, and the addresses of erased posts."""

    def __init__(self, ids: Iterable[str], namesakes: Iterable[str] = ()) -> None:
        super().__init__(ids, namesakes)
        self._compiled_for = 0  # so many ids
        self._lengths: list[int] = []
        self._pattern = re.compile(r"(?!)")

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
        if has_answers(frame.schema):
            erased = pl.element().struct.field("answer_id").is_in(self._erased_in(frame, "answers", "answer_id"))
            marks |= frame.select(pl.col("answers").list.eval(erased).list.any()).to_series()
        return marks

    def split(self, table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """The rows that stay, without their erased parts; and how many of them lost or changed a part."""
        before = frame.filter(~self.marks(table, frame))
        changes = list(self._changes(before))
        after = before.with_columns(*changes)
        names = [change.meta.output_name() for change in changes]
        differs = (before[name].ne_missing(after[name]) for name in names)
        return after, int(reduce(or_, differs, pl.zeros(before.height, pl.Boolean, eager=True)).sum())

    def removed(self, table: str, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """What goes: whole rows, and the answers of rows that stay."""
        marks = self.marks(table, frame)
        yield frame.filter(marks)
        if has_answers(frame.schema):
            answers = frame.filter(~marks).select(answer="answers").explode("answer", empty_as_null=False)
            erased = self._erased_in(frame, "answers", "answer_id")
            yield answers.unnest("answer").filter(pl.col("answer_id").is_in(erased))

    def _changes(self, frame: pl.DataFrame) -> Iterator[pl.Expr]:
        """Of the columns of which a row that stays may lose a part, those in which something of it may stand."""
        for column, name in (("answers", "answer_id"), ("edits", "row_id")):
            if not isinstance(frame.schema.get(column), pl.List):
                continue
            erased = self.erased.among(_field(frame, column, name))
            clusters = self.erased.among(_field(frame, column, "cluster_id"))
            items = pl.col(column)
            if len(erased):
                stays = ~pl.element().struct.field(name).is_in(erased.implode())
                items = items.list.eval(pl.element().filter(stays))
            if len(clusters):
                masked = pl.field("cluster_id").replace({cluster: self.mask(cluster) for cluster in clusters})
                items = items.list.eval(pl.element().struct.with_fields(masked))
            if len(erased) or len(clusters):
                yield items
        if "members" in frame.columns and self.group_keys:
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
