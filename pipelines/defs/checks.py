"""Blocking checks of every table that a stage makes: its schema's rules, and rows in = rows kept + rows dropped."""

from collections.abc import Iterator

import dagster as dg
import dataframely as dy

from pipelines.defs.resources import HomeResource
from pipelines.stages import STAGES, Stage, accounts
from pipelines.store import Store
from schemas.tables import TABLES


def _checks(stage: Stage, table: str) -> dg.AssetChecksDefinition:
    """Both checks of a table, on what is stored, read back."""
    specs = [
        dg.AssetCheckSpec("schema", asset=table, blocking=True, description="keys unique, ranges, closed sets, types")
    ]
    if table in stage.units:
        specs.append(
            dg.AssetCheckSpec("accounts", asset=table, blocking=True, description="rows in = rows kept + rows dropped")
        )

    @dg.multi_asset_check(name=f"{table}_checks", specs=specs)
    def check(home: HomeResource) -> Iterator[dg.AssetCheckResult]:
        store = home.store()
        yield _schema(table, store)
        if table in stage.units:
            yield _accounts(stage, table, store)

    return check


def _schema(table: str, store: Store) -> dg.AssetCheckResult:
    try:
        rows = TABLES[table].validate(store.read(table).collect(), cast=True)
    except (dy.exc.ValidationError, dy.exc.SchemaError) as error:
        return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=False, metadata={"problem": str(error)})
    return dg.AssetCheckResult(asset_key=table, check_name="schema", passed=True, metadata={"rows": rows.height})


def _accounts(stage: Stage, table: str, store: Store) -> dg.AssetCheckResult:
    settled = accounts(stage, table, store)
    return dg.AssetCheckResult(
        asset_key=table,
        check_name="accounts",
        passed=all(account.balanced for account in settled),
        metadata={account.unit: str(account) for account in settled},
    )


checks = [_checks(stage, table) for stage in STAGES for table in stage.tables]
