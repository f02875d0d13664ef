"""Rows in the schema that their table had when they were written, and in today's.

A column, or a field within one, that was added since and may be null is filled with null. Any other difference changes
the meaning of rows: they are read as they were written, and nothing is made from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dataframely as dy
import polars as pl

from schemas.table import Table


@dataclass(frozen=True)
class Diff:
    """Rows by key: in the second version only, in the first only, in both with another content."""

    added: pl.DataFrame
    removed: pl.DataFrame
    changed: pl.DataFrame  # the key, and `columns`: the names of the columns that differ

    @property
    def empty(self) -> bool:
        """Whether the two versions hold the same rows."""
        return not (self.added.height or self.removed.height or self.changed.height)


def diff(before: pl.DataFrame, after: pl.DataFrame, key: list[str]) -> Diff:
    """Compare two frames by `key`; a column that only one of them has differs on every common row."""
    added = after.join(before, on=key, how="anti")
    removed = before.join(after, on=key, how="anti")
    common = before.select(key).join(after.select(key), on=key, how="inner").sort(key)
    left = common.join(before, on=key, how="left", maintain_order="left")
    right = common.join(after, on=key, how="left", maintain_order="left")
    columns = [name for name in dict.fromkeys([*before.columns, *after.columns]) if name not in key]
    differs = {
        name: (~left[name].eq_missing(right[name]))
        if name in left.columns and name in right.columns and left.schema[name] == right.schema[name]
        else pl.Series(name, [True] * common.height, dtype=pl.Boolean)
        for name in columns
    }
    named = [pl.when(pl.Series(flags)).then(pl.lit(name)) for name, flags in differs.items()]
    listed = pl.concat_list(named).list.drop_nulls() if named else pl.lit([], dtype=pl.List(pl.String))
    changed = common.with_columns(columns=listed).filter(pl.col("columns").list.len() > 0)
    return Diff(added, removed, changed)


def filled(rows: pl.LazyFrame, schema: type[Table]) -> pl.LazyFrame:
    """Rows with today's columns where they only lack some that may be null; any others as they are."""
    columns, wanted = rows.collect_schema(), schema.polars_schema()
    if columns == wanted or differing(columns, schema):
        return rows
    return rows.match_to_schema(wanted, missing_columns="insert", missing_struct_fields="insert")


def in_schema(rows: pl.DataFrame, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of a release with exactly these columns and fields: others left out, null where there was none.

    Raises polars' SchemaError where a column holds values of another type.
    """
    return rows.match_to_schema(
        schema,
        missing_columns="insert",
        missing_struct_fields="insert",
        extra_columns="ignore",
        extra_struct_fields="ignore",
    )


def differing(columns: Mapping[str, pl.DataType], schema: type[Table]) -> list[str]:
    """The columns for which rows cannot be brought into today's schema, sorted by name; none where they can."""
    today = schema.columns()
    return sorted(name for name in {*columns, *today} if name not in today or not _fits(columns.get(name), today[name]))


def _fits(dtype: Any, column: dy.Column) -> bool:
    """Whether a column of this type is today's, but for fields that it lacks and that may be null."""
    if dtype is None:
        return column.nullable
    if isinstance(column, dy.List) and isinstance(dtype, pl.List):
        return _fits(dtype.inner, column.inner)
    if isinstance(column, dy.Struct) and isinstance(dtype, pl.Struct):
        fields = dtype.to_schema()
        return set(fields) <= set(column.inner) and all(
            _fits(fields.get(name), inner) for name, inner in column.inner.items()
        )
    return bool(dtype == column.dtype)
