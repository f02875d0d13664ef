"""Assets that ask, on a vendor of models on this machine: what a run may spend, what it leaves, what it tells."""

import shutil
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

from pipelines.askers import Askers
from pipelines.defs import assets, schedules
from pipelines.defs.resources import HomeResource, askers_resource
from pipelines.errors import BudgetSpent
from pipelines.llm.ledger import FILE, Ledger
from pipelines.refresh import estimates, refresh
from pipelines.settings import load
from samples.vendor import Vendor

TABLE = "topics"
ASSET = next(one for one in assets.stages if {key.to_user_string() for key in one.keys} == {TABLE})
PROFILE = """
[qwen-plus]
base_url = "{url}"
model = "stub"
key_variable = ""
max_tokens = 300

[qwen-plus.price]
input = 2.5
output = 10
currency = "USD"
date = 2026-11-21
source = "invented"
"""


@pytest.fixture(scope="module")
def vendor():
    with Vendor() as running:
        yield running


@pytest.fixture
def home(sample_home: Path, tmp_path: Path, vendor: Vendor) -> Path:
    """A home with every table made by rules, and a profile that asks the vendor."""
    shutil.copytree(sample_home, tmp_path / "home")
    models = tmp_path / "home" / "models.toml"
    models.write_text(PROFILE.format(url=vendor.base_url), encoding="utf-8")
    (tmp_path / "home" / "gongqing.toml").write_text(f'[llm]\nprofiles = "{models}"\n', encoding="utf-8")
    return tmp_path / "home"


def materialize(instance: dg.DagsterInstance, home: Path, **config: object) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [ASSET],
        instance=instance,
        resources={"home": HomeResource(path=str(home)), "askers": askers_resource},
        run_config={"resources": {"askers": {"config": config}}},
        raise_on_error=False,
    )


def rows(home: Path):
    return HomeResource(path=str(home)).store().read(TABLE).collect()


def test_a_run_with_a_budget_asks_each_question_once(instance, home, vendor):
    before = vendor.stats()["requests"]
    made = materialize(instance, home, provider="openai", budget=1.0)
    assert made.success
    asked = vendor.stats()["requests"] - before
    assert asked == rows(home).height > 0
    assert set(rows(home)["provider"]) == {"openai"}
    assert set(rows(home)["model_served"]) == {"invented/stub"}
    assert materialize(instance, home, provider="openai", budget=1.0).success
    assert vendor.stats()["requests"] - before == asked
    with Ledger(home / FILE) as ledger:
        [spent] = ledger.spend()
        assert (spent.stage, spent.calls, spent.tokens_out > 0) == (TABLE, asked, True)
        assert ledger.open_attempts() == []
        assert ledger.budget("refresh") is None


def test_a_run_without_a_budget_leaves_the_table_and_says_so(instance, home, vendor):
    before, requests = rows(home), vendor.stats()["requests"]
    made = materialize(instance, home, provider="openai")
    assert made.success
    assert rows(home).equals(before)
    assert vendor.stats()["requests"] == requests
    told = [event.user_message for event in instance.all_logs(made.run_id)]
    assert any("left as it stands" in words and "there is no budget" in words for words in told)


def test_a_budget_that_does_not_reach_fails_the_run_and_keeps_what_was_answered(instance, home):
    before = rows(home)
    with Askers(home, load(home).llm, provider="openai") as askers:
        [(_, whole)] = list(estimates(home, load(home), askers, [TABLE]))
    made = materialize(instance, home, provider="openai", budget=round(float(whole.cost) / 3, 4))
    assert not made.success
    assert rows(home).equals(before)
    with Ledger(home / FILE) as ledger:
        [spent] = ledger.spend()
        budget = ledger.budget("refresh")
    assert 0 < spent.calls < whole.calls
    assert budget is not None, "a run that was broken off leaves its budget open"
    assert budget.spent == int(spent.cost * 10**9)
    assert budget.spent + budget.held <= budget.cap


def test_a_refresh_waits_for_a_budget_and_tells_what_it_takes(home):
    settings = load(home)
    with Askers(home, settings.llm, provider="openai") as askers:
        [outcome] = refresh(home, settings, lambda stage: pytest.fail(stage.name), [TABLE], askers)
        [(stage, taken)] = estimates(home, settings, askers, [TABLE])
    assert not outcome.ran
    assert outcome.waits == f"{taken.calls} calls to openai cost money, and there is no budget"
    assert stage.name == TABLE
    assert taken.cost > 0
    assert taken.cached == 0


def test_one_budget_is_for_all_stages_of_a_refresh(home):
    """What the first stage spends the second can not spend again."""
    settings = load(home)
    with Askers(home, settings.llm, provider="openai") as askers:
        [(_, topics)] = estimates(home, settings, askers, ["topics"])
    budget = topics.cost + Decimal("0.000001")

    def run(stage):
        from pipelines.defs.running import run_stage

        run_stage(home, stage, askers)

    with (
        pytest.raises(BudgetSpent),
        Askers(home, settings.llm, provider="openai", budget=budget) as askers,
    ):
        for _ in refresh(home, settings, run, ["topics", "emotions"], askers):
            pass
    with Ledger(home / FILE) as ledger:
        assert sum(one.cost for one in ledger.spend()) <= budget
        assert {one.stage for one in ledger.spend()} == {"topics", "emotions"}


def test_the_weekly_schedule_spends_only_what_the_settings_allow(home, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    context = dg.build_schedule_context()
    assert isinstance(schedules.annotate_weekly.evaluate_tick(context).skip_message, str)
    with (home / "gongqing.toml").open("a", encoding="utf-8") as file:
        file.write("schedule_budget = 2.5\n")
    [request] = schedules.annotate_weekly.evaluate_tick(context).run_requests
    assert request.run_config == {"resources": {"askers": {"config": {"budget": 2.5}}}}
    assert schedules.annotate_weekly.default_status is dg.DefaultScheduleStatus.STOPPED
