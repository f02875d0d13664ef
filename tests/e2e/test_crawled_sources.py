"""The crawled sources in Dagster: a real crawl through Pipes, its figures, its checks, its schedules."""

import datetime as dt
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from tiny_site import TinySite
from troubled_replica import Replica, Troubles
from xinli_pages import long_post

from pipelines.definitions import defs
from pipelines.defs.crawl import crawls, op_of
from pipelines.defs.keys import crawled_sites, key_of
from pipelines.defs.resources import HomeResource
from pipelines.defs.schedules import daily_job, daily_refresh
from pipelines.settings import ROOT, make_author_key
from pipelines.store import Store

DAY = "2025-03-14"

# Dagster's own, about its own.
pytestmark = pytest.mark.filterwarnings(
    "ignore::dagster.PreviewWarning", "ignore:AssetExecutionContext.run_id:DeprecationWarning"
)


def crawled(home, replica: Replica, instance: dg.DagsterInstance, day: str = DAY, **config: object):
    """One day of the replica, materialised."""
    return crawled_from("replica", home, instance, day, base_url=replica.url, delays=False, **config)


def crawled_from(source: str, home, instance: dg.DagsterInstance, day: str = DAY, **config: object):
    """One day of a site, materialised."""
    make_author_key(home)
    (asset,) = (one for one in crawls if key_of(source) in one.keys)
    return dg.materialize(
        [asset],
        partition_key=day,
        instance=instance,
        resources={"home": HomeResource(path=str(home)), "pipes": dg.PipesSubprocessClient()},
        run_config={"ops": {op_of(source): {"config": {"revisit_days": 1, **config}}}},
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
        made = event.materialization
        version = Store(tmp_path / "data").version("raw_posts", partition=f"replica@{DAY}")
        assert (made.asset_key, made.partition) == (key_of("replica"), DAY)
        assert made.metadata["dagster/partition_row_count"].value == version.rows > 0
        assert made.metadata["items"].value == version.rows
        assert made.metadata["finish_reason"].value == "finished"
        assert made.tags["dagster/data_version"] == version.version
        checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
        assert {name: one.passed for name, one in checks.items()} == {"items": True, "coverage": True}
        assert checks["coverage"].metadata["answers.likes"].value == "too few to judge"
        lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
        assert any(line.startswith(f"pages {made.metadata['pages'].value}, cached 0") for line in lines), lines
        again = crawled(tmp_path, replica, instance)
        assert again.success, "nothing new is no failure"
        (event,) = again.get_asset_materialization_events()
        assert event.materialization.tags["dagster/data_version"] == version.version


def test_a_late_answer_makes_a_new_version_of_its_day_with_an_event_of_its_own(tmp_path):
    place, store = f"replica@{DAY}", Store(tmp_path / "data")
    with Replica(now="2025-03-16 02:40") as replica, dg.instance_for_test() as instance:
        assert crawled(tmp_path, replica, instance, "2025-03-15", revisit_days=2).success
        before = store.version("raw_posts", partition=place)
        posts, late = store.read("raw_posts", partition=place).collect(), set[str]()
        while late.isdisjoint(posts["source_id"]):  # an answer goes to one of the newest posts, whichever
            changed = replica.tick(days=0.01, answers=5)["changed"]
            late = {post["ids"]["xinli001"] for post in replica.posts() if post["number"] in changed}
        result = crawled(tmp_path, replica, instance, "2025-03-15", revisit_days=2)
        assert result.success
        after = store.version("raw_posts", partition=place)
        assert after.version != before.version
        events = {event.partition: event.materialization for event in result.get_asset_materialization_events()}
        assert events[DAY].tags["dagster/data_version"] == after.version
        assert events[DAY].metadata["dagster/partition_row_count"].value == after.rows
    assert store.read("raw_posts", before.version, place).collect().equals(posts), "the old version is readable"


def test_runs_of_one_host_wait_for_each_other(tmp_path, replica):
    """While another run has the only slot of the host's pool, nothing is requested."""
    (asset,) = (one for one in crawls if key_of("replica") in one.keys)
    limits = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))["concurrency"]
    assert limits == {"pools": {"default_limit": 1}}
    with dg.instance_for_test(overrides={"concurrency": limits}) as instance, ThreadPoolExecutor() as threads:
        slots = instance.event_log_storage
        slots.initialize_concurrency_limit_to_default(asset.op.pool)
        assert slots.claim_concurrency_slot(asset.op.pool, "another run", "raw_posts_replica").is_claimed
        run = threads.submit(crawled, tmp_path, replica, instance)
        while not (runs := instance.get_runs()) or not blocked(instance, runs[0].run_id):
            assert not run.done()
            time.sleep(0.1)
        assert replica.log.paths == []
        slots.free_concurrency_slot_for_step("another run", "raw_posts_replica")
        assert run.result(timeout=120).success
        assert replica.log.paths


def blocked(instance: dg.DagsterInstance, run_id: str) -> bool:
    return any("blocked by limit for pool" in entry.user_message for entry in instance.all_logs(run_id))


