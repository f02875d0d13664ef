"""The columns of a published config: for the card's front matter in the form of `datasets`, and as a table to read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dataframely as dy
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.release.publish.public import WITHHELD, WITHHELD_MEANS
from schemas.tables import TABLES

_TYPES = {"double": "float64", "halffloat": "float16", "float": "float32"}


class Described(NamedTuple):
    """A column, or a field of one, and what it holds."""

    name: str
    kind: str
    meaning: str


def features(shard: Path) -> list[dict[str, Any]]:
    """The `features` of a `dataset_info`, as `datasets` reads them."""
    return [_feature(field) for field in pq.read_schema(shard)]


def arrow_bytes(shard: Path) -> int:
    """What `datasets` takes for the size of a shard: that of its rows in Arrow, not of the file."""
    with pq.ParquetFile(shard) as file:
        return sum(batch.nbytes for batch in file.iter_batches())


def described(config: str) -> list[Described]:
    """Every column of a config and every field in it, as the schemas describe them."""
    rows = [one for name, column in TABLES[config].columns().items() for one in _walk(name, column)]
    return [*rows, Described(WITHHELD, "bool", WITHHELD_MEANS)]


def _feature(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, **_kind(field.type)}


def _kind(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = _kind(kind.value_type)
        return {"list": inner.get("struct", inner.get("dtype", inner))}
    if pa.types.is_struct(kind):
        return {"struct": [_feature(field) for field in kind]}
    if pa.types.is_timestamp(kind):
        return {"dtype": f"timestamp[{kind.unit}, tz={kind.tz}]"}
    return {"dtype": _TYPES.get(str(kind), str(kind))}


def _walk(name: str, column: dy.Column) -> Iterator[Described]:
    meaning = column.description or ""
    if isinstance(column, dy.List):
        inner = column.inner
        if isinstance(inner, dy.Struct):
            yield Described(name, "list", meaning)
            for key, below in inner.inner.items():
                yield from _walk(f"{name}[].{key}", below)
        else:
            yield Described(name, f"list of {_short(inner)}", meaning)
    elif isinstance(column, dy.Struct):
        yield Described(name, "struct", meaning)
        for key, below in column.inner.items():
            yield from _walk(f"{name}.{key}", below)
    else:
        yield Described(name, _short(column), meaning)


def _short(column: dy.Column) -> str:
    return str(column.dtype).lower()
