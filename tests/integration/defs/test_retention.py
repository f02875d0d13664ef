"""What of Dagster's runs may go: all that is old, but for what an asset, a partition or a check shows last."""

import datetime as dt
import random
from pathlib import Path

import dagster as dg
import pytest

from pipelines.core.home import Home
from pipelines.defs import retention
from pipelines.defs.instance import instance
from pipelines.defs.retention import delete_runs, old_runs

DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday", "wednesday"])


@dg.asset
def table() -> None:
    pass


@dg.asset(partitions_def=DAYS, check_specs=[dg.AssetCheckSpec("whole", asset="site")])
def site() -> dg.MaterializeResult:
    return dg.MaterializeResult(check_results=[dg.AssetCheckResult(check_name="whole", passed=True)])


@dg.asset
def observed(context: dg.AssetExecutionContext) -> None:
    context.log_event(dg.AssetObservation("watched"))


@dg.asset
def broken() -> None:
    raise dg.Failure("as a test says")


def soon() -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1)


def shown(standing: dg.DagsterInstance) -> dict[str, object]:
    """What the UI has of each asset, partition and check."""
    storage, kind = standing.event_log_storage, dg.DagsterEventType.ASSET_MATERIALIZATION
    events = {key: standing.fetch_materializations(key, limit=1).records for key in standing.all_asset_keys()}
    observed = {key: standing.fetch_observations(key, limit=1).records for key in standing.all_asset_keys()}
    checks = storage.get_latest_asset_check_execution_by_key(list(site.check_keys))
    return {
        "latest": {key.to_user_string(): [one.storage_id for one in found] for key, found in events.items()},
        "observed": {key.to_user_string(): [one.storage_id for one in found] for key, found in observed.items()},
        "partitions": dict(storage.get_latest_storage_id_by_partition(site.key, kind)),
        "checks": {key: result.run_id for key, result in checks.items()},
    }


def test_after_any_history_every_asset_shows_what_it_showed_and_nothing_else_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(retention.crawl, "crawls", [site])
    chance, came = random.Random(0), 4 * [table, site, observed, broken]
    chance.shuffle(came)
    with instance(tmp_path) as standing:
        for one in came:
            day = chance.choice(DAYS.get_partition_keys()) if one is site else None
            dg.materialize([one], instance=standing, partition_key=day, raise_on_error=False)
        before, runs = shown(standing), {run.run_id for run in standing.get_runs()}
        going = old_runs(standing, soon())
        assert going, "sixteen runs of four assets"
        assert list(delete_runs(standing, going)) == going
        assert shown(standing) == before
        left = {run.run_id for run in standing.get_runs()}
        assert left == runs - set(going)
        assert len(left) <= 1 + 3 + 1 + 1, "of the table, of each day, of what observes, of the check"
        assert old_runs(standing, soon()) == []
    kept = {path.stem for path in (Home(tmp_path).dagster / "storage" / "history" / "runs").glob("*.db")}
    assert kept == {"index", *left}, "a run's own database goes with it"


def test_what_is_not_old_or_has_not_ended_stays(tmp_path: Path):
    with instance(tmp_path) as standing:
        for _ in range(2):
            dg.materialize([table], instance=standing)
        standing.create_run_for_job(
            dg.define_asset_job("all").resolve(asset_graph=dg.Definitions([table]).resolve_asset_graph())
        )
        assert len(old_runs(standing, soon())) == 1
        assert old_runs(standing, dt.datetime.now(dt.UTC) - dt.timedelta(days=1)) == []


def test_the_schedules_job_removes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "KEEP_DAYS", -1)
    with instance(tmp_path) as standing:
        for _ in range(3):
            dg.materialize([table], instance=standing)
        assert retention.retention_job.execute_in_process(instance=standing).success
        assert sorted(run.job_name for run in standing.get_runs())[1:] == ["delete_old_runs"]
