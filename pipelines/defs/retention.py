"""Old runs of Dagster, each of some megabytes: which ones nothing shows any more, and their removal."""

import datetime as dt
from collections.abc import Iterator

import dagster as dg

from pipelines.defs import assets, crawl, trends

_EVENTS = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_OBSERVATION)
_AT_ONCE = 500
KEEP_DAYS = 90  # by the schedule: ours, as dagster.yaml has it for ticks


def old_runs(instance: dg.DagsterInstance, before: dt.datetime) -> list[str]:
    """The ids of runs that ended before a moment, the oldest first: without those that hold the latest materialisation
    or observation of an asset, or of a partition of it, and the latest result of a check.
    """
    ended = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
    )
    needed = set(_latest(instance))
    return [
        record.dagster_run.run_id
        for record in reversed(instance.get_run_records(ended))
        if record.end_time is not None
        and record.end_time < before.timestamp()
        and record.dagster_run.run_id not in needed
    ]


def delete_runs(instance: dg.DagsterInstance, run_ids: list[str]) -> Iterator[str]:
    """Deletes runs with their events and what they printed: each id, once it is gone."""
    for run_id in run_ids:
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
        yield run_id


def _latest(instance: dg.DagsterInstance) -> Iterator[str]:
    storage = instance.event_log_storage
    for key in instance.all_asset_keys():
        for event, fetch in zip(_EVENTS, (instance.fetch_materializations, instance.fetch_observations), strict=True):
            yield from (record.run_id for record in fetch(key, limit=1).records)
            ids = sorted(storage.get_latest_storage_id_by_partition(key, event).values())
            for at in range(0, len(ids), _AT_ONCE):
                some = ids[at : at + _AT_ONCE]
                records = fetch(dg.AssetRecordsFilter(asset_key=key, storage_ids=some), limit=len(some)).records
                yield from (record.run_id for record in records)
    checks = [key for one in (*assets.checks, *trends.checks, *crawl.crawls) for key in one.check_keys]
    for result in storage.get_latest_asset_check_execution_by_key(checks).values():
        yield result.run_id


@dg.op(name="delete_runs")
def _delete(context: dg.OpExecutionContext) -> None:
    """What the schedule does."""
    old = old_runs(context.instance, dt.datetime.now(dt.UTC) - dt.timedelta(days=KEEP_DAYS))
    context.log.info(f"{len(list(delete_runs(context.instance, old))):,} runs removed")


@dg.job(name="delete_old_runs")
def retention_job() -> None:
    """Removes what is 90 days old of Dagster's runs, but for what an asset, a partition or a check shows last."""
    _delete()
