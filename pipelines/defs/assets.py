"""The assets: one multi-asset a stage, and the two tables of imported data sets. Thin: `flow.stages` does it."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import dagster as dg

from pipelines.core.files import storage_errors_reported
from pipelines.core.stage import Stage
from pipelines.defs.checks import of_import, of_shrunk, of_size, spec_of_size, specs_of
from pipelines.defs.crawl import crawled_sites, key_of
from pipelines.defs.metadata import column_schema, describe
from pipelines.defs.resources import HomeResource
from pipelines.errors import Shrunk
from pipelines.flow.clients import ClientPool
from pipelines.flow.runner import code_of
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.llm.progress import Lines
from pipelines.store import Version
from pipelines.store.home_lock import alone
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


def keys_of(table: str) -> list[dg.AssetKey]:
    """The assets that make a table: one a site for the crawled posts."""
    return [key_of(source) for source in crawled_sites()] if table == "raw_posts" else [dg.AssetKey(table)]


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
    if not stage.asks:

        @dg.multi_asset(name=stage.name, specs=specs)
        def made(
            context: dg.AssetExecutionContext, home: dg.ResourceParam[HomeResource]
        ) -> Iterator[dg.MaterializeResult[None]]:
            yield from _made(stage, context, home, None)

        return made

    @dg.multi_asset(name=stage.name, specs=specs, check_specs=[spec_of_size(table) for table in stage.tables])
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
    with storage_errors_reported(home.folder), alone(home.folder, waits=context.log.info):
        runner = home.runner(clients)
        status = runner.status(stage)
        if status.stale and status.waits is None:
            for damaged in status.damaged:
                context.log.warning("%s: it is made again", damaged)
            with clients.telling(Lines(context.log.info)) if clients else nullcontext():
                versions = runner.run(stage)
        else:
            if status.waits is None:
                context.log.info("up to date: the version stands")
            else:
                context.log.warning("left as it stands: it waits %s", status.waits)
            made = [table for table in stage.tables if runner.store.pointer(table) is not None]
            versions = [runner.store.version(table) for table in made]
    for version in versions:
        yield _result(version, home)
    # What waits fails no run: what needs it waits as well, and all else is made.
    for table in stage.tables[len(versions) :]:
        yield dg.MaterializeResult(asset_key=table, metadata={"state": f"never made: it waits {status.waits}"})


imports = [_import_asset("imported_posts"), _import_asset("imported_dialogues")]
stages = [_stage_asset(stage) for stage in STAGES]
