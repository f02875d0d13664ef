"""Running assets on the persistent instance of a home, so that the web UI shows what the command line did."""

import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import PARTITION_NAME_TAG

from pipelines.core.home import Home
from pipelines.core.stage import Stage
from pipelines.crawl.collecting import collect
from pipelines.crawl.jobs import Job
from pipelines.defs import assets, trends
from pipelines.defs.crawl import materialization_of_day
from pipelines.defs.instance import instance
from pipelines.defs.jobs import REFRESH, import_job_of, import_jobs, refresh_job
from pipelines.defs.metadata import materialization
from pipelines.defs.resources import HomeResource, clients_resource
from pipelines.errors import GongqingError, Interrupted
from pipelines.flow.runner import Report, Runner
from pipelines.settings import ROOT
from pipelines.store.store import Store, Version

_PROCESS = "gongqing/process"  # host:id of the command that runs a run itself
# A command runs its run itself, and queues none; killed before it begins, it leaves one that is NOT_STARTED.
_UNDER_WAY = [dg.DagsterRunStatus(name) for name in ("NOT_STARTED", "STARTING", "STARTED", "CANCELING")]
_NAME = assets.data_sets.name or ""
# Our own lines tell what happens; Dagster's are in the web UI.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def run_stages(home: Path, runner: Runner | None, stages: Iterable[Stage], report: Report | None = None) -> None:
    """Materialise the tables of stages and run their checks, in one run. Raises the error of the first that fails.

    Without a `runner` the settings or the tables say who answers, and nobody does for money. `report` hears of each
    stage when it is done.
    """
    tables = [table for stage in stages for table in stage.tables]
    _run(home, REFRESH, tables, command="refresh", runner=runner, report=report)


def close_killed_runs(home: Path) -> None:
    """Reports the runs of commands that were killed as failed."""
    with instance(home) as opened:
        close_killed(home, opened)


def close_killed(home: Path, opened: dg.DagsterInstance) -> None:
    """Runs of commands that were killed have failed, and hold no slot of a pool any more. Dagster's daemon would see to
    that, and a command line has none: the next run would wait for ever. A run that somebody starts again in the web UI
    has the tags of the first one, and a process of its own.
    """
    for run in opened.get_runs(dg.RunsFilter(statuses=_UNDER_WAY)):
        host, _, process = run.tags.get(_PROCESS, "").rpartition(":")
        if run.parent_run_id is None and host == socket.gethostname() and not _lives(int(process)):
            opened.report_run_failed(run, "the command that ran it was killed")
            opened.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    for note in Home(home).under_way.glob("[0-9]*"):
        if not _lives(int(note.name)):
            note.unlink(missing_ok=True)


@contextmanager
def _marked(home: Path) -> Iterator[None]:
    """Leaves a note of the run while it is under way, which a command that starts no run can read without Dagster."""
    note = Home(home).under_way / str(os.getpid())
    note.parent.mkdir(mode=0o700, exist_ok=True)
    note.touch(mode=0o600)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def run_import(home: Path, table: str, data_set: str, reader: str, file: Path, mapping: Path | None) -> None:
    """Materialise one data set of `imported_posts` or `imported_dialogues`."""
    config: dict[str, Any] = {"reader": reader, "file": str(file), "mapping": str(mapping) if mapping else None}
    ops = {table: {"config": config}}
    _run(home, import_job_of(table), [table], command="import", partition=data_set, ops=ops)


def run_crawl(home: Path, job: Job) -> list[Version]:
    """Crawl a window, merge what it brought, and tell Dagster of every day that has a new version.

    Raises CrawlFailed, or RequestError where the crawl was asked for wrongly.
    """
    _report(home, job.taken_over)
    ended = subprocess.run(job.command, env=job.environment, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    versions = collect(home, HomeResource(home).store(), job, exit_code=ended.returncode)
    _report(home, versions)
    return versions


def _report(home: Path, versions: Iterable[Version]) -> None:
    """Dagster knows of the crawled days that have new versions."""
    store = HomeResource(home).store()
    with instance(home) as opened:
        for version in versions:
            opened.report_runless_asset_event(materialization_of_day(version, store))


def report_labels(opened: dg.DagsterInstance, store: Store) -> None:
    """Dagster knows of what people labelled, which no run of its makes."""
    for spec in assets.labels:
        for version in store.current(spec.key.to_user_string()):
            event = opened.get_latest_materialization_event(spec.key)
            known = event.asset_materialization if event else None
            if known is None or (known.tags or {}).get("dagster/data_version") != version.version:
                opened.report_runless_asset_event(materialization(version, store, spec.key))


def _run(
    home: Path,
    job: str,
    tables: Iterable[str],
    *,
    command: str,
    partition: str | None = None,
    runner: Runner | None = None,
    report: Report | None = None,
    ops: dict[str, Any] | None = None,
) -> None:
    """Materialise some tables of a job, in one run under its name, which the web UI can start again as it stands."""
    resource = HomeResource(home, runner, report)
    chosen = _definitions({"home": resource, "clients": runner.clients if runner else clients_resource})
    with instance(home) as opened:
        close_killed(home, opened)
        # Dagster's database may have been lost: it lists the data sets of the store, and the one about to be made.
        there = _data_sets(resource.store()) | ({partition} if partition else set())
        opened.add_dynamic_partitions(_NAME, sorted(there - set(opened.get_dynamic_partitions(_NAME))))
        report_labels(opened, resource.store())
        tags = {"gongqing/command": command, _PROCESS: f"{socket.gethostname()}:{os.getpid()}"}
        try:
            with _marked(home):
                definition = chosen.resolve_job_def(job)
                run = opened.create_run_for_job(
                    definition,
                    run_config={**_QUIET, **({"ops": ops} if ops else {})},
                    tags=tags | ({PARTITION_NAME_TAG: partition} if partition else {}),
                    asset_selection={dg.AssetKey(table) for table in tables},
                    remote_job_origin=_origin(job),
                )
                execute_run(InMemoryJob(definition), run, opened, raise_on_error=True)
        except dg.DagsterError as error:
            raise _our_error(error) from error
        except DagsterExecutionInterruptedError as error:
            raise Interrupted from error
        finally:
            # A failed import of a new data set leaves no partition; those of others, who may be at work, stay.
            if partition and partition not in _data_sets(resource.store()):
                opened.delete_dynamic_partition(_NAME, partition)


def _definitions(resources: dict[str, Any]) -> dg.Definitions:
    """What the command line runs of the code location, with resources that are at hand."""
    return dg.Definitions(
        assets=[*assets.imports, *assets.stages],
        asset_checks=[*assets.checks, *trends.checks],
        jobs=[refresh_job, *import_jobs],
        resources=resources,
        executor=dg.in_process_executor,
    )


def _origin(job: str) -> RemoteJobOrigin:
    """Where the web UI of the home has the job: its timeline leaves out runs that come from nowhere."""
    location = GrpcServerCodeLocationOrigin(host="localhost", socket="", location_name=ROOT.name)
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME), job)


def _data_sets(store: Store) -> set[str]:
    return {place for asset in assets.imports for place in store.partitions(asset.key.to_user_string())}


def _our_error(error: BaseException) -> BaseException:
    """The error of ours that Dagster wrapped, or Dagster's own."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, GongqingError):
        cause = cause.__cause__
    return cause or error
