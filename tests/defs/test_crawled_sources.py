"""The crawled sources in Dagster: a real crawl through Pipes, its figures, its checks, its schedules."""

import datetime as dt

import dagster as dg
import pytest

from pipelines.definitions import defs
from pipelines.defs.crawl import CrawlConfig, crawled_sites, crawls, key_of, op_of
from pipelines.defs.resources import HomeResource
from pipelines.defs.schedules import daily_job, daily_refresh
from pipelines.imports import make_author_key
from pipelines.store import Store
from samples.replica import Replica

DAY = "2025-03-14"

# Dagster's own, about its own.
pytestmark = pytest.mark.filterwarnings(
    "ignore::dagster.PreviewWarning", "ignore:AssetExecutionContext.run_id:DeprecationWarning"
)


def crawled(home, replica: Replica, instance: dg.DagsterInstance, **config: object) -> dg.ExecuteInProcessResult:
    """One day of the replica, materialised; delays are off only for who says so, so few posts are asked for."""
    make_author_key(home)
    (asset,) = (one for one in crawls if key_of("replica") in one.keys)
    return dg.materialize(
        [asset],
        partition_key=DAY,
        instance=instance,
        resources={"home": HomeResource(path=str(home)), "pipes": dg.PipesSubprocessClient()},
        run_config={"ops": {op_of("replica"): {"config": {"base_url": replica.url, "delays": False, **config}}}},
        raise_on_error=False,
    )


@pytest.fixture
def replica():
    with Replica() as running:
        yield running


def test_a_day_is_crawled_in_a_process_of_its_own_and_its_figures_are_told(tmp_path, replica):
    with dg.instance_for_test() as instance:
        result = crawled(tmp_path, replica, instance)
        assert result.success
        (event,) = result.get_asset_materialization_events()
        told = event.materialization
        version = Store(tmp_path / "data").version("raw_posts", partition=f"replica@{DAY}")
        assert (told.asset_key, told.partition) == (key_of("replica"), DAY)
        assert told.metadata["dagster/row_count"].value == version.rows > 0
        assert told.metadata["items"].value == version.rows
        assert told.metadata["finish_reason"].value == "finished"
        assert told.tags["dagster/data_version"] == version.version
        evaluations = {one.check_name: one.passed for one in result.get_asset_check_evaluations()}
        assert evaluations == {"items": True, "coverage": True}
        again = crawled(tmp_path, replica, instance)
        assert again.success, "nothing new is no failure"
        (event,) = again.get_asset_materialization_events()
        assert event.materialization.metadata["items"].value == 0
        assert event.materialization.tags["dagster/data_version"] == version.version
        assert event.materialization.metadata["dagster/row_count"].value == version.rows


def test_days_before_are_looked_at_again_for_late_answers(tmp_path, replica):
    with dg.instance_for_test() as instance:
        result = crawled(tmp_path, replica, instance, revisit_days=3)
        assert {event.partition for event in result.get_asset_materialization_events()} == {
            "2025-03-12",
            "2025-03-13",
            DAY,
        }


def test_a_blocked_crawl_fails_loudly_and_writes_nothing(tmp_path, replica):
    replica.challenge()
    with dg.instance_for_test() as instance:
        result = crawled(tmp_path, replica, instance)
        assert not result.success
        assert Store(tmp_path / "data").partitions("raw_posts") == []


def test_every_host_has_a_pool_and_every_site_an_asset():
    assert {key_of(name) for name in crawled_sites()} == {key for asset in crawls for key in asset.keys}
    pools = {asset.op.pool for asset in crawls}
    assert "host_www_xinli001_com" in pools
    assert len(pools) == len({site.host for site in crawled_sites().values()})
    parents = defs.resolve_asset_graph().get(dg.AssetKey("clean_posts")).parent_keys
    assert {key_of(name) for name in crawled_sites()} <= parents


def test_the_daily_refresh_crawls_yesterday_and_makes_what_costs_nothing():
    now = dt.datetime(2025, 3, 15, 2, 40, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    with dg.instance_for_test() as instance:
        context = dg.build_schedule_context(
            instance=instance, scheduled_execution_time=now, repository_def=defs.get_repository_def()
        )
        (request,) = daily_refresh.evaluate_tick(context).run_requests
    assert request.partition_key == DAY
    assert request.run_config["ops"] == {"raw_posts_xinli001": {"config": {"revisit_days": 3}}}
    selected = {key.to_user_string() for key in defs.resolve_job_def(daily_job.name).asset_layer.executable_asset_keys}
    assert {"raw_posts/xinli001", "clean_posts", "grpo_cer"} <= selected
    assert "raw_posts/replica" not in selected
    assert daily_refresh.default_status == dg.DefaultScheduleStatus.STOPPED


def test_a_plain_run_looks_at_its_day_alone():
    assert CrawlConfig().revisit_days == 1
