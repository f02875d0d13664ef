"""Whatever goes wrong on the way, every question ends with a value or a reason, and the books agree."""

import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from unittest.mock import Mock

import pytest
from asking_tools import IN_BATCHES, add_model, asking, ledger_of, llm_for, question, questions, vendor_as

from pipelines.errors import HostRefused
from pipelines.llm.providers import endpoint
from pipelines.llm.questions import REASONS

pytestmark = pytest.mark.usefixtures("short_waits")

MONEY = {"nano": "cost", "at_risk": "at_risk"}


def spend(home):
    """Calls, failed ones, those that nobody has settled, nano-units spent, at risk."""
    with ledger_of(home) as ledger:
        rows = ledger.spend()
        assert ledger.open_attempts() == []
        ledger.check()
    counts = {name: sum(getattr(row, name) for row in rows) for name in ("calls", "failed")}
    return counts | {name: int(sum(getattr(row, of) for row in rows) * 10**9) for name, of in MONEY.items()}


@pytest.mark.drill("model host")
@pytest.mark.slow
def test_every_question_ends_with_a_value_or_a_reason_and_the_books_agree(tmp_path):
    """10 % 429, 5 % 500, 5 % timeouts, 5 % connections cut, 5 % replies cut short, 5 % malformed, some filtered."""
    faults = dict.fromkeys(("500", "timeout", "cut", "length", "malformed"), 0.05)
    faults |= {"429": 0.1, "filter": 0.01, "refused": 0.01}
    n = 600
    seen = Mock()
    with vendor_as(latency=0.005, hang=25.0, faults=faults, seed=5) as vendor:
        # Longer than a busy machine keeps an answer waiting: one that comes too late is billed all the same.
        llm = llm_for(tmp_path, vendor.base_url, timeout=10.0, concurrency=48, attempts=15)
        with asking(tmp_path, llm, "100", progress=seen) as ask:
            one = int(ask.estimate("emotions", [question(0)]).cost * 10**9)
            replies = ask.ask("emotions", questions(n))
        stats = vendor.stats()
        book = spend(tmp_path)
        happened = stats["faults"]
        with asking(tmp_path, llm, None) as ask:
            again = ask.ask("emotions", questions(n))
        assert vendor.stats()["requests"] == stats["requests"]
    assert len(replies) == n
    assert all((reply.value is None) == (reply.reason in REASONS) for reply in replies)
    assert all((reply.reason is None) == (reply.detail is None) for reply in replies)
    reasons = Counter(reply.reason for reply in replies)
    assert reasons[None] > 0.9 * n
    assert reasons["refused"] > 0
    assert again == replies
    assert min(happened[fault] for fault in faults) > 0
    # What the ledger has spent is what the vendor billed, to the nano-unit; the rest is known by its kind.
    assert book["nano"] == stats["nano"]
    assert book["calls"] == stats["billed"] + happened["refused"]
    assert book["failed"] == sum(happened[fault] for fault in ("429", "500", "timeout", "cut"))
    # Nobody knows of the timeouts and the cut connections: what was set aside for each stays so. A repair may cost more
    # than a first try, and never twice as much.
    unknown = happened["timeout"] + happened["cut"]
    assert unknown * one <= book["at_risk"] < 2 * unknown * one
    assert seen.update.call_args.args[1:] == (n, n, 0, n - reasons[None], Decimal(stats["nano"]) / 10**9)


@pytest.mark.drill("model host")
@pytest.mark.parametrize(
    ("fault", "status", "at_risk"),
    [("429", "http_429", False), ("500", "http_500", False), ("cut", "connection", True), ("timeout", "timeout", True)],
)
def test_what_never_gets_through_is_given_up_after_all_tries(tmp_path, fault, status, at_risk):
    with vendor_as(faults={fault: 1.0}, hang=1.0) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, attempts=3, timeout=0.3 if fault == "timeout" else 10.0)
        with asking(tmp_path, llm) as ask:
            replies = ask.ask("emotions", questions(4))
        assert vendor.stats()["requests"] == 12
        book = spend(tmp_path)
        assert book["nano"] == vendor.stats()["nano"] == 0
        # No answer is no answer for ever: the next run asks again.
        vendor.change(faults={})
        with asking(tmp_path, llm.model_copy(update={"timeout": 10.0})) as ask:
            assert all(reply.value for reply in ask.ask("emotions", questions(4)))
    assert {(reply.reason, reply.detail) for reply in replies} == {("no_answer", f"{status}, tries: 3")}
    assert (book["calls"], book["failed"], book["at_risk"] > 0) == (0, 12, at_risk)


