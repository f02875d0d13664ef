"""Who is told of what: runs and checks of a real instance, and what a home shows, at a receiver on loopback."""

import datetime as dt
import json
import os
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest
from crawl_home import Home as CrawlHome
from crawl_home import end_of, item
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.sensor_definition import SensorType
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._utils.error import SerializableErrorInfo
from message_receiver import Receiver
from typer.testing import CliRunner

from crawlers.dates import SHANGHAI
from pipelines.cli import app
from pipelines.core.home import Home
from pipelines.defs.alerts import alerts, look
from pipelines.defs.allowance import allow
from pipelines.errors import GongqingError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.alerts.causes import digest
from pipelines.operations.alerts.sending import State
from pipelines.settings import Llm, load

POST = "我已经很久没有睡好了"  # what no message may hold


@pytest.fixture
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """One with ticks."""
    with dg.DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance:
        yield instance


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as receiver:
        monkeypatch.setenv("GONGQING_RECEIVERS", receiver.address)
        yield receiver


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "gongqing.toml").write_text("[alerts]\ndigest_hour = 0\n\n[llm]\ndaily_budget = 10\n", encoding="utf-8")
    return tmp_path


def titles(receiver: Receiver) -> list[str]:
    return [
        title.removeprefix("gongqing: ") for title, _ in receiver.messages if not title.startswith("gongqing: news")
    ]


@dg.asset
def broken() -> None:
    raise ValueError(POST)


@dg.asset
def made() -> int:
    return 1


@dg.asset_check(asset=made)
def is_full() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, metadata={"post": POST})


def run(instance: dg.DagsterInstance, *definitions: object) -> None:
    dg.materialize([*definitions], instance=instance, raise_on_error=False, tags={"gongqing/command": "refresh"})  # type: ignore[list-item]


def test_failures_and_checks_are_told_once_a_window_without_a_word_of_anybody(
    instance: dg.DagsterInstance, home: Path, receiver: Receiver
):
    run(instance, broken)
    look(home, instance)
    assert titles(receiver) == [], "what was before it began is not told"
    receiver.messages.clear()
    run(instance, broken)
    run(instance, broken)
    run(instance, made, is_full)
    now = dt.datetime.now(dt.UTC)
    look(home, instance, now)
    assert titles(receiver) == ["refresh failed at broken", "a check did not pass (WARN): made: is_full"]
    look(home, instance, now + dt.timedelta(minutes=1))
    assert len(titles(receiver)) == 2, "nothing is told twice"
    look(home, instance, now + dt.timedelta(minutes=31))
    assert titles(receiver)[2:] == ["refresh failed at broken"]
    assert any("\nand 1 more since" in text for _, text in receiver.messages)
    assert POST not in json.dumps(receiver.messages, ensure_ascii=False)


def test_what_nobody_took_is_told_the_next_time(instance: dg.DagsterInstance, home: Path, receiver: Receiver):
    look(home, instance)
    run(instance, broken)
    run(instance, made, is_full)
    receiver.status = 503
    with pytest.raises(GongqingError, match="nobody took the message"):
        look(home, instance)
    receiver.status = 200
    receiver.messages.clear()
    look(home, instance)
    assert titles(receiver) == ["refresh failed at broken", "a check did not pass (WARN): made: is_full"]


def test_a_tick_that_failed_is_told_and_the_alerts_own_is_not(
    instance: dg.DagsterInstance, home: Path, receiver: Receiver
):
    look(home, instance)
    now = dt.datetime.now(dt.UTC)
    for name, kind in (("labels_from_people", InstigatorType.SENSOR), ("alerts", InstigatorType.SENSOR)):
        _with_tick(instance, name, kind, TickStatus.FAILURE, now)
    _with_tick(instance, "nightly_refresh", InstigatorType.SCHEDULE, TickStatus.SKIPPED, now)
    for minutes in (1, 2):
        look(home, instance, now + dt.timedelta(minutes=minutes))
    assert titles(receiver) == ["the sensor labels_from_people failed: it has started nothing"]
    assert POST not in json.dumps(receiver.messages, ensure_ascii=False)


def _with_tick(
    instance: dg.DagsterInstance, name: str, kind: InstigatorType, status: TickStatus, at: dt.datetime
) -> None:
    place = ManagedGrpcPythonEnvCodeLocationOrigin(
        loadable_target_origin=LoadableTargetOrigin(module_name="pipelines.definitions"), location_name="gongqing"
    )
    origin = RemoteRepositoryOrigin(place, "__repository__").get_instigator_origin(name)
    data = (
        SensorInstigatorData(sensor_type=SensorType.STANDARD)
        if kind is InstigatorType.SENSOR
        else ScheduleInstigatorData("0 3 * * *", at.timestamp())
    )
    state = InstigatorState(origin, kind, InstigatorStatus.RUNNING, data)
    instance.add_instigator_state(state)
    error = SerializableErrorInfo(POST, [], "ValueError") if status is TickStatus.FAILURE else None
    instance.create_tick(
        TickData(
            state.instigator_origin_id, name, kind, status, at.timestamp(), selector_id=state.selector_id, error=error
        )
    )


