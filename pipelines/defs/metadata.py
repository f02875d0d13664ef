"""What Dagster shows of a version: columns with descriptions, counts, drop reasons, a sample, a picture.

Dagster's event log is never pruned. So until the step that removes personal data has run, nothing that people wrote
goes there: of a private column only its length.
"""

from typing import Any

import dagster as dg
import polars as pl

from pipelines.defs.pictures import picture
from pipelines.store import Store, Version
from schemas.table import Table
from schemas.tables import PARTITIONED, TABLES

_SAMPLE = 10
_REASONS = 30


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
    """The metadata of a version that was just made, or found to be up to date."""
    rows = store.read(version.table, version.version, version.partition).collect()
    shown: dict[str, Any] = {
        "dagster/row_count": version.rows,
        "dropped": version.dropped,
        "version": version.version,
        "drop_reasons": _reasons(version),
    }
    if version.table not in PARTITIONED:  # the raw zone: not even ten rows of it
        shown["sample"] = _sample(rows, TABLES[version.table])
    note = dict(version.manifest.runs[-1].note)
    if note:
        # The names themselves are the file's own words: they stay in the manifest.
        shown["read"] = dg.MetadataValue.json({**note, "unknown_strategies": sum(note["unknown_strategies"].values())})
    drawn = picture(version.table, rows)
    if drawn is not None:
        shown["picture"] = dg.MetadataValue.md(drawn)
    return shown


def _reasons(version: Version) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord({"unit": unit, "reason": reason, "rows": rows})
        for name, rows in list(version.manifest.reasons.items())[:_REASONS]
        for unit, reason in [name.split(": ", 1)]
    ]
    columns = [("unit", "string"), ("reason", "string"), ("rows", "int")]
    return _table(records, columns)


def _sample(rows: pl.DataFrame, table: type[Table]) -> dg.TableMetadataValue:
    private = set(table.private_columns())
    records = [
        dg.TableRecord({name: _cell(value, name in private) for name, value in row.items()})
        for row in rows.head(_SAMPLE).iter_rows(named=True)
    ]
    return _table(records, [(name, "string") for name in table.column_names()])


def _table(records: list[dg.TableRecord], columns: list[tuple[str, str]]) -> dg.TableMetadataValue:
    schema = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns])
    return dg.TableMetadataValue(records, schema)


def _cell(value: Any, private: bool) -> str | int | float | bool | None:
    if value is None:
        return None
    if isinstance(value, str):
        return f"{len(value)} characters" if private else value
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, list):
        plain = not private and all(isinstance(item, str) for item in value)
        return ", ".join(value) if plain else f"{len(value)} items"
    return f"{len(value)} fields" if isinstance(value, dict) else str(value)
