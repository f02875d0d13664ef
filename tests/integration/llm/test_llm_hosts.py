"""Hosts that are down or say odd things: no table is emptied, nothing bought twice, no odd type meets the ledger."""

import contextlib
import copy
import json
import random
from functools import partial

import pytest
from asking_tools import IN_BATCHES, asking, keys, ledger_of, llm_for, question, questions, vendor_as

from pipelines.errors import HostRefused
from pipelines.llm.cost import worst_case
from pipelines.llm.factory import open_client
from pipelines.llm.interface import BUDGET
from pipelines.llm.payload import payload
from pipelines.llm.profiles import profiles
from pipelines.llm.providers import batch as batches
from pipelines.llm.providers.endpoint import MOST_IN_A_ROW
from pipelines.llm.providers.replay import record

GOOD = {
    "id": "x",
    "model": "stub-1",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"content": '{"emotion":"焦虑","intensity":3,"why":"x"}'}}
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}},
}


pytestmark = pytest.mark.usefixtures("short_waits")


def told(**parts):
    return json.dumps(GOOD | parts)


# Hosts that are down


def test_a_host_that_is_down_ends_the_run_and_leaves_the_budget_open(tmp_path):
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, attempts=2, timeout=3.0, concurrency=4)
        with asking(tmp_path, llm) as ask:
            ask.ask("emotions", questions(3))
            vendor.change(faults={"timeout": 1.0}, hang=0.05)
            with pytest.raises(HostRefused, match=f"gives no answers: {MOST_IN_A_ROW} questions in a row") as caught:
                ask.ask("emotions", questions(200))
        assert vendor.stats()["requests"] < 3 + 2 * (MOST_IN_A_ROW + 8) + 1
        assert "try again later" in caught.value.hint
        with ledger_of(tmp_path) as ledger:
            assert ledger.budget(BUDGET) is not None
            assert ledger.open_attempts() == []
            assert len(ledger.recorded(keys(llm, questions(200))).keys()) == 3


def test_fewer_questions_without_an_answer_are_rows_and_an_answer_between_begins_anew(tmp_path):
    with (
        vendor_as(faults={"500": 1.0}) as vendor,
        asking(tmp_path, llm_for(tmp_path, vendor.base_url, attempts=1, concurrency=1)) as ask,
    ):
        for start in range(0, 28, 7):
            some = [question(i) for i in range(start, start + 7)]
            assert {reply.reason for reply in ask.ask("emotions", some)} == {"no_answer"}
            vendor.change(faults={})
            assert ask.ask("emotions", [question(100 + start)])[0].value
            vendor.change(faults={"500": 1.0})


def test_a_batch_of_which_nothing_was_answered_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "Patience", partial(batches.Patience, tries=2))
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, price=IN_BATCHES)
        vendor.batches(flooded=1.0)
        with asking(tmp_path, llm, batch=True) as ask:
            assert {reply.reason for reply in ask.ask("emotions", questions(3))} == {"no_answer"}
            with pytest.raises(HostRefused, match=r"gives no answers: none to all 9 questions of a batch \(http_429\)"):
                ask.ask("emotions", questions(9))
        with ledger_of(tmp_path) as ledger:
            assert ledger.budget(BUDGET) is not None


