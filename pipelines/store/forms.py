"""Rows in the form that their table had when they were written, and in the one that it has today.

A column, or a field within one, that has come since and may be null is filled with null. Any other difference changes
what rows mean: they are read as they were written, and nothing is made from them.
"""

from collections.abc import Mapping
from typing import Any

import dataframely as dy
import polars as pl

from schemas.table import Table


def filled(rows: pl.LazyFrame, schema: type[Table]) -> pl.LazyFrame:
    """Rows with the columns of today where they only lack what may be null; any others as they are."""
    found, wanted = rows.collect_schema(), schema.polars_schema()
    if found == wanted or differing(found, schema):
        return rows
    return rows.select(
        pl.col(name).cast(dtype) if name in found else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in wanted.items()
    )


def differing(found: Mapping[str, pl.DataType], schema: type[Table]) -> list[str]:
    """The columns for which rows cannot be brought into the form of today, sorted by name; none where they can."""
    columns = schema.columns()
    return sorted(
        name for name in {*found, *columns} if name not in columns or not _fits(found.get(name), columns[name])
    )


def _fits(found: Any, column: dy.Column) -> bool:
    """Whether a column as it was found is one of today, but for fields that it lacks and that may be null."""
    if found is None:
        return column.nullable
    if isinstance(column, dy.List) and isinstance(found, pl.List):
        return _fits(found.inner, column.inner)
    if isinstance(column, dy.Struct) and isinstance(found, pl.Struct):
        fields = {field.name: field.dtype for field in found.fields}
        return set(fields) <= set(column.inner) and all(
            _fits(fields.get(name), inner) for name, inner in column.inner.items()
        )
    return bool(found == column.dtype)
