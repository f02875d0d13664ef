"""Assets that ask, on a vendor of models on this machine: what a run may spend, what it leaves, what it tells."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from functools import partial
from pathlib import Path

import dagster as dg
import pytest
from hostile_host import HostileHost
from vendor_profile import PROFILE

from pipelines.defs import assets, schedules
from pipelines.defs.resources import HomeResource, clients_resource
from pipelines.defs.running import run_stages
from pipelines.flow.clients import ClientPool
from pipelines.flow.refresh import budget_name, estimates, refresh, states
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.llm.ledger.ledger import Ledger
from pipelines.settings import ROOT, load
from tests.doubles.vendor import Vendor

TABLE = "topics"
ASSET = next(one for one in assets.stages if {key.to_user_string() for key in one.keys} == {TABLE})
REFRESH = ("refresh", "--select", TABLE, "--provider", "openai", "--budget", "5")


@pytest.fixture(scope="module")
def vendor():
    with Vendor() as running:
        yield running


@pytest.fixture
def home(sample_home: Path, tmp_path: Path, vendor: Vendor) -> Path:
    """A home with every table made by a fake model, and a profile that asks the vendor."""
    shutil.copytree(sample_home / "data", tmp_path / "home" / "data")
    models = tmp_path / "home" / "models.toml"
    models.write_text(PROFILE.format(url=vendor.base_url), encoding="utf-8")
    (tmp_path / "home" / "gongqing.toml").write_text(
        f'[llm]\nprofiles = "{models}"\ndaily_budget = 100\n', encoding="utf-8"
    )
    return tmp_path / "home"


def materialize(instance: dg.DagsterInstance, home: Path, **config: object) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [ASSET],
        instance=instance,
        resources={"home": HomeResource(path=str(home)), "clients": clients_resource},
        run_config={"resources": {"clients": {"config": config}}},
        raise_on_error=False,
    )


def messages(instance: dg.DagsterInstance, made: dg.ExecuteInProcessResult) -> str:
    return "\n".join(entry.user_message for entry in instance.all_logs(made.run_id))


def rows(home: Path):
    return HomeResource(path=str(home)).store().read(TABLE).collect()


def started(home: Path, vendor: Vendor) -> subprocess.Popen:
    """A refresh of the command that has sent its first requests to a slow vendor."""
    (home / "models.toml").write_text(PROFILE.format(url=vendor.base_url), encoding="utf-8")
    environment = {**os.environ, "GONGQING_HOME": str(home)}
    command = [Path(sys.executable).with_name("gongqing"), *REFRESH]
    running = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not vendor.stats()["requests"] and time.monotonic() < deadline:
        time.sleep(0.05)
    return running


def spent_by(home: Path) -> Decimal:
    with Ledger(home / "ledger.sqlite") as ledger:
        return sum((one.cost for one in ledger.spend()), Decimal(0))


def test_a_run_without_a_budget_leaves_the_table_and_one_with_it_asks_each_question_once(instance, home, vendor):
    before, requests = rows(home), vendor.stats()["requests"]
    made = materialize(instance, home, provider="openai")
    assert made.success
    assert rows(home).equals(before)
    assert vendor.stats()["requests"] == requests
    assert "left as it stands: it waits for a budget" in messages(instance, made)
    for forecast in (True, False):
        made = materialize(instance, home, provider="openai", budget=1.0)
        assert made.success
        assert ("to be asked, at most: forecast_calls" in messages(instance, made)) is forecast, "before it is spent"
        assert vendor.stats()["requests"] - requests == rows(home).height > 0
    assert set(rows(home)["provider"]) == {"openai"}
    assert set(rows(home)["model_served"]) == {"invented/stub"}
    with Ledger(home / "ledger.sqlite") as ledger:
        [spent] = ledger.spend()
        assert (spent.stage, spent.calls, spent.tokens_out > 0) == (TABLE, rows(home).height, True)
        assert ledger.open_attempts() == []
        assert ledger.budget(f"run {made.run_id}") is None


def test_a_budget_that_does_not_reach_makes_a_table_of_what_is_answered_and_takes_no_row_from_one_that_stands(
    instance, home
):
    before, store = rows(home), HomeResource(path=str(home)).store()
    with ClientPool(home, load(home).llm, provider="openai") as clients:
        [(_, whole)] = list(estimates(home, load(home), clients, [TABLE]))
    budget = round(float(whole.cost) / 5, 4)
    made = materialize(instance, home, provider="openai", budget=budget)
    assert made.success
    assert f"left as it stands: it waits for a budget: {TABLE} would shrink" in messages(instance, made)
    assert rows(home).equals(before)
    with Ledger(home / "ledger.sqlite") as ledger:
        [spent] = ledger.spend()
        open_budget = ledger.budget(f"run {made.run_id}")
    assert 0 < spent.calls < whole.calls
    assert open_budget is not None, "a run that was broken off leaves its budget open"
    assert open_budget.spent == int(spent.cost * 10**9)
    assert open_budget.spent + open_budget.held <= open_budget.cap

    shutil.rmtree(home / "data" / TABLE)
    made = materialize(instance, home, provider="openai", budget=budget)
    assert made.success
    left = store.version(TABLE).manifest.dropped_for("not_asked_yet")
    said = f"made of what is answered: it waits for a budget: {left:,} rows are not asked about yet"
    assert said in messages(instance, made)
    assert (rows(home).height + left, left > 0) == (before.height, True)
    assert states(store, load(home))[TABLE] == f"waits for a budget ({left:,} rows not asked yet)"
    assert materialize(instance, home, provider="openai", budget=5.0).success
    assert (rows(home).height, states(store, load(home))[TABLE]) == (before.height, "up to date")
    with Ledger(home / "ledger.sqlite") as ledger:
        assert sum(one.calls for one in ledger.spend()) == whole.calls


def test_a_refresh_waits_for_a_budget_and_tells_what_it_takes(home):
    settings = load(home)
    with ClientPool(home, settings.llm, provider="openai") as clients:
        [outcome] = refresh(home, settings, [TABLE], clients, lambda *_: pytest.fail("nothing is due"))
        [(stage, taken)] = estimates(home, settings, clients, [TABLE])
    assert outcome.waits == f"for a budget: {taken.calls} calls to openai cost money"
    assert (stage.name, taken.cost > 0, taken.cached) == (TABLE, True, 0)


def test_one_budget_is_for_all_stages_of_a_refresh(home):
    """What the first stage spends the second can not spend again."""
    settings = load(home)
    with ClientPool(home, settings.llm, provider="openai") as clients:
        [(_, topics)] = estimates(home, settings, clients, ["topics"])
    budget = topics.cost + Decimal("0.000001")

    with ClientPool(home, settings.llm, provider="openai", budget=budget) as clients:
        outcomes = refresh(home, settings, ["topics", "emotions"], clients, partial(run_stages, home))
    assert [(one.ran, one.waits is None) for one in outcomes] == [(True, True), (False, False)]
    assert outcomes[1].waits.startswith("for a budget: emotions would shrink from ")
    assert 0 < spent_by(home) <= budget


def test_a_budget_that_was_broken_off_is_ended_by_the_next_refresh_of_the_same_though_nothing_is_due(home):
    settings = load(home)

    def refreshed(table: str, budget: str, run=None) -> None:
        named = budget_name([table])
        with ClientPool(home, settings.llm, provider="openai", budget=Decimal(budget), budget_of=named) as clients:
            refresh(home, settings, [table], clients, run or partial(run_stages, home))

    def budgets():
        with Ledger(home / "ledger.sqlite") as ledger:
            return ledger.budgets()

    refreshed("topics", "0.02")
    [broken_off] = budgets()
    assert (broken_off.of, broken_off.spent > 0) == ("refresh:topics", True)
    refreshed("emotions", "5")
    assert budgets() == [broken_off]
    refreshed("topics", "5")
    assert budgets() == []
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.open_budget(Decimal(5), "USD", budget_name([TABLE]))
    refreshed(TABLE, "5", lambda *_: pytest.fail("nothing is due"))
    assert budgets() == []


@pytest.mark.slow
def test_an_interrupted_refresh_says_so_in_a_line(home):
    with Vendor(latency=2.0) as slow:
        running = started(home, slow)
        running.send_signal(signal.SIGINT)
        _, printed = running.communicate(timeout=60)
    assert running.returncode == 130
    assert re.match("waiting for .*\ngongqing: interrupted", printed)
    assert "Traceback" not in printed


def test_an_asset_waits_for_whoever_makes_tables_and_says_so(instance, home):
    """So one process at a time asks over the network: a host's limits hold for a process."""
    hold = "import sys; from pathlib import Path; from pipelines.core.home import Home\n"
    hold += "with Home(Path(sys.argv[1])).refreshing(): print('held', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", hold, home], cwd=ROOT, **pipes) as other:
        assert other.stdout.readline() == "held\n"
        threading.Timer(1.5, other.stdin.close).start()
        before = time.monotonic()
        made = materialize(instance, home, provider="written")
        assert time.monotonic() - before > 1
    assert made.success
    assert f"a refresh, a release or an erasure is at work: process {other.pid} on" in messages(instance, made)


