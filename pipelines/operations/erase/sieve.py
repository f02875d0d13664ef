"""What is left of a table's rows once something is gone: rows without it, and ids in others that lead to it masked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from pipelines.operations.erase.lineage import Gone, Mask
from schemas.tables import TABLES

_ANSWER = pl.element().struct
DROPPED = "/dropped"  # after a table's name: the rows that it dropped


@dataclass(frozen=True)
class Sieve:
    """What goes: ids, rows that quote it by table and key, and the hashes in `splits` that tie nothing else.

    `mask` gives what stands for an id that is gone where a row that stays names it.
    """

    gone: Gone
    mask: Mask
    quoting: dict[str, set[str]] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)

    def marks(self, table: str, frame: pl.DataFrame) -> pl.Series:
        """Which rows go whole."""
        marks = self.gone.rows(frame)
        if quoting := self.quoting.get(table):
            marks |= keys(table, frame).is_in(list(quoting))
        if table == "splits" and self.links:
            left = pl.col("members").list.set_difference(list(self.links)).list.len()
            marks |= frame.select((left == 0) & (pl.col("members").list.len() > 0)).to_series()
        return marks

    def losing(self, table: str, frame: pl.DataFrame) -> pl.Series:
        """Which rows go whole, or lose an answer."""
        marks = self.marks(table, frame)
        if "answers" in frame.columns:
            gone = _ANSWER.field("answer_id").is_in(self._answers(frame).implode())
            marks |= frame.select(pl.col("answers").list.eval(gone).list.any()).to_series()
        return marks

    def left(self, table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """The rows that stay, and how many of them lost or changed a part."""
        stays = frame.filter(~self.marks(table, frame))
        after = stays.with_columns(*self._changes(stays))
        differs = [~stays[name].eq_missing(after[name]) for name in stays.columns if name in _PARTS]
        changed = stays.select(pl.any_horizontal(pl.lit(value=False), *differs)).to_series() if differs else None
        return after, 0 if changed is None else int(changed.sum())

    def taken(self, table: str, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """What goes: whole rows, and the answers of rows that stay."""
        marks = self.marks(table, frame)
        yield frame.filter(marks)
        if "answers" in frame.columns:
            answers = frame.filter(~marks).select(answer="answers").explode("answer", empty_as_null=False)
            yield answers.unnest("answer").filter(pl.col("answer_id").is_in(self._answers(frame).implode()))

    def _changes(self, frame: pl.DataFrame) -> Iterator[pl.Expr]:
        if "answers" in frame.columns:
            going = self._answers(frame).implode()
            answers = pl.col("answers").list.eval(pl.element().filter(~_ANSWER.field("answer_id").is_in(going)))
            masks = self._masks(_inner(frame, "answers", "cluster_id"))
            if masks:
                shown = pl.field("cluster_id").replace(masks)
                answers = answers.list.eval(_ANSWER.with_fields(shown))
            yield answers
        if "edits" in frame.columns:
            going = self.gone.among(_inner(frame, "edits", "row_id")).implode()
            yield pl.col("edits").list.eval(pl.element().filter(~_ANSWER.field("row_id").is_in(going)))
        if "members" in frame.columns:
            yield pl.col("members").list.eval(pl.element().filter(~pl.element().is_in(list(self.links))))
        if "pool" in frame.columns:
            going = self.gone.among(frame["pool"].explode(empty_as_null=False)).implode()
            yield pl.col("pool").list.eval(pl.element().filter(~pl.element().is_in(going)))
        if "detail" in frame.columns:
            told = {one: self.gone.masked(one, self.mask) for one in frame["detail"].drop_nulls().unique()}
            yield pl.col("detail").replace({one: masked for one, masked in told.items() if one != masked})

    def _answers(self, frame: pl.DataFrame) -> pl.Series:
        return self.gone.among(_inner(frame, "answers", "answer_id"))

    def _masks(self, names: pl.Series) -> Mapping[str, str]:
        return {name: self.mask(name) for name in self.gone.among(names)}


# Columns of which a row may lose a part.
_PARTS = ("answers", "edits", "members", "pool", "detail")


def keys(table: str, frame: pl.DataFrame) -> pl.Series:
    """The key of each row as one string."""
    names = ["unit", "row_id"] if table.endswith(DROPPED) else TABLES[table].key()
    return frame.select(pl.concat_str(*(pl.col(name).cast(pl.String) for name in names), separator="\x1f")).to_series()


def _inner(frame: pl.DataFrame, column: str, name: str) -> pl.Series:
    """A field of the structs in a column of lists; empty where they have no such field."""
    structs = frame[column].explode(empty_as_null=False)
    return structs.struct.field(name) if name in structs.struct.fields else pl.Series(name, [], pl.String)
