"""Rows of releases that other versions of the project made: their columns and fields may be others than today's."""

from collections.abc import Mapping
from typing import Any

import polars as pl

Form = dict[str, pl.DataType]


def in_form(rows: pl.DataFrame, form: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """`rows` with exactly these columns and fields: others left out, null where there was none.

    Raises polars' SchemaError where a column holds values of another type.
    """
    return rows.match_to_schema(
        form,
        missing_columns="insert",
        missing_struct_fields="insert",
        extra_columns="ignore",
        extra_struct_fields="ignore",
    )


def shared(one: Mapping[str, pl.DataType], other: Mapping[str, pl.DataType]) -> Form:
    """The columns that both have, with the fields that both have; what is of two types is left out."""
    found = {name: _shared(dtype, other[name]) for name, dtype in one.items() if name in other}
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def _shared(one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        inner = _shared(_made(one.inner), _made(other.inner))
        return None if inner is None else pl.List(inner)
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        fields = shared(_fields(one), _fields(other))
        return pl.Struct(fields) if fields else None
    return one if one == other else None


def leaves(form: Mapping[str, pl.DataType]) -> dict[str, str]:
    """What a form holds at last: `column.field` → type; the members of a list are `column[]`."""
    found: dict[str, str] = {}
    for name, dtype in form.items():
        found |= _leaves(name, dtype)
    return found


def _leaves(name: str, dtype: pl.DataType) -> dict[str, str]:
    if isinstance(dtype, pl.List):
        return _leaves(f"{name}[]", _made(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return leaves({f"{name}.{field}": inner for field, inner in _fields(dtype).items()})
    return {name: str(dtype)}


def _fields(dtype: pl.Struct) -> Form:
    return {field.name: _made(field.dtype) for field in dtype.fields}


def _made(dtype: Any) -> pl.DataType:
    """An inner type may stand as a class."""
    made: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return made