@pytest.mark.drill("model host")
def test_a_host_that_is_not_there_owes_nothing(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        llm = llm_for(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}/v1", attempts=2)
        with asking(tmp_path, llm) as ask:
            (reply,) = ask.ask("emotions", [question(1)])
    assert (reply.reason, reply.detail) == ("no_answer", "connection, tries: 2")
    assert spend(tmp_path) == {"calls": 0, "failed": 2, "nano": 0, "at_risk": 0}


def test_a_429_is_asked_again_when_the_host_says_and_not_before(tmp_path):
    with vendor_as(faults={"429": 1.0}, retry_after=1.2) as vendor:
        calming = threading.Timer(0.6, lambda: vendor.change(faults={}))
        calming.start()
        with asking(tmp_path, llm_for(tmp_path, vendor.base_url)) as ask:
            started = time.monotonic()
            replies = ask.ask("emotions", questions(3))
        assert vendor.stats()["faults"] == {"429": 3, "none": 3}
    assert all(reply.value for reply in replies)
    assert 1.2 <= time.monotonic() - started < 10


@pytest.mark.drill("model host")
def test_a_storm_lowers_what_is_in_flight(tmp_path):
    """Every second request is too fast: no more than a handful is ever in flight then, and all of them come through."""
    with vendor_as(latency=0.3) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, attempts=50, concurrency=32)
        with asking(tmp_path, llm) as ask:
            ask.ask("emotions", questions(40))
            assert 16 < vendor.stats()["most_in_flight"] <= 32
            vendor.change(faults={"429": 0.5}, latency=0.01)
            replies = ask.ask("emotions", [question(i) for i in range(100, 160)])
            limits = ask._endpoints["stub"].limits
            stormy = limits.limit
            vendor.change(faults={})
            ask.ask("emotions", [question(i) for i in range(200, 250)])
            assert limits.limit > stormy
    assert stormy <= 8
    assert all(reply.value for reply in replies)


def test_a_reply_cut_short_is_asked_again_with_twice_the_room(tmp_path):
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, profile="max_tokens = 30")  # the reply has about 55 characters
        with asking(tmp_path, llm) as ask:
            (reply,) = ask.ask("emotions", [question(1)])
        assert vendor.stats()["requests"] == 2
        assert spend(tmp_path)["nano"] == vendor.stats()["nano"]
        vendor.change(faults={"length": 1.0})
        with asking(tmp_path, llm.model_copy(update={"repairs": 5})) as ask:
            (short,) = ask.ask("emotions", [question(2)])
        assert vendor.stats()["requests"] == 2 + 3
    assert reply.value is not None
    assert (short.value, short.reason, short.detail.endswith(" tokens")) == (None, "cut_short", True)
    with ledger_of(tmp_path) as ledger:
        rooms = sorted(json.loads(one.payload)["max_tokens"] for one in ledger.exchanges())
    assert rooms == [30, 30, 60, 60, 120]  # and no further


# A request that the host would not have


def test_one_question_that_the_host_would_not_have_is_that_questions_fault(tmp_path):
    asked = questions(200)
    asked[77] = question(77, text="毒")
    asked.insert(150, replace(asked[77], row_id="twin"))
    with vendor_as(poison=["毒"]) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, concurrency=8)
        with asking(tmp_path, llm) as ask:
            replies = ask.ask("emotions", asked)
            assert vendor.stats()["requests"] == 200
        assert spend(tmp_path) == {"calls": 199, "failed": 1, "nano": vendor.stats()["nano"], "at_risk": 0}
        vendor.change(poison=[])
        with asking(tmp_path, llm) as ask:  # in the next it is
            assert all(reply.value for reply in ask.ask("emotions", asked))
        assert vendor.stats()["requests"] == 201
    poisoned = [(reply.question.row_id, reply.reason) for reply in replies if reply.value is None]
    assert poisoned == [("r77", "no_answer"), ("twin", "no_answer")]
    assert replies[77].detail == "http_400, tries: 1"


@pytest.mark.drill("model host")
@pytest.mark.parametrize("batch", [False, True])
def test_a_host_that_would_have_none_of_them_ends_the_run(tmp_path, batch):
    with vendor_as(poison=[""]) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, concurrency=4, price=IN_BATCHES)
        said = "400 to all 300 questions of a batch" if batch else r"400 \(invalid_value\) to 8 questions in a row"
        with asking(tmp_path, llm, batch=batch) as ask, pytest.raises(HostRefused, match=said) as caught:
            ask.ask("emotions", questions(300))
        sent = vendor.stats()["requests"]
    assert "limit_field" in caught.value.hint
    book = spend(tmp_path)
    assert book["nano"] == book["at_risk"] == book["calls"] == 0
    # With eight answers home at most three more are in flight; what was allowed to leave and did not is failed as well.
    assert sent == book["failed"] == 300 if batch else 8 <= sent <= 11 and sent <= book["failed"] <= 16


