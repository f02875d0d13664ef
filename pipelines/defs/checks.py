"""Blocking checks of every table: its schema's rules, and rows in = rows kept + rows dropped."""

from collections.abc import Iterator

import dagster as dg
import dataframely as dy

from pipelines.accounts import Account
from pipelines.defs.resources import HomeResource
from pipelines.making import accounts
from pipelines.stage import Stage
from pipelines.stages import STAGES
from pipelines.store import Store, Version
from schemas.tables import TABLES


def specs_of(table: str, *, accounted: bool = True) -> list[dg.AssetCheckSpec]:
    """What is checked of a table."""
    described = {"schema": "keys unique, ranges, closed sets, types"}
    if accounted:
        described["accounts"] = "rows in = rows kept + rows dropped"
    return [dg.AssetCheckSpec(name, asset=table, blocking=True, description=told) for name, told in described.items()]


def of_import(version: Version, store: Store) -> Iterator[dg.AssetCheckResult]:
    """Both checks of a data set that was just imported, on what is stored, read back."""
    yield _schema(version.table, store, version.partition)
    dropped = sum(rows for reason, rows in version.manifest.reasons.items() if reason.startswith("record: "))
    yield _accounts(
        version.table, [Account("record", version.manifest.runs[-1].note["records"], version.rows, dropped)]
    )


def _checks(stage: Stage, table: str) -> dg.AssetChecksDefinition:
    """Both checks of a table that a stage makes, on what is stored, read back."""
    specs = specs_of(table, accounted=table in stage.units)

    @dg.multi_asset_check(name=f"{table}_checks", specs=specs)
    def check(home: HomeResource) -> Iterator[dg.AssetCheckResult]:
        store = home.store()
        yield _schema(table, store)
        if table in stage.units:
            yield _accounts(table, accounts(stage, table, store))

    return check


def _schema(table: str, store: Store, partition: str | None = None) -> dg.AssetCheckResult:
    try:
        rows = TABLES[table].validate(store.read(table, partition=partition).collect(), cast=True)
    except (dy.exc.ValidationError, dy.exc.SchemaError) as error:
        return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=False, metadata={"problem": str(error)})
    return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=True, metadata={"rows": rows.height})


def _accounts(table: str, settled: list[Account]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=table,
        check_name="accounts",
        passed=all(account.balanced for account in settled),
        metadata={account.unit: str(account) for account in settled},
    )


checks = [_checks(stage, table) for stage in STAGES for table in stage.tables]
