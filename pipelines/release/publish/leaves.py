"""The strings of a batch of rows as a column, so that many rows are looked through at once."""

from collections.abc import Collection, Iterator

import polars as pl

# What `leaves` gives: the row, and what a string is: a label (what stands under a name of `labels`), part of a system
# prompt (ours), or the strings of a list in one, for a text may have been cut up (joined).
SCHEMA = {"row": pl.UInt32, "text": pl.String, "label": pl.Boolean, "ours": pl.Boolean, "joined": pl.Boolean}


def leaves(rows: pl.DataFrame, labels: Collection[str]) -> pl.DataFrame:
    """Every string within the rows, but for nulls and what is empty: a frame of SCHEMA."""
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    flags = {"label": pl.lit(False), "ours": pl.lit(False), "joined": pl.lit(False)}
    columns = [
        part
        for name in rows.columns
        for part in _parts(rows.select(row=row, value=name, **flags | {"label": pl.lit(name in labels)}), labels)
    ]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *columns]).filter(pl.col("text").str.len_bytes() > 0)


def _parts(values: pl.DataFrame, labels: Collection[str]) -> Iterator[pl.DataFrame]:
    """The strings of a column `value` of any type."""
    kind = values.schema["value"]
    if kind == pl.String:
        yield values.select("row", "label", "ours", "joined", text="value").select(*SCHEMA)
    elif isinstance(kind, pl.List):
        if kind.inner == pl.String:
            joined = values.with_columns(pl.col("value").list.join(""), joined=pl.lit(True))
            yield from _parts(joined, labels)
        yield from _parts(values.explode("value"), labels)
    elif isinstance(kind, pl.Struct):
        fields = [field.name for field in kind.fields]
        if "role" in fields:
            is_ours = pl.col("ours") | (pl.col("value").struct.field("role") == "system").fill_null(False)
            values = values.with_columns(ours=is_ours)
        for name in fields:
            value, label = pl.col("value").struct.field(name).alias("value"), pl.col("label") | (name in labels)
            yield from _parts(values.select("row", "ours", "joined", value, label=label), labels)