@pytest.mark.parametrize(("field", "batch"), [("max_tokens", True), ("max_completion_tokens", False)])
def test_a_model_that_calls_the_length_of_a_reply_otherwise(tmp_path, field, batch):
    """OpenAI's reasoning models refuse max_tokens; others do not know max_completion_tokens."""
    with vendor_as(greedy=True) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, profile=f'limit_field = "{field}"', price=IN_BATCHES)
        with asking(tmp_path, llm, batch=batch) as ask:
            most = ask.estimate("emotions", questions(10)).cost * 10**9
            vendor.change(limit_field="max_tokens" if field == "max_completion_tokens" else "max_completion_tokens")
            with pytest.raises(HostRefused, match="answers 400"):
                ask.ask("emotions", questions(10))
            assert spend(tmp_path)["nano"] == vendor.stats()["nano"] == 0
        vendor.change(limit_field=field)
        with asking(tmp_path, llm, batch=batch) as ask:
            assert all(reply.value for reply in ask.ask("emotions", questions(10)))
        assert 0 < vendor.stats()["nano"] <= most
        assert spend(tmp_path)["nano"] == vendor.stats()["nano"]


# What ends a run


def test_what_is_in_flight_comes_home_before_a_refusal_goes_up(tmp_path):
    """A model goes away in the middle: everything that was under way by then is answered, and paid for once."""
    with vendor_as(latency=1.0, models=["stub"]) as vendor:
        llm = llm_for(tmp_path, vendor.base_url, concurrency=16)
        add_model(llm, "gone", ('model = "stub"', 'model = "gone"'))
        asked = [question(i, model="gone" if i == 20 else "stub") for i in range(60)]
        with asking(tmp_path, llm) as ask, pytest.raises(HostRefused, match="gone answers 404"):
            ask.ask("emotions", asked)
        stats = vendor.stats()
        assert 1 <= stats["billed"] == stats["requests"] <= 16
    book = spend(tmp_path)
    assert book["calls"] == stats["billed"]
    assert (book["nano"], book["at_risk"]) == (stats["nano"], 0)


def test_an_error_that_nobody_foresaw_leaves_no_attempt_open(tmp_path, monkeypatch):
    sent = endpoint.Endpoint.post

    async def fails(self, request):
        body = await sent(self, request)
        if "第3篇" in request.payload["messages"][1]["content"]:
            raise ZeroDivisionError
        return body

    monkeypatch.setattr(endpoint.Endpoint, "post", fails)
    with vendor_as() as vendor:
        llm = llm_for(tmp_path, vendor.base_url, concurrency=4)
        with asking(tmp_path, llm) as ask:
            one = int(ask.estimate("emotions", [question(3)]).cost * 10**9)
            with pytest.raises(ZeroDivisionError):
                ask.ask("emotions", questions(50))
        billed = vendor.stats()["billed"]
    book = spend(tmp_path)
    assert book["calls"] == billed - 1
    assert book["at_risk"] == one


def interrupted(home, vendor, times):
    """Asks 50 questions, of which 8 are in flight when as many Ctrl-Cs come; gives what was spent."""

    def press():
        while vendor.stats()["requests"] < 8:
            time.sleep(0.02)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    pressing = threading.Thread(target=press)
    with asking(home, llm_for(home, vendor.base_url, concurrency=8)) as ask:
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            ask.ask("emotions", questions(50))
        pressing.join()
    assert vendor.stats()["requests"] == 8
    return spend(home)


def test_ctrl_c_waits_for_what_is_in_flight_and_sends_nothing_more(tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    with vendor_as(latency=2.0) as vendor:
        book = interrupted(tmp_path, vendor, times=1)
        assert book == {"calls": 8, "failed": 0, "nano": vendor.stats()["nano"], "at_risk": 0}
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_twice_leaves_what_was_in_flight_at_risk_and_nothing_open(tmp_path):
    with vendor_as(latency=8.0) as vendor:
        started = time.monotonic()
        book = interrupted(tmp_path, vendor, times=2)
        assert time.monotonic() - started < 7.5
    assert book.pop("at_risk") > 0
    assert book == {"calls": 0, "failed": 8, "nano": 0}
