"""What a table is: a dataframely schema whose every column says what it holds, and its explicit Arrow schema."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import dataframely as dy
import polars as pl
import pyarrow as pa


def one_of(labels: tuple[str, ...], **column: Any) -> dy.String:
    """A string column with a closed set of values."""
    return dy.String(regex=f"^({'|'.join(map(re.escape, labels))})$", **column)


def instant(**column: Any) -> dy.Datetime:
    """A point in time, UTC, in microseconds."""
    return dy.Datetime(time_unit="us", time_zone="UTC", **column)


# On the metadata of a column that holds, or leads to, what people wrote.
PRIVATE = {"private": True}


class Table(dy.Schema):
    """A table of the project (DESIGN §4): columns, key and rules, declared once.

    `version` goes up when the meaning of a column changes although its type does not.
    """

    version: ClassVar[int] = 1

    @classmethod
    def key(cls) -> list[str]:
        """The columns that name a row."""
        return cls.primary_key()

    @classmethod
    def describe(cls) -> dict[str, str]:
        """The columns and what each holds."""
        return {name: column.description or "" for name, column in cls.columns().items()}

    @classmethod
    def private_columns(cls) -> list[str]:
        """The columns that hold, or lead to, what people wrote: shown nowhere until personal data are removed."""
        return [name for name, column in cls.columns().items() if (column.metadata or {}).get("private")]

    @classmethod
    def polars_schema(cls) -> pl.Schema:
        """Columns and polars types."""
        return pl.Schema({name: column.dtype for name, column in cls.columns().items()})

    @classmethod
    @cache
    def arrow_schema(cls) -> pa.Schema:
        """The explicit Arrow schema: plain `string` and `list`, descriptions as field metadata.

        Polars and pandas 3 write `large_string`; verl refuses to read files of both kinds together.
        """
        return plain_schema(cls.create_empty(), cls.describe())


def plain_schema(frame: pl.DataFrame, described: Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of a frame as it is written, each column with its description."""
    return pa.schema(
        pa.field(field.name, _plain(field.type), metadata={"description": described[field.name]})
        for field in frame.clear().to_arrow().schema
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        # "element" is Parquet's own name of a list's member, so that a file reads back as it was declared.
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return kind


def to_arrow(frame: pl.DataFrame, table: type[Table] | pa.Schema) -> pa.Table:
    """`frame` as an Arrow table of exactly a schema: a table's own, or one that an older version was written in."""
    schema = table if isinstance(table, pa.Schema) else table.arrow_schema()
    return frame.select(schema.names).to_arrow().cast(schema)


# Providers that are no model: people for the samples, the form of a dialogue alone, and the rules of older versions.
NO_MODEL = ("written", "structural", "rules")


class LlmMade(Table):
    """Columns of every row that a model, or what stands in for one, made (DESIGN §2.5)."""

    provider = one_of(
        ("openai", "replay", *NO_MODEL),
        description="what answered: an API, a recording, people; or nobody: the form alone, or rules (older versions)",
    )
    model_asked = dy.String(description="the model that was asked for")
    model_served = dy.String(nullable=True, description="the model that the server says answered")
    prompt_version = dy.String(description="id and version of the prompt")
    request_key = dy.String(description="SHA-256 of the exact payload: the key in the ledger")
    temperature = dy.Float64(nullable=True, description="as it was sent; null: none was, and the host has its own")


class Dropped(Table):
    """Rows that a step did not keep, each with its reason."""

    stage = dy.String(primary_key=True, description="the table whose making dropped the row")
    unit = dy.String(primary_key=True, description="what was dropped: record, post, answer, dialogue, round …")
    row_id = dy.String(primary_key=True, description="its id; of an unreadable record, file and line")
    reason = dy.String(regex=r"^[a-z][a-z0-9_]*$", description="why, as one word of a closed list per stage")
    detail = dy.String(nullable=True, description="the figure, the other row or the parser's words behind the reason")