def test_settings_that_cannot_be_read_silence_nothing(
    instance: dg.DagsterInstance, home: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    look(home, instance)
    receiver.messages.clear()
    noon = dt.datetime.now(SHANGHAI).replace(hour=12) + dt.timedelta(days=2)  # more than a day on, whatever the hour
    for content in ("[alerts]\nwindw = 3\n", "[alerts\n"):
        (home / "gongqing.toml").write_text(content, encoding="utf-8")
        run(instance, broken)
        look(home, instance, noon)  # the hour of the news is as unknown as all else
    assert "the settings cannot be read: no schedule runs" in titles(receiver)
    assert "refresh failed at broken" in titles(receiver)
    assert any("disk" in title for title in titles(receiver))
    assert any(title.startswith("gongqing: news") for title, _ in receiver.messages)


def test_what_fails_while_a_clock_is_an_hour_back_is_told(instance: dg.DagsterInstance, home: Path, receiver: Receiver):
    look(home, instance)
    run(instance, made)
    path = Home(home).alerts
    state = State.model_validate_json(path.read_bytes())
    state.cursor += dt.timedelta(hours=1)  # of a run that ended before the clock was put back
    path.write_text(state.model_dump_json(), encoding="utf-8")
    run(instance, broken)
    look(home, instance, dt.datetime.now(dt.UTC) + dt.timedelta(minutes=65))
    assert "refresh failed at broken" in titles(receiver)


def test_of_a_home_is_told_what_stands_until_it_is_mended(
    instance: dg.DagsterInstance, home: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    crawled = CrawlHome(home)
    stopped = end_of(crawled.prepare(), item("1", POST, None), how="blocked", blocked="403", pages=7)
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.open_budget(Decimal(1), "USD", "refresh")
    allow(home, Llm(daily_budget=10), "run a", Decimal(8))
    scored = home / "training" / "mine" / "scored" / "1.jsonl"
    scored.parent.mkdir(parents=True)
    (scored.parents[1] / "run.json").write_text(json.dumps({"recipe": "mindchat_ecot"}), encoding="utf-8")
    scored.write_text(
        "".join(json.dumps({"terms": {"judge_ok": ok}}) + "\n" for ok in (1, 1, 0, 1, 0)), encoding="utf-8"
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    now = dt.datetime.now(dt.UTC)
    look(home, instance, now)
    assert titles(receiver) == [
        f"the crawl of {stopped.source} ended early: blocked (403), after 7 pages and 1 posts",
        "mine: 40% of the last outputs have no verdict",
        "0.0 GB are left on the disk of the home",
        "runs in Dagster may have spent 8 of 10 that a day allows",
    ]
    receiver.messages.clear()
    look(home, instance, now + dt.timedelta(hours=3))
    assert titles(receiver) == [], "told today"
    (stopped.folder / "stats.json").write_text('{"finish_reason": "finished"}', encoding="utf-8")
    os.utime(stopped.folder / "stats.json", (now.timestamp() + 60,) * 2)
    look(home, instance, now + dt.timedelta(hours=25))
    assert not any("crawl" in title for title in titles(receiver)), "the same crawl came to its end"
    assert any("disk" in title for title in titles(receiver)), "and the rest stands, a day later"


def test_tables_that_stay_stale_and_the_news_of_a_day(
    instance: dg.DagsterInstance, sample_home: Path, tmp_path: Path, receiver: Receiver
):
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    now = dt.datetime.now(dt.UTC)
    news = digest(home, load(home), now)
    assert "imported_posts" in news
    assert "models cost since" in news
    (home / "gongqing.toml").write_text("[filters]\nmin_post_chars = 60\n", encoding="utf-8")
    for hours in (0, 35):
        look(home, instance, now + dt.timedelta(hours=hours))
    assert not any("stale" in title for title in titles(receiver))
    look(home, instance, now + dt.timedelta(hours=37))
    [stale] = [title for title in titles(receiver) if "stale" in title]
    assert "clean_posts" in stale


def test_the_sensor_says_whom_it_told_and_the_command_the_same(
    instance: dg.DagsterInstance, home: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    with dg.build_sensor_context(instance=instance) as context:
        assert alerts(context).skip_message == "1 messages", "the news"
    shown = CliRunner().invoke(app, ["alerts"])
    assert shown.exit_code == 0
    assert shown.stdout.strip().endswith("sent")
    shown = CliRunner().invoke(app, ["alerts", "--test"])
    assert (shown.exit_code, shown.stdout.strip()) == (0, "sent")
    assert receiver.messages[-1][0] == "gongqing: a test"
    monkeypatch.delenv("GONGQING_RECEIVERS")
    with dg.build_sensor_context(instance=instance) as context:
        assert "names nobody" in str(alerts(context).skip_message)
    assert CliRunner().invoke(app, ["alerts"]).exit_code != 0
