"""The assets, one multi-asset a stage, the two tables of imported data sets, and the blocking checks of them all.

Thin: `flow.stages` does it. Checked are the schema's rules, and rows in = rows kept + rows dropped; of a table that is
made by asking, that answers alone have not halved it.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg

from pipelines.core.files import storage_errors_reported
from pipelines.core.stage import Stage
from pipelines.defs.figures import Figures, spent
from pipelines.defs.keys import keys_of
from pipelines.defs.metadata import column_schema, describe
from pipelines.defs.presentation import group_of, page_of, spelt_out
from pipelines.defs.resources import HomeResource
from pipelines.errors import InvalidRows, Shrunk
from pipelines.flow.clients import PAID, ClientPool
from pipelines.flow.runner import Runner, code_of, reconciliations
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.progress import Lines
from pipelines.store.reconciliation import Reconciliation
from pipelines.store.store import Store, Version
from pipelines.store.suppression import alone
from schemas.tables import TABLES

data_sets = dg.DynamicPartitionsDefinition(name="data_set")

_C = dg.AutomationCondition
# What is made of the others does not wait for a day that nobody crawled, a set not imported, a label not given.
_FROM_OUTSIDE = dg.AssetSelection.groups(group_of("sources"), group_of("review"))
# For what costs no money: once what it is made from, or its code, is another, and the checks of that have passed; after
# a run that failed once more, and then no more until something changes.
WHEN_NEW = (
    (
        _C.any_deps_updated()
        .replace("newly_updated", _C.data_version_changed())
        .since(_C.newly_requested() | _C.initial_evaluation())
        | _C.code_version_changed()
        | _C.newly_missing()
        | _C.execution_failed().newly_true()
    )
    & ~_C.in_progress()
    & ~_C.any_deps_in_progress()
    & ~_C.any_deps_missing().ignore(_FROM_OUTSIDE)
    & ~_C.any_deps_match(_C.any_checks_match(_C.check_failed(), blocking_only=True))
).with_label("what it is made from is new")


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
        group_name=group_of(group),
        description=spelt_out(schema.__doc__ or ""),
        code_version=code,
        kinds={"polars", "parquet"},
        metadata={"dagster/column_schema": column_schema(schema), **page_of(group)},
    )


def _result(version: Version, metadata: Mapping[str, Any]) -> dg.MaterializeResult[None]:
    data_version = dg.DataVersion(version.version)
    return dg.MaterializeResult(asset_key=version.table, data_version=data_version, metadata=metadata)


def _described(version: Version, home: HomeResource, instance: dg.DagsterInstance) -> Mapping[str, Any]:
    """The metadata of a version that stands: those of its last event, for to describe it costs reading it."""
    event = instance.get_latest_materialization_event(dg.AssetKey(version.table))
    last = event.asset_materialization if event else None
    if last is not None and (last.tags or {}).get("dagster/data_version") == version.version:
        return last.metadata
    return describe(version, home.store())


def _import_asset(table: str) -> dg.AssetsDefinition:
    checks = _check_specs(table, "schema", "reconciliation")

    @dg.multi_asset(name=table, specs=[_spec(table, "sources")], check_specs=checks, partitions_def=data_sets)
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
        yield _result(version, describe(version, home.store()))
        yield _check_schema(version.table, home.store(), version.partition)
        dropped = sum(rows for reason, rows in version.manifest.reasons.items() if reason.startswith("record: "))
        records = Reconciliation("record", version.manifest.runs[-1].note["records"], version.rows, dropped)
        yield _check_reconciliations(version.table, [records])

    return imported


def _stage_asset(stage: Stage) -> dg.AssetsDefinition:
    specs = [
        _spec(table, stage.group, stage.parents, code_of(stage)).replace_attributes(
            automation_condition=None if stage.asks else WHEN_NEW
        )
        for table in stage.tables
    ]
    # Of stages that could run, the earlier of the list does: a budget that ends has bought what others need.
    priority = {"dagster/priority": str(-STAGES.index(stage))}
    if not stage.asks:

        @dg.multi_asset(name=stage.name, specs=specs, op_tags=priority)
        def made(
            context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]
        ) -> Iterator[dg.MaterializeResult[None]]:
            yield from _made(stage, context, home, None)

        return made

    sizes = [spec for table in stage.tables for spec in _check_specs(table, "size")]

    @dg.multi_asset(name=stage.name, specs=specs, check_specs=sizes, op_tags=priority)
    def asked(
        context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource], clients: dg.ResourceParam[ClientPool]
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        try:
            yield from _made(stage, context, home, clients)
        except Shrunk as error:
            rows = {"rows": error.before, "rows it would have": error.after}
            yield _checked(error.table, "size", False, **rows, problem=error.what, hint=error.hint)
            raise
        store = home.store()
        for table in stage.tables:
            there = table not in home.left and store.pointer(table) is not None
            yield _checked(table, "size", True, **({"rows": store.version(table).rows} if there else _NEVER_MADE))

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
        runner = home.runner(clients)
        forecast = _forecast(runner, stage)
        if forecast:
            context.log.info("to be asked, at most: %s", ", ".join(f"{name} {n:,}" for name, n in forecast.items()))
        outcome = runner.refresh(stage)
    for damaged in outcome.damaged:
        context.log.warning("%s: it was made again", damaged)
    if outcome.waits is not None:
        how = "made of what is answered" if outcome.ran else "left as it stands"
        context.log.warning("%s: it waits %s", how, outcome.waits)
    elif not outcome.ran:
        context.log.info("up to date: the version stands")
    for version in outcome.versions:
        described = describe(version, home.store()) if outcome.ran else _described(version, home, context.instance)
        yield _result(version, {**described, **spent(home.folder, stage), **forecast})
    # What waits fails no run: what needs it waits as well, and all else is made.
    there = {version.table for version in outcome.versions}
    for table in (table for table in stage.tables if table not in there):
        yield dg.MaterializeResult(asset_key=table, metadata={"state": f"never made: it waits {outcome.waits}"})
    if home.report is not None:
        home.left.update(() if outcome.ran else stage.tables)
        home.report(outcome)


def _forecast(runner: Runner, stage: Stage) -> Figures:
    """What a stage that is due would ask of paid models, and the most that it may cost; nothing of others."""
    if not stage.asks or not runner.status(stage).due or runner.provider(stage) not in PAID:
        return {}
    estimate = runner.estimate(stage)
    return {"forecast_calls": estimate.calls, f"forecast_{estimate.currency}": round(float(estimate.cost), 4)}


_CHECKS = {
    "schema": "keys unique, ranges, closed sets, types",
    "reconciliation": "rows in = rows kept + rows dropped",
    "size": "answers alone have not halved it: else the version before stays",
}
_NEVER_MADE = {"state": "never made, or left as it stood"}  # of a table that waits there is nothing to check


def _check_specs(table: str, *names: str) -> list[dg.AssetCheckSpec]:
    return [dg.AssetCheckSpec(name, asset=table, blocking=True, description=_CHECKS[name]) for name in names]


def _checked(table: str, check: str, passed: bool, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(asset_key=table, check_name=check, passed=passed, metadata=metadata)


def _checks(stage: Stage, table: str) -> dg.AssetChecksDefinition:
    """Both checks of a table that a stage makes, on what is stored, read back."""
    names = ("schema", "reconciliation") if table in stage.units else ("schema",)

    @dg.multi_asset_check(name=f"{table}_checks", specs=_check_specs(table, *names))
    def check(home: dg.ResourceParam[HomeResource]) -> Iterator[dg.AssetCheckResult]:
        store = home.store()
        if table in home.left or store.pointer(table) is None:
            yield from (_checked(table, name, True, **_NEVER_MADE) for name in names)
            return
        yield _check_schema(table, store)
        if table in stage.units:
            yield _check_reconciliations(table, reconciliations(stage, table, store))

    return check


def _check_schema(table: str, store: Store, partition: str | None = None) -> dg.AssetCheckResult:
    try:
        rows = store.validate(store.version(table, partition=partition))
    except InvalidRows as error:
        return _checked(table, "schema", False, problem=error.what)
    return _checked(table, "schema", True, rows=rows)


def _check_reconciliations(table: str, results: list[Reconciliation]) -> dg.AssetCheckResult:
    balanced = all(one.balanced for one in results)
    return _checked(table, "reconciliation", balanced, **{one.unit: str(one) for one in results})


# What people fill (docs/reviewing.md): no run makes it.
labels = [
    _spec(table, "review", parents).replace_attributes(kinds={"parquet"})
    for table, parents in {
        "cer_votes": ("cer_candidates",),
        "cer_labels": ("cer_votes",),
        "coe_reviews": ("coe_chains",),
        "rankings": (),
    }.items()
]
imports = [_import_asset("imported_posts"), _import_asset("imported_dialogues")]
stages = [_stage_asset(stage) for stage in STAGES]
checks = [_checks(stage, table) for stage in STAGES for table in stage.tables]
