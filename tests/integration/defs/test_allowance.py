"""What the runs in Dagster may spend together: the settings cap it, whatever a run is configured with."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.defs import allowance
from pipelines.defs.allowance import allow, cap, record_spent
from pipelines.errors import GongqingError, RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.settings import Llm

THREE = Llm(daily_budget=3)


def test_nothing_may_be_spent_unless_the_settings_say_so(tmp_path: Path):
    with pytest.raises(RequestError, match=r"may spend 0, not 0.01") as refused:
        allow(tmp_path, Llm(), "run a", Decimal("0.01"))
    assert "daily_budget" in refused.value.hint
    allow(tmp_path, Llm(), "run a", Decimal(0))


def test_where_there_is_no_cap_of_its_own_the_schedules_holds_for_all_runs():
    assert cap(Llm(schedule_budget=2.5)) == Decimal("2.5")
    assert cap(Llm(schedule_budget=2.5, daily_budget=0)) == cap(Llm()) == 0
    assert cap(Llm(schedule_budget=2.5, daily_budget=10)) == 10


def test_many_runs_have_no_more_than_one(tmp_path: Path):
    allow(tmp_path, THREE, "run a", Decimal(2))
    with pytest.raises(RequestError, match=r"may spend 1\.0, not 2: all runs in Dagster may spend 3\.0 a day"):
        allow(tmp_path, THREE, "run b", Decimal(2))
    allow(tmp_path, THREE, "run b", Decimal(1))
    with pytest.raises(RequestError, match=r"may spend 0\.0, not"):
        allow(tmp_path, THREE, "run a", Decimal("0.1"))  # the same run once more is another one


@pytest.mark.drill("race")
def test_runs_that_begin_at_once_have_no_more_either(tmp_path: Path):
    def begun(number: int) -> bool:
        with suppress(RequestError):
            allow(tmp_path, THREE, f"run {number}", Decimal(1))
            return True
        return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(begun, range(24))) == 3


def test_a_run_that_has_ended_counts_for_what_it_has_spent(tmp_path: Path):
    allow(tmp_path, THREE, "run a", Decimal(3))
    record_spent(tmp_path, "run a", "run a")  # it never asked
    assert not (tmp_path / "ledger.sqlite").exists()
    allow(tmp_path, THREE, "run b", Decimal(3))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.taken("run b") == 0
        ledger.open_budget(Decimal(3), "USD", "run b")
    record_spent(tmp_path, "run b", "run b")
    allow(tmp_path, THREE, "run c", Decimal(3))


def test_a_day_later_there_is_as_much_again_but_for_what_a_run_under_way_was_allowed(tmp_path: Path, monkeypatch):
    allow(tmp_path, THREE, "run a", Decimal(3))
    then = time.time() + 24 * 3600 + 1
    monkeypatch.setattr(allowance.time, "time", lambda: then)
    with pytest.raises(RequestError, match=r"may spend 0"):
        allow(tmp_path, THREE, "run b", Decimal(3), under_way={"a", "b"})
    allow(tmp_path, THREE, "run b", Decimal(3))
    assert [one["run"] for one in json.loads((tmp_path / "allowance.json").read_bytes())] == ["run b"]


def test_a_run_that_ends_leaves_what_its_judge_may_spend(tmp_path: Path):
    allow(tmp_path, THREE, "run a", Decimal("0.1"))
    allow(tmp_path, THREE, "judge of compeer_cer in run a", Decimal("2.9"))
    record_spent(tmp_path, "run a", "run a")
    with pytest.raises(RequestError, match=r"may spend 0\.1, not 2\.9"):
        allow(tmp_path, THREE, "judge of compeer_cer in run b", Decimal("2.9"))


def test_what_is_no_amount_is_refused(tmp_path: Path):
    for budget in ("-1", "NaN", "Infinity", "9000"):
        with pytest.raises((RequestError, ArithmeticError)):
            allow(tmp_path, THREE, "run a", Decimal(budget))
    assert not (tmp_path / "allowance.json").exists()


@pytest.mark.drill("damage")
def test_a_damaged_file_allows_nothing(tmp_path: Path):
    of_a = f'[{{"run": "a", "at": {time.time()}, "amount": "much"}}]'
    for content in ("", "[", "{}x", '[{"run": "a"}]', of_a, "[1]"):
        (tmp_path / "allowance.json").write_text(content)
        with pytest.raises(GongqingError, match="cannot be read") as refused:
            allow(tmp_path, THREE, "run a", Decimal(1))
        assert refused.value.where == tmp_path / "allowance.json"
