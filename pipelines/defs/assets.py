"""The assets, one multi-asset a stage, the two tables of imported data sets, and the blocking checks of them all.

Thin: `flow.stages` does it. Checked are the schema's rules, and rows in = rows kept + rows dropped; of a table that is
made by asking, that answers alone have not halved it.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import dagster as dg
import dataframely as dy

from pipelines.core.files import storage_errors_reported
from pipelines.core.stage import Stage
from pipelines.defs.keys import keys_of
from pipelines.defs.metadata import column_schema, describe
from pipelines.defs.resources import HomeResource
from pipelines.errors import Shrunk
from pipelines.flow.clients import ClientPool
from pipelines.flow.refresh import refresh_stage
from pipelines.flow.runner import code_of, reconciliations
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.progress import Lines
from pipelines.store.reconciliation import Reconciliation
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.tables import TABLES

data_sets = dg.DynamicPartitionsDefinition(name="data_set")


class ImportConfig(dg.Config):
    """Which file is read as the partition, and how."""

    reader: str
    file: str
    mapping: str | None = None


def _spec(table: str, group: str, parents: tuple[str, ...] = (), code: str | None = None) -> dg.AssetSpec:
    schema = TABLES[table]
    return dg.AssetSpec(
        table,
        deps=[dep for parent in parents for dep in keys_of(parent)],
        group_name=group,
        description=schema.__doc__,
        code_version=code,
        kinds={"polars", "parquet"},
        metadata={"dagster/column_schema": column_schema(schema)},
    )


def _result(version: Version, home: HomeResource) -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(
        asset_key=version.table,
        data_version=dg.DataVersion(version.version),
        metadata=describe(version, home.store()),
    )


def _import_asset(table: str) -> dg.AssetsDefinition:
    @dg.multi_asset(name=table, specs=[_spec(table, "sources")], check_specs=specs_of(table), partitions_def=data_sets)
    def imported(
        context: dg.AssetExecutionContext, config: ImportConfig, home: dg.ResourceParam[HomeResource]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        # One data set a run: a range run would give all partitions one data version.
        with storage_errors_reported(home.folder):
            version = import_file(
                home.store(),
                home.folder,
                config.reader,
                Path(config.file),
                data_set=context.partition_key,
                mapping=Path(config.mapping) if config.mapping else None,
            )
        yield _result(version, home)
        yield from of_import(version, home.store())

    return imported


def _stage_asset(stage: Stage) -> dg.AssetsDefinition:
    specs = [_spec(table, stage.group, stage.parents, code_of(stage)) for table in stage.tables]
    # Of stages that could run, the earlier of the list does: a budget that ends has bought what others need.
    priority = {"dagster/priority": str(-STAGES.index(stage))}
    if not stage.asks:

        @dg.multi_asset(name=stage.name, specs=specs, op_tags=priority)
        def made(
            context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]
        ) -> Iterator[dg.MaterializeResult[None]]:
            yield from _made(stage, context, home, None)

        return made

    sizes = [spec_of_size(table) for table in stage.tables]

    @dg.multi_asset(name=stage.name, specs=specs, check_specs=sizes, op_tags=priority)
    def asked(
        context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], clients: dg.ResourceParam[ClientPool]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        try:
            yield from _made(stage, context, home, clients)
        except Shrunk as error:
            yield of_shrunk(error)
            raise
        for table in stage.tables:
            yield of_size(table, home.store())

    return asked


def _made(
    stage: Stage, context: dg.AssetExecutionContext, home: HomeResource, clients: ClientPool | None
) -> Iterator[dg.MaterializeResult[None]]:
    # One at a time, in every process: `splits` is read, added to and written, and a host's limits hold for a process.
    with (
        storage_errors_reported(home.folder),
        alone(home.folder, waits=context.log.info),
        clients.telling(Lines(context.log.info)) if clients else nullcontext(),
    ):
        outcome = refresh_stage(home.runner(clients), stage)
    for damaged in outcome.damaged:
        context.log.warning("%s: it was made again", damaged)
    if outcome.waits is not None:
        context.log.warning("left as it stands: it waits %s", outcome.waits)
    elif not outcome.ran:
        context.log.info("up to date: the version stands")
    for version in outcome.versions:
        yield _result(version, home)
    # What waits fails no run: what needs it waits as well, and all else is made.
    for table in set(stage.tables) - {version.table for version in outcome.versions}:
        yield dg.MaterializeResult(asset_key=table, metadata={"state": f"never made: it waits {outcome.waits}"})
    if home.report is not None:
        home.report(outcome)


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


imports = [_import_asset("imported_posts"), _import_asset("imported_dialogues")]
stages = [_stage_asset(stage) for stage in STAGES]
checks = [_checks(stage, table) for stage in STAGES for table in stage.tables]