def test_dagster_is_told_how_far_an_asset_is_and_how_long_it_will_take(instance, home, monkeypatch):
    """Also where the command line runs it, whose own bars are told as well."""
    monkeypatch.setattr("pipelines.llm.progress._EVERY", 0.2)
    with Vendor(latency=0.4) as slow:
        models = PROFILE.format(url=slow.base_url).replace("max_tokens = 300", "max_tokens = 300\nconcurrency = 8")
        (home / "models.toml").write_text(models, encoding="utf-8")
        made = materialize(instance, home, provider="openai", budget=1.0)
    assert made.success
    lines = [line for line in messages(instance, made).splitlines() if " done, " in line]
    assert re.fullmatch(rf"{TABLE}: \d+ of \d+ done, 0 of them .*, spent 0\.\d{{4}}, \d+ s left", lines[0]), lines
    assert "left" not in lines[-1]


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_a_refresh_that_was_killed_is_gone_on_with(home):
    """The calls of the dead run are lost and listed, and nothing that was answered is asked."""
    with Vendor(latency=2.0) as slow:
        killed = started(home, slow)
        time.sleep(0.5)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        slow.change(latency=0.0)
        sent = slow.stats()["requests"]
        again = started(home, slow)
        _, printed = again.communicate(timeout=180)
        assert again.returncode == 0, printed
        assert slow.stats()["requests"] == sent + rows(home).height > rows(home).height
    with Ledger(home / "ledger.sqlite") as ledger:
        assert [one.lost for one in ledger.open_attempts()] == [True] * sent
    assert set(rows(home)["provider"]) == {"openai"}