@pytest.mark.parametrize(("body", "has_usage"), [(told(choices=[]), True), ('{"cost": NaN}', False)])
def test_what_is_no_completion_is_bought_once_and_ends_invalid(tmp_path, body, has_usage):
    with vendor_as() as vendor:
        vendor.change(bodies=[body])
        llm = llm_for(tmp_path, vendor.base_url)
        for budget in ("10", None):
            with asking(tmp_path, llm, budget) as ask:
                (reply,) = ask.ask("emotions", [question(0)])
            assert (reply.reason, reply.detail) == ("invalid_reply", "unreadable")
        assert vendor.stats()["requests"] == 1
    with ledger_of(tmp_path) as ledger:
        [kept] = ledger.recorded(keys(llm, [question(0)])).values()
        assert kept.body == body.encode()
        stub = profiles(llm.profiles)["stub"]
        assert kept.cost == (75_000 if has_usage else worst_case(stub, payload(question(0), stub)))
        assert ledger.spend()[0].at_risk == 0
        record(ledger, tmp_path / "recordings.jsonl")
    replayed = llm.model_copy(update={"recordings": tmp_path / "recordings.jsonl"})
    with open_client(None, replayed, "replay") as ask:
        assert ask.ask("emotions", [question(0)])[0].reason == "invalid_reply"


def test_a_call_that_cost_more_than_it_could_is_booked_as_told_and_ends_the_run(tmp_path):
    with vendor_as() as vendor:
        vendor.change(bodies=[told(usage={"prompt_tokens": 10, "completion_tokens": 10**6})])
        llm = llm_for(tmp_path, vendor.base_url, concurrency=1)
        said = r"10 tokens in and 1000000 out of one call, 10\.000025 USD, where 0\.00\d+ was set aside"
        with asking(tmp_path, llm, "50") as ask, pytest.raises(HostRefused, match=said) as caught:
            ask.ask("emotions", questions(5))
        assert vendor.stats()["requests"] == 1
    assert "max_tokens and price" in caught.value.hint
    with ledger_of(tmp_path) as ledger:
        budget = ledger.budget(BUDGET)
        assert (budget.spent, budget.held) == (10_000_025_000, 0)
        ledger.check()


ODD = [
    None, True, -1, 0, 5.7, 1e400, 10**30, -(10**30), "", "x", "\0", "\ud800", "好" * 5000, [], [[]], {}, {"a": 1},
    ["content_filter"], {"cached_tokens": "x"},
]  # fmt: skip


def mutated(seed):
    """A good body with one to three of its values put in odd ones' place, taken away, or cut as text."""
    chance = random.Random(seed)
    body = copy.deepcopy(GOOD)
    for _ in range(chance.randint(1, 3)):
        places = []

        def walk(node, places=places):
            for name in node if isinstance(node, dict) else range(len(node)):
                places.append((node, name))
                if isinstance(node[name], dict | list):
                    walk(node[name])

        walk(body)
        if not places:
            break
        node, name = chance.choice(places)
        if chance.random() < 0.2:
            del node[name]
        else:
            node[name] = copy.deepcopy(chance.choice(ODD))
    text = json.dumps(body)
    return text[: chance.randrange(len(text))] if chance.random() < 0.1 else text


def test_no_body_of_a_host_is_an_error_of_the_ledger(tmp_path):
    """150 of them through the whole way, a good one after each, so that a run of odd ones does not end it."""
    n = 150
    with vendor_as() as vendor:
        vendor.change(bodies=[body for seed in range(n) for body in (mutated(seed), told())])
        llm = llm_for(tmp_path, vendor.base_url, concurrency=1, repairs=0)
        with asking(tmp_path, llm, "1000000") as ask:
            replies = None
            while replies is None:  # a usage that cannot be ends the run: the next goes on behind it
                before = vendor.stats()["requests"]
                with contextlib.suppress(HostRefused):
                    replies = ask.ask("emotions", questions(2 * n))
                assert replies is not None or vendor.stats()["requests"] > before
        assert vendor.stats()["requests"] == 2 * n
    assert sum(reply.value is not None for reply in replies) > 1.2 * n
    with ledger_of(tmp_path) as ledger:
        ledger.check()
        kept = ledger.recorded(keys(llm, questions(2 * n)))
        assert len(kept) == 2 * n
        assert all(one.finish_reason is None or isinstance(one.finish_reason, str) for one in kept.values())
        assert all(min(one.usage.cached, one.usage.prompt, one.usage.completion) >= 0 for one in kept.values())