def failure_of(result: dg.ExecuteInProcessResult) -> Any:
    (failed,) = result.get_step_failure_events()
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    return failed.step_failure_data.user_failure_data


def test_a_blocked_crawl_fails_with_its_reason_and_its_figures_and_writes_nothing(tmp_path, replica):
    replica.server.trouble = Troubles("challenge", wall_after=3)
    with dg.instance_for_test() as instance:
        failure = failure_of(crawled(tmp_path, replica, instance))
    assert "the crawl of replica ended early: blocked (challenge)" in failure.description
    assert "leave the site alone for a day" in failure.description
    figures = {name: value.value for name, value in failure.metadata.items()}
    assert (figures["finish_reason"], figures["blocked"]) == ("blocked", "challenge")
    assert figures["pages"] >= 3
    assert Store(tmp_path / "data").partitions("raw_posts") == []


def test_a_crawl_that_brings_10_of_195_answers_fails_with_both_figures(tmp_path):
    with TinySite(long_post(100841600, 195, n_pages=1)) as site, dg.instance_for_test() as instance:
        failure = failure_of(crawled_from("replica", tmp_path, instance, "2025-05-20", base_url=site.url, delays=False))
    assert "ended early: answers_missing (10 of 195 that pages state)" in failure.description
    assert failure.metadata["answers"].value == {"stated": 195, "found": 10, "missing": 185}
    assert "a selector or the pager has changed" in failure.metadata["hint"].value
    assert Store(tmp_path / "data").partitions("raw_posts") == []


def robots(replica: Replica, home: Path) -> None:
    replica.server.disallow = ["/qa"]


def bad_list(replica: Replica, home: Path) -> None:
    (home / "takedown.txt").write_text("somebody\n", encoding="utf-8")


def bad_contact(replica: Replica, home: Path) -> None:
    (home / "gongqing.toml").write_text('[crawl]\ncontact = "somebody"\n', encoding="utf-8")


# What is wrong, the words of the failure, and its hint.
CANNOT_BEGIN = {
    robots: ("ended early: robots_forbidden", "does not allow it: nothing is to be done but to ask its owners"),
    bad_list: ("something else where the id of a post should stand", "write source:id"),
    bad_contact: ("could not begin, nothing was crawled: the contact is neither", "write it as crawl@example.org"),
}


@pytest.mark.drill("site")
@pytest.mark.parametrize("wrong", CANNOT_BEGIN, ids=lambda wrong: wrong.__name__)
def test_a_crawl_that_cannot_begin_fails_in_its_own_words_with_its_hint_and_goes_on_once_it_can(
    tmp_path, replica, wrong
):
    words, hint = CANNOT_BEGIN[wrong]
    wrong(replica, tmp_path)
    with dg.instance_for_test() as instance:
        failure = failure_of(crawled(tmp_path, replica, instance))
        assert words in failure.description
        assert hint in failure.description
        assert hint in failure.metadata["hint"].value
        assert "run it again" not in failure.description
        assert [path for path in replica.log.paths if path != "/robots.txt"] == []
        replica.server.disallow = []
        for name in ("takedown.txt", "gongqing.toml"):
            (tmp_path / name).unlink(missing_ok=True)
        assert crawled(tmp_path, replica, instance).success, "what it was refused for before is no news"


def test_a_site_without_a_contact_and_a_source_without_a_file_say_what_to_set(tmp_path, replica, monkeypatch):
    with dg.instance_for_test() as instance:
        nobody = failure_of(crawled_from("xinli001", tmp_path, instance))
        assert "could not begin, nothing was crawled: www.xinli001.com is not crawled without" in nobody.description
        assert "contact under [crawl] in gongqing.toml" in nobody.metadata["hint"].value
        monkeypatch.setattr("pipelines.crawl.preparing.sites", lambda: {"xinli001": crawled_sites()["xinli001"]})
        unknown = failure_of(crawled(tmp_path, replica, instance))
    assert unknown.description.startswith("there is no source 'replica'")
    assert unknown.metadata["hint"].value == "known: xinli001"
    assert "run it again" not in nobody.description + unknown.description


def test_a_crawl_whose_process_dies_says_how(tmp_path, replica, monkeypatch):
    monkeypatch.setattr("pipelines.crawl.preparing.sys.executable", "/bin/false")
    with dg.instance_for_test() as instance:
        died = failure_of(crawled(tmp_path, replica, instance)).description
    assert "its process ended with exit code 1" in died
    assert "stderr" in died


def test_every_host_has_a_pool_and_every_site_an_asset():
    graph = defs.resolve_asset_graph()
    assert graph.get(key_of("xinli001")).freshness_policy is not None
    assert graph.get(key_of("replica")).freshness_policy is None, "it is not always there"
    assert {key_of(name) for name in crawled_sites()} == {key for asset in crawls for key in asset.keys}
    pools = {asset.op.pool for asset in crawls}
    assert "host_www_xinli001_com" in pools
    assert len(pools) == len({site.host for site in crawled_sites().values()})
    parents = graph.get(dg.AssetKey("clean_posts")).parent_keys
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
    assert "All or nothing" in daily_refresh.description