def test_what_shapes_a_question_makes_its_table_stale_and_a_price_does_not(home):
    stage = next(stage for stage in STAGES if stage.name == TABLE)

    def stale() -> bool:
        with ClientPool(home, load(home).llm, provider="openai") as clients:
            return Runner(HomeResource(path=str(home)).store(), load(home), clients).is_stale(stage)

    with ClientPool(home, load(home).llm, provider="openai", budget=Decimal(1)) as clients:
        run_stages(home, HomeResource(home).runner(clients), [stage])
    assert not stale()
    models = home / "models.toml"
    models.write_text(models.read_text().replace("output = 10", "output = 11"))
    assert not stale()
    models.write_text(models.read_text().replace("max_tokens = 300", "max_tokens = 400"))
    assert stale()


def test_without_a_budget_a_model_whose_price_nobody_has_said_is_waited_for(sample_home, tmp_path):
    shutil.copytree(sample_home / "data", tmp_path / "data", ignore=shutil.ignore_patterns("ecot_chains"))
    settings = load(tmp_path)
    with ClientPool(tmp_path, settings.llm, provider="openai") as clients:
        [outcome] = refresh(tmp_path, settings, ["ecot_chains"], clients)
    assert "nobody has said" in outcome.waits or "host" in outcome.waits


