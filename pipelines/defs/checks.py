"""Blocking checks of every table: its schema's rules, and rows in = rows kept + rows dropped; of one that is made by
asking, that answers alone have not halved it.
"""

from collections.abc import Iterator

import dagster as dg
import dataframely as dy

from pipelines.core.stage import Stage
from pipelines.defs.resources import HomeResource
from pipelines.errors import Shrunk
from pipelines.flow.runner import reconciliations
from pipelines.flow.stages import STAGES
from pipelines.store import Store, Version
from pipelines.store.reconciliation import Reconciliation
from schemas.tables import TABLES


def specs_of(table: str, *, reconciled: bool = True) -> list[dg.AssetCheckSpec]:
    """What is checked of a table."""
    described = {"schema": "keys unique, ranges, closed sets, types"}
    if reconciled:
        described["reconciliation"] = "rows in = rows kept + rows dropped"
    return [
        dg.AssetCheckSpec(name, asset=table, blocking=True, description=description)
        for name, description in described.items()
    ]


def of_import(version: Version, store: Store) -> Iterator[dg.AssetCheckResult]:
    """Both checks of a data set that was just imported, on what is stored, read back."""
    yield _schema(version.table, store, version.partition)
    dropped = sum(rows for reason, rows in version.manifest.reasons.items() if reason.startswith("record: "))
    yield _reconciliations(
        version.table, [Reconciliation("record", version.manifest.runs[-1].note["records"], version.rows, dropped)]
    )


def _checks(stage: Stage, table: str) -> dg.AssetChecksDefinition:
    """Both checks of a table that a stage makes, on what is stored, read back."""
    specs = specs_of(table, reconciled=table in stage.units)

    @dg.multi_asset_check(name=f"{table}_checks", specs=specs)
    def check(home: dg.ResourceParam[HomeResource]) -> Iterator[dg.AssetCheckResult]:
        store = home.store()
        if store.pointer(table) is None:
            yield from (_of_nothing(table, one.name) for one in specs)
            return
        yield _schema(table, store)
        if table in stage.units:
            yield _reconciliations(table, reconciliations(stage, table, store))

    return check


def spec_of_size(table: str) -> dg.AssetCheckSpec:
    """What is checked of a table that is made by asking, while it is made."""
    described = "answers alone have not halved it: else the version before stays"
    return dg.AssetCheckSpec("size", asset=table, blocking=True, description=described)


def of_size(table: str, store: Store) -> dg.AssetCheckResult:
    """That a table stands as it was made."""
    if store.pointer(table) is None:
        return _of_nothing(table, "size")
    rows = store.version(table).rows
    return dg.AssetCheckResult(asset_key=table, check_name="size", passed=True, metadata={"rows": rows})


def _of_nothing(table: str, check: str) -> dg.AssetCheckResult:
    """Of a table that waits, and was never made, there is nothing to check."""
    return dg.AssetCheckResult(asset_key=table, check_name=check, passed=True, metadata={"state": "never made"})


def of_shrunk(error: Shrunk) -> dg.AssetCheckResult:
    """That a table was not made, and stays as it was."""
    figures: dict[str, int | str] = {
        "rows": error.before,
        "rows it would have": error.after,
        "problem": error.what,
        "hint": error.hint,
    }
    return dg.AssetCheckResult(asset_key=error.table, check_name="size", passed=False, metadata=figures)


def _schema(table: str, store: Store, partition: str | None = None) -> dg.AssetCheckResult:
    try:
        rows = TABLES[table].validate(store.read(table, partition=partition).collect(), cast=True)
    except (dy.exc.ValidationError, dy.exc.SchemaError) as error:
        return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=False, metadata={"problem": str(error)})
    return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=True, metadata={"rows": rows.height})


def _reconciliations(table: str, results: list[Reconciliation]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=table,
        check_name="reconciliation",
        passed=all(reconciliation.balanced for reconciliation in results),
        metadata={reconciliation.unit: str(reconciliation) for reconciliation in results},
    )


checks = [_checks(stage, table) for stage in STAGES for table in stage.tables]
