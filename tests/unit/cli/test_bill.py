"""What a refresh has asked, in a line: the ledger after it, less the ledger before it."""

from decimal import Decimal
from typing import Any

from pipelines.cli.render import bill
from pipelines.llm.ledger.records import Spend

DAY = "2026-03-02"


def spend(stage: str, calls: int, cost: str, **fields: Any) -> Spend:
    values = {"alias": "a", "model_asked": "m", "model_served": "m", "day": DAY, "currency": "USD"}
    values |= {
        "failed": 0,
        "unsettled": 0,
        "repairs": 0,
        "tokens_in": 100 * calls,
        "tokens_cached": 0,
        "tokens_out": 10 * calls,
    }
    return Spend(stage=stage, calls=calls, cost=Decimal(cost), **(values | {"at_risk": Decimal(0)} | fields))


def test_a_line_says_calls_tokens_and_money_of_the_refresh_and_the_money_of_the_day():
    yesterday = spend("topics", 7, "3", day="2026-03-01")
    before = [yesterday, spend("topics", 10, "0.5")]
    after = [yesterday, spend("topics", 1_010, "0.75"), spend("emotions", 1, "0.01"), spend("judge", 2, "1")]
    assert bill(before, after, {"topics", "emotions"}, DAY) == [
        "asked: 1,001 calls, 100,100 tokens in, 10,010 out, 0.2600 USD; today in all 1.7600 USD"
    ]


def test_tries_that_failed_and_money_at_risk_are_named():
    (line,) = bill([], [spend("topics", 0, "0", failed=3, at_risk=Decimal("0.2"))], {"topics"}, DAY)
    assert "0 calls (3 tries failed)" in line
    assert "0.0000 USD and 0.2000 at risk;" in line


def test_each_currency_has_a_line():
    after = [spend("topics", 1, "1"), spend("topics", 1, "2", currency="CNY")]
    assert [line.split()[-1] for line in bill([], after, {"topics"}, DAY)] == ["USD", "CNY"]


def test_a_refresh_that_asked_nothing_has_no_line():
    same = [spend("topics", 10, "0.5")]
    assert bill([], [], {"topics"}, DAY) == bill(same, [*same, spend("judge", 1, "1")], {"topics"}, DAY) == []