@pytest.mark.drill("web UI")
def test_a_run_with_more_than_the_settings_allow_asks_nothing(instance, home, vendor):
    """The launch pad may be filled in by anybody who reaches it: 9000 was accepted."""
    before = vendor.stats()["requests"]
    made = materialize(instance, home, provider="openai", budget=9000.0)
    assert not made.success
    assert "may spend 100.0, not 9000" in str(made.all_events)
    (home / "gongqing.toml").write_text(f'[llm]\nprofiles = "{home / "models.toml"}"\n', encoding="utf-8")
    assert not materialize(instance, home, provider="openai", budget=0.01).success
    assert vendor.stats()["requests"] == before
    assert not (home / "ledger.sqlite").exists()


def test_what_a_run_has_spent_is_the_next_ones_no_more(instance, home):
    made = materialize(instance, home, provider="openai", budget=60.0)
    assert made.success
    assert 0 < spent_by(home) < 1
    [event] = made.get_asset_materialization_events()
    shown = event.step_materialization_data.materialization.metadata
    assert shown["cost_USD"].value == pytest.approx(float(spent_by(home)))
    assert (shown["calls"].value > 0, shown["repairs"].value, shown["failed_calls"].value) == (True, 0, 0)
    assert materialize(instance, home, provider="openai", budget=float(100 - spent_by(home))).success
    assert not materialize(instance, home, provider="openai", budget=100.0).success


def test_the_weekly_schedule_spends_only_what_the_settings_allow(home, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    context = dg.build_schedule_context()
    assert isinstance(schedules.annotate_weekly.evaluate_tick(context).skip_message, str)
    with (home / "gongqing.toml").open("a", encoding="utf-8") as file:
        file.write("schedule_budget = 2.5\n")
    [request] = schedules.annotate_weekly.evaluate_tick(context).run_requests
    assert request.run_config == {"resources": {"clients": {"config": {"budget": 2.5}}}}
    assert schedules.annotate_weekly.default_status is dg.DefaultScheduleStatus.STOPPED


@pytest.mark.drill("model host")
def test_a_table_that_other_answers_would_halve_fails_its_check_and_stays(instance, home, monkeypatch):
    """Until the run's config allows it; the answers are in the ledger, and asked for once."""
    before = rows(home)
    monkeypatch.setattr("pipelines.flow.runner.LEAST_TO_SHRINK", before.height)
    with HostileHost("服务繁忙") as host:
        (home / "models.toml").write_text(PROFILE.format(url=host.base_url), encoding="utf-8")
        with (home / "gongqing.toml").open("a", encoding="utf-8") as settings:
            settings.write("failures = 1.0\n")
        made = materialize(instance, home, provider="openai", budget=1.0)
        [check] = made.get_asset_check_evaluations()
        assert (made.success, check.check_name, check.passed) == (False, "size", False)
        metadata = {name: value.value for name, value in check.metadata.items()}
        assert (metadata["rows"], metadata["rows it would have"]) == (before.height, 0)
        assert "--allow-shrink" in metadata["hint"]
        assert rows(home).equals(before)
        paid = host.requests
        made = materialize(instance, home, provider="openai", budget=1.0, allow_shrink=True)
        [check] = made.get_asset_check_evaluations()
        assert (made.success, check.check_name, check.passed) == (True, "size", True)
        assert (rows(home).height, host.requests) == (0, paid)
