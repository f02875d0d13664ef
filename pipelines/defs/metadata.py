"""What Dagster shows of a version: columns with descriptions, counts, drop reasons, a sample, merged pairs, pictures.

Dagster's event log is never pruned. So of a private column, written before personal data are removed or leading to
it, only the length goes there; of what finds a post at its source beside the name that we gave it, nothing; and of a
row with signs of risk, or by somebody below 18, nothing at all.
"""

from collections.abc import Container, Iterable
from functools import partial
from typing import Any

import dagster as dg
import polars as pl

from pipelines.defs.plots import diversity_bars, drawn, plots
from pipelines.operations.paper_tables import dialogue_diversity
from pipelines.store.store import Store, Version
from schemas.table import Table
from schemas.tables import PARTITIONED, TABLES

_SAMPLE = 10
_REASONS = 30
_CHARACTERS = 200  # of a cell
# A row is known by its key, which an erasure takes away wherever it stands. A number of a site, or a moment, it could
# not tell from any other.
_UNSHOWN = frozenset({"source_id", "url", "posted_at", "fetched_at"})
_PAIRS = 10
_MERGED_FROM = {"unique_posts": "clean_posts", "unique_dialogues": "clean_dialogues"}
_TYPES = {int: "int", float: "float"}
_LINE, _FEW = 40, 8  # characters that a browser shows in one line: of Latin, and of Chinese


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
        "dagster/row_count": version.rows,
        "dropped": version.dropped,
        "version": version.version,
        "drop_reasons": _reasons(version),
    }
    if version.table not in PARTITIONED:  # the raw zone: not even ten rows of it
        dropped = store.read_dropped(version.table, version.version).collect()
        shown |= _samples(rows, TABLES[version.table])
        if (pairs := _merged_pairs(version, rows, dropped, store)) is not None:
            shown["merged_pairs"] = records(map(_cells, pairs.to_dicts()))
        shown |= {name: dg.MetadataValue.md(made) for name, made in plots(version.table, rows, dropped).items()}
        if version.table == "rewritten_dialogues" and rows.height:
            shown |= _diversity(version, store)
    note = dict(version.manifest.runs[-1].note)
    if note:
        if "unknown_strategies" in note:  # the names themselves are the file's own words: they stay in the manifest
            note["unknown_strategies"] = sum(note["unknown_strategies"].values())
        shown["read"] = dg.MetadataValue.json(note)
    return shown


def _diversity(version: Version, store: Store) -> dict[str, Any]:
    """How varied rewritten dialogues are beside those that they were made from."""
    figures = dialogue_diversity(store, version)
    shown: dict[str, Any] = {"diversity": records(map(_cells, figures.to_dicts()))}
    for lang in figures["lang"].unique(maintain_order=True):
        if (made := drawn(partial(diversity_bars, figures=figures, lang=lang))) is not None:
            shown[f"diversity_{lang}"] = dg.MetadataValue.md(made)
    return shown


def records(entries: Iterable[dict[str, Any]]) -> dg.TableMetadataValue:
    """Records of one form as a table, its types those of the first; of none a table without columns."""
    rows = list(entries)
    columns = [dg.TableColumn(name, _TYPES.get(type(value), "string")) for name, value in (rows[:1] or [{}])[0].items()]
    return dg.TableMetadataValue([dg.TableRecord(one) for one in rows], dg.TableSchema(columns))


def _reasons(version: Version) -> dg.TableMetadataValue:
    counts = [(name.split(": ", 1), rows) for name, rows in list(version.manifest.reasons.items())[:_REASONS]]
    return records({"unit": unit, "reason": reason, "rows": rows} for (unit, reason), rows in counts)


def _samples(rows: pl.DataFrame, table: type[Table]) -> dict[str, dg.TableMetadataValue]:
    """Some rows: what was written, and apart from it all else, for a browser squeezes texts between many columns."""
    private, key = set(table.private_columns()), table.key()
    shown = rows.filter(presentable(rows)).head(_SAMPLE)
    cells = [_cells(row, private) for row in shown.to_dicts()]
    columns = [name for name in table.column_names() if name not in _UNSHOWN]
    texts = [name for name in columns if any(_reads(one[name]) for one in cells)]
    others = [name for name in columns if name not in texts]
    chosen = {"sample": dict.fromkeys([*key, *texts]), "sample_fields": others}
    return {name: records({column: one[column] for column in of_it} for one in cells) for name, of_it in chosen.items()}


def _reads(cell: str | float | bool | None) -> bool:
    """Whether it is Chinese to be read, that a browser may break anywhere, or longer than a column is wide."""
    return isinstance(cell, str) and len(cell) > (_LINE if cell.isascii() else _FEW)


def _cells(row: dict[str, Any], private: Container[str] = ()) -> dict[str, Any]:
    return {name: _cell(value, name in private) for name, value in row.items()}


def _cell(value: Any, private: bool) -> str | int | float | bool | None:
    if value is None:
        return None
    if isinstance(value, str):
        return f"{len(value)} characters" if private else _short(value)
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, list):
        return f"{len(value)} items" if private else _short(f"{len(value)}: {' · '.join(map(_words_of, value))}")
    return f"{len(value)} fields" if isinstance(value, dict) else _short(str(value))


def _words_of(item: Any) -> str:
    """An item of a list: its text, where it has one, or its fields."""
    if isinstance(item, dict):
        return str(item.get("text") or " ".join(str(value) for value in item.values() if value is not None))
    return str(item)


def _short(words: str) -> str:
    return words if len(words) <= _CHARACTERS else words[:_CHARACTERS] + "…"


def presentable(rows: pl.DataFrame) -> pl.Expr:
    """Rows that may be shown outside of the tables: without signs of risk, and not by somebody below 18."""
    shown = pl.lit(True)
    if "risk" in rows.columns:
        shown &= pl.col("risk").list.len() == 0
    if "under_18" in rows.columns:
        shown &= ~pl.col("under_18")
    return shown


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
