"""What Dagster shows of a version: columns, figures, drop reasons, a sample, merged pairs, pictures."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import dagster as dg
import polars as pl

from pipelines.defs.figures import figures
from pipelines.defs.plots import diversity_bars, drawn, plots
from pipelines.defs.samples import as_records, presentable, records, samples
from pipelines.operations.paper_tables import dialogue_diversity
from pipelines.store.store import Store, Version
from schemas.table import Table
from schemas.tables import PARTITIONED

_REASONS = 30
_PAIRS = 10
_MERGED_FROM = {"unique_posts": "clean_posts", "unique_dialogues": "clean_dialogues"}


def column_schema(table: type[Table]) -> dg.TableSchema:
    """Columns, types and descriptions, from the table's schema."""
    described, key = table.describe(), set(table.key())
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=field.name,
                type=str(field.type).replace("element: ", ""),
                description=described[field.name],
                constraints=dg.TableColumnConstraints(
                    nullable=table.columns()[field.name].nullable, unique=key == {field.name}
                ),
            )
            for field in table.arrow_schema()
        ]
    )


def describe(version: Version, store: Store) -> dict[str, Any]:
    """The metadata of a version that was just made, or is up to date."""
    rows = store.read(version.table, version.version, version.partition).collect()
    shown: dict[str, Any] = {
        **figures(version, rows),
        "version": version.version,
        "drop_reasons": _reasons(version),
    }
    if version.table not in PARTITIONED:  # the raw zone: not even ten rows of it
        dropped = store.read_dropped(version.table, version.version).collect()
        shown |= samples(version.table, rows, store)
        if (pairs := _merged_pairs(version, rows, dropped, store)) is not None:
            shown["merged_pairs"] = as_records(pairs)
        pictures = [*plots(version.table, rows, dropped).values()]
        if version.table == "rewritten_dialogues" and rows.height:
            diversity = dialogue_diversity(store, version)
            shown["diversity"] = as_records(diversity)
            pictures += _diversity(diversity)
        shown |= _in_one(pictures)
    note = dict(version.manifest.runs[-1].note)
    if note:
        if "unknown_strategies" in note:  # the names themselves are the file's own words: they stay in the manifest
            note["unknown_strategies"] = sum(note["unknown_strategies"].values())
        shown["read"] = dg.MetadataValue.json(note)
    return shown


def materialization(
    version: Version, store: Store, key: dg.AssetKey, partition: str | None = None
) -> dg.AssetMaterialization:
    """What Dagster records of a version that no run of its own has made."""
    tags = {"dagster/data_version": version.version}
    return dg.AssetMaterialization(key, partition=partition, metadata=describe(version, store), tags=tags)


def _diversity(diversity: pl.DataFrame) -> Iterator[str]:
    """How varied rewritten dialogues are beside those that they were made from, by language."""
    for lang in diversity["lang"].unique(maintain_order=True):
        if (made := drawn(partial(diversity_bars, figures=diversity, lang=lang))) is not None:
            yield made


def _in_one(pictures: list[str]) -> dict[str, dg.MetadataValue]:
    """Pictures as one entry, which says what they show: the web UI opens each entry in a dialogue of its own."""
    titles = [picture[len("![") : picture.index("](")] for picture in pictures]
    return {f"pictures: {'; '.join(titles)}": dg.MetadataValue.md("\n\n".join(pictures))} if pictures else {}


def _reasons(version: Version) -> dg.TableMetadataValue:
    counts = [(name.split(": ", 1), rows) for name, rows in list(version.manifest.reasons.items())[:_REASONS]]
    return records({"unit": unit, "reason": reason, "rows": rows} for (unit, reason), rows in counts)


def _merged_pairs(version: Version, rows: pl.DataFrame, dropped: pl.DataFrame, store: Store) -> pl.DataFrame | None:
    """Ten rows that were merged into others, the least similar first: `row`, `survivor`, `similarity`, `row_text`,
    `survivor_text`; None for a table in which nothing is merged.
    """
    parents = version.manifest.runs[-1].parents
    source = _MERGED_FROM.get(version.table, "")
    if source not in parents:
        return None
    row_id = rows.columns[0]
    pairs = dropped.filter(pl.col("reason") == "near_duplicate", pl.col("unit") != "answer").select(
        pl.col("row_id").alias("row"),
        pl.col("detail").str.extract(r"^([\d.]+) like ", 1).cast(pl.Float64).alias("similarity"),
        pl.col("detail").str.extract(r" like (.+)$", 1).alias("survivor"),
    )
    before = store.read(source, parents[source]).filter(
        pl.col(row_id).is_in(pl.concat([pairs["row"], pairs["survivor"]]).implode())
    )
    texts = before.collect().filter(presentable(rows)).select(row_id, text=_words(rows))
    return (
        pairs.join(texts.rename({row_id: "row", "text": "row_text"}), on="row")
        .join(texts.rename({row_id: "survivor", "text": "survivor_text"}), on="survivor")
        .sort("similarity", "row")
        .head(_PAIRS)
        .select("row", "survivor", "similarity", "row_text", "survivor_text")
    )


def _words(rows: pl.DataFrame) -> pl.Expr:
    if "text" in rows.columns:
        return pl.col("text")
    return pl.col("turns").list.eval(pl.element().struct.field("text")).list.join(" · ")
