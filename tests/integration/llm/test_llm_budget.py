"""The cap: never passed by a nano-unit, whatever is in flight, and used up before a run is stopped for it."""

from decimal import Decimal

import pytest
from asking_tools import IN_BATCHES, asking, ledger_of, llm_for, question, questions, vendor_as, worker

from pipelines.errors import BudgetSpent
from pipelines.llm.interface import BUDGET

N = 400


@pytest.fixture(scope="module")
def price_of_all(tmp_path_factory):
    """What N questions cost at a greedy vendor, who bills all that could be billed."""
    home = tmp_path_factory.mktemp("all")
    with vendor_as(greedy=True) as vendor, asking(home, llm_for(home, vendor.base_url, concurrency=64), "100") as ask:
        ask.ask("emotions", questions(N))
        return Decimal(vendor.stats()["nano"]) / 10**9


@pytest.mark.slow
def test_the_cap_holds_with_256_calls_in_flight_and_what_was_paid_for_is_answered(tmp_path, price_of_all):
    cap = round(price_of_all * Decimal("0.4"), 9)
    with vendor_as(latency=0.6, greedy=True) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, concurrency=256)
        with asking(tmp_path, llm, str(cap)) as ask:
            least = ask.estimate("emotions", questions(1)).cost
            replies = ask.ask("emotions", questions(N))
        stats = vendor.stats()
        billed = Decimal(stats["nano"]) / 10**9
        with ledger_of(tmp_path) as ledger:
            budget = ledger.budget(BUDGET)
            assert ledger.open_attempts() == []
        assert billed <= cap
        assert stats["most_in_flight"] >= min(200, stats["billed"] / 2)
        assert (Decimal(budget.spent) / 10**9, budget.held) == (billed, 0)
        # It is used up: the next call may cost more than is left. Every question has a reply all the same.
        assert billed + least > cap
        assert billed > cap * Decimal("0.9")
        assert [reply.question.row_id for reply in replies] == [one.row_id for one in questions(N)]
        assert sum(reply.value is not None for reply in replies) == stats["billed"]
        left = [(reply.reason, reply.detail) for reply in replies if reply.value is None]
        assert left == [("not_asked_yet", f"the budget of {cap.normalize():f} USD was used up")] * (N - stats["billed"])
        # With more of it the rest is asked, and nothing twice.
        vendor.change(latency=0.0)
        with asking(tmp_path, llm, str(price_of_all * 2)) as ask:
            assert all(reply.value for reply in ask.ask("emotions", questions(N)))
        assert vendor.stats()["requests"] == N


def test_what_is_set_aside_and_not_spent_is_spent_on_others(tmp_path):
    """A cap of one worst case and a bit: a real call takes a fraction of it, so that many fit, one after the other."""
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, profile="max_tokens = 4000")
        with asking(tmp_path, llm, "0.06") as ask:
            assert ask.estimate("emotions", questions(1)).cost > Decimal("0.03")
            assert all(reply.value for reply in ask.ask("emotions", questions(20)))
        assert Decimal(vendor.stats()["nano"]) / 10**9 < Decimal("0.06")


def test_a_budget_stays_open_where_a_stage_was_not_asked_to_its_end(tmp_path):
    """Whatever stage comes after it. Where not one question has an answer, that is an error."""
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        with asking(tmp_path, llm, "0.012") as ask:
            assert {reply.reason for reply in ask.ask("emotions", questions(50))} == {None, "not_asked_yet"}
            with pytest.raises(BudgetSpent, match=r"used up: .* 2 questions wait"):
                ask.ask("emotions", questions(52)[50:])
            assert ask.ask("topics", questions(1))[0].value
        with ledger_of(tmp_path) as ledger:
            assert ledger.budget(BUDGET).spent == vendor.stats()["nano"] > 0


@pytest.mark.usefixtures("short_waits")
def test_what_batches_brought_before_the_budget_was_used_up_is_answered(tmp_path):
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, price=IN_BATCHES)
        with asking(tmp_path, llm, None, batch=True) as ask:
            cap = 3 * ask.estimate("emotions", questions(1)).cost
        for budget, all_of_them in ((cap, False), (10 * cap, True)):
            with asking(tmp_path, llm, str(budget), batch=True) as ask:
                replies = ask.ask("emotions", questions(30))
            assert {reply.reason for reply in replies} <= {None, "not_asked_yet"}
            assert 3 <= sum(reply.value is not None for reply in replies) == vendor.stats()["billed"]
            assert (vendor.stats()["billed"] == 30) == all_of_them


LONG = "我失眠三周了，" * 2000


@pytest.mark.parametrize(("place", "batch"), [(0, True), (7, False), (11, False)])
def test_a_question_dearer_than_the_whole_budget_costs_no_other(tmp_path, place, batch):
    """Wherever it stands; each refresh leaves it, until a budget is large enough."""
    some = questions(11)
    some.insert(place, question(99, text=LONG))
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, price=IN_BATCHES)
        with asking(tmp_path, llm, None, batch=batch) as ask:
            dear = ask.estimate("emotions", [some[place]]).cost
            cap = dear - Decimal("0.000000001")
            assert cap > ask.estimate("emotions", questions(1)).cost
        for asked in (11, 11):
            with asking(tmp_path, llm, str(cap), batch=batch) as ask:
                replies = ask.ask("emotions", some)
            assert [reply.reason for reply in replies if reply.value is None] == ["over_budget"]
            assert replies[place].detail == f"may cost {dear:f}, of {cap:f} USD in all"
            assert vendor.stats()["billed"] == asked
            with ledger_of(tmp_path) as ledger:
                assert ledger.budgets() == []
                assert ledger.open_attempts() == []
        with asking(tmp_path, llm, str(cap * 2), batch=batch) as ask:
            assert all(reply.value for reply in ask.ask("emotions", some))
        assert vendor.stats()["billed"] == 12


def test_where_no_question_fits_the_budget_is_too_small_and_nothing_is_used_up(tmp_path):
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        with asking(tmp_path, llm, "0.0001") as ask:
            least = ask.estimate("emotions", questions(1)).cost
            with pytest.raises(BudgetSpent, match="the budget is too small") as caught:
                ask.ask("emotions", [question(99, text=LONG), *questions(9)])
        assert "used up" not in str(caught.value)
        assert caught.value.wanted == least
        with asking(tmp_path, llm) as ask:
            assert all(reply.value for reply in ask.ask("emotions", questions(9)))
        # What has been answered fits into any budget.
        with asking(tmp_path, llm, "0.0001") as ask:
            *replies, dear = ask.ask("emotions", [*questions(9), question(99, text=LONG)])
        assert all(reply.value for reply in replies)
        assert dear.reason == "over_budget"


@pytest.mark.slow
def test_two_processes_spend_from_one_budget_and_never_more(tmp_path, price_of_all):
    """Each asks the half of the questions, both at once, at a cap for a third of them."""
    cap = round(price_of_all / 3, 9)
    with vendor_as(latency=0.3, greedy=True) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, profile="concurrency = 128")
        workers = [worker(tmp_path, llm, N // 2, first=first, budget=str(cap)) for first in (0, N // 2)]
        said = [one.communicate(timeout=120)[0].split() for one in workers]
        stats = vendor.stats()
    assert [one.returncode for one in workers] == [0, 0]
    assert {word for word, _ in said} == {"spent"}
    assert sum(int(waiting) for _, waiting in said) == N - stats["billed"]
    assert cap * Decimal("0.7") < Decimal(stats["nano"]) / 10**9 <= cap
    with ledger_of(tmp_path) as ledger:
        assert ledger.budget(BUDGET).spent == stats["nano"]
