"""The Batch API: nothing that a batch answered is asked again, whoever dies, expires or is refused meanwhile."""

import asyncio
import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asking_tools import vendor_as
from batch_calls import MODEL, PATIENCE, PRICE, calls, client_of, payload
from hostile_host import HostileHost
from ledger_calls import opened, run

from pipelines.errors import BudgetSpent, HostRefused, LedgerBusy, RequestError, UnknownName
from pipelines.llm.cost import worst_case
from pipelines.llm.ledger.batches import Batches
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Call, InProgress, Recorded
from pipelines.llm.money import NANO, amount
from pipelines.llm.providers import batch as batches
from pipelines.llm.providers.batch import BatchSender, Failure, line, parts, results
from pipelines.settings import ROOT
from tests.doubles.vendor import Vendor

WORKER = ROOT / "tests" / "doubles" / "batch_worker.py"
PLENTY = 10**9
NO_DELETIONS = {"delete": ["sick"] * 1000}


class Host:
    """The stub, as one test sees it."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor, self.switch = vendor, vendor.batches

    @property
    def files(self) -> list[str]:
        return self.switch()["files"]

    @property
    def batches(self) -> list[dict[str, Any]]:
        return self.switch()["batches"]

    def count(self, name: str) -> int:
        return self.vendor.stats()[name]


@pytest.fixture
def host() -> Iterator[Host]:
    with vendor_as() as vendor:
        yield Host(vendor)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as made:
        yield made
    with Ledger(tmp_path / "ledger.sqlite") as again:
        again.check()


def asked(host: Any, ledger: Ledger, some: list[Call], cap: int = PLENTY, **fields: Any) -> Any:
    async def ask() -> Any:
        async with client_of(host.vendor.base_url) as client:
            budget = opened(ledger, cap).id
            return await BatchSender(client, ledger, MODEL, budget, **{"patience": PATIENCE} | fields).ask(some)

    return run(ask())


def all_answered(found: dict[str, Any]) -> bool:
    return bool(found) and all(isinstance(one, Recorded) for one in found.values())


def is_paid_as_billed(host: Host, ledger: Ledger) -> None:
    told = ledger.budget("refresh")
    assert told.spent == host.count("nano")
    assert sum(one.cost for one in ledger.spend()) * NANO == told.spent
    assert told.held == 0


def test_a_batch_answers_all_at_half_the_price_leaves_no_file_and_a_second_time_nothing_is_asked(host, ledger):
    some = calls(range(100))
    found = asked(host, ledger, some)
    assert list(found) == [call.key for call in some]
    assert all_answered(found)
    replies = [json.loads(found[call.key].body)["choices"][0]["message"]["content"] for call in some]
    assert all(f"编造的第{number}个问题" in reply for number, reply in enumerate(replies))
    (batch,) = host.batches
    assert batch["metadata"] == {"ledger": ledger.id, "part": "1"}
    assert host.count("requests") == 100
    is_paid_as_billed(host, ledger)
    whole = sum(2500 * one.usage.prompt + 10_000 * one.usage.completion for one in found.values())
    assert ledger.budget("refresh").spent * 2 == whole

    assert asked(host, ledger, some) == found
    assert host.count("requests") == 100
    assert host.files == ledger.batches.open() == ledger.open_attempts() == []


@pytest.mark.parametrize("ends", ["expired", "failed"])
def test_what_an_early_end_has_answered_is_kept(host, ledger, ends):
    host.switch(answered=0.5, ends=ends)
    if ends == "failed":
        with pytest.raises(HostRefused, match="refused batch 1"):
            asked(host, ledger, calls(range(40)))
        assert len(ledger.recorded([call.key for call in calls(range(40))])) == 20
        host.switch(answered=1.0)
    found = asked(host, ledger, calls(range(40)))
    assert all_answered(found)
    assert host.batches[0]["status"] == ends
    assert host.count("requests") == host.count("billed") == 40, "something was run twice"
    is_paid_as_billed(host, ledger)
    assert {(one.calls, one.failed > 0) for one in ledger.spend() if one.calls} == {(40, False)}


def test_lines_that_went_wrong_each_in_a_way_of_its_own(host, ledger, caplog):
    some = calls(range(12))
    kinds = ["filtered", "wrong", "silent", "unreadable", "missing", "unread"]
    host.switch(odd={call.key: kind for call, kind in zip(some, kinds, strict=False)})
    found = asked(host, ledger, some, patience=replace(PATIENCE, tries=2))
    most = [worst_case(MODEL, payload(number), batch=True) for number in range(6)]
    filtered, wrong, silent, unreadable, *missing = [found[call.key] for call in some[:6]]
    assert b"content_filter" in filtered.body  # a verdict on this text: kept, and free
    assert (filtered.cost, filtered.usage.prompt) == (0, 0)
    assert wrong == Failure("http_400", 1)  # it would be wrong again
    assert silent.cost == most[2]  # the most that it can have been
    assert (unreadable.body, unreadable.cost) == (b'{"id": "invented"}', most[3])  # kept, and not bought again
    assert missing == [Failure("missing", 2)] * 2
    assert all(isinstance(found[call.key], Recorded) for call in some[6:])
    held = 2 * sum(most[4:])
    assert ledger.budget("refresh").held == held  # of these nobody knows whether they were billed
    assert "1 lines of a batch's results cannot be read" in caplog.text
    assert ledger.open_attempts() == []


def test_a_host_that_says_when_to_come_back_is_not_asked_before(host, ledger):
    host.switch(retry_after=0.5, next={"any": ["busy"], "create": ["sick", "busy"]})
    since = time.monotonic()
    assert all_answered(asked(host, ledger, calls(range(3))))
    assert time.monotonic() - since >= 1.0
    assert len(host.batches) == 1
    assert host.count("billed") == 3
    host.switch(retry_after=86400.0, next={"any": ["busy"]})
    with pytest.raises(HostRefused, match="answers 429"):  # tomorrow is another run's
        asked(host, ledger, calls([77]))


@pytest.mark.drill("model host")
def test_a_line_that_cost_more_than_it_could_ends_the_run_with_all_answers_kept(host, ledger, monkeypatch):
    """The profile allows fewer tokens than the host gives."""
    host.vendor.change(greedy=True)
    small = [replace(call, payload=call.payload.replace(b'"max_tokens":200', b'"max_tokens":2')) for call in calls([1])]
    honest = batches.worst_case
    monkeypatch.setattr(batches, "worst_case", lambda *some, **more: honest(*some, **more) // 10)
    with pytest.raises(HostRefused, match="tokens in and 2 out") as caught:
        asked(host, ledger, small)
    assert "max_tokens and price" in caught.value.hint
    assert ledger.recorded([small[0].key])
    is_paid_as_billed(host, ledger)


@pytest.mark.drill("model host")
def test_results_of_odd_types_are_no_error_of_ours(ledger):
    odd = [None, 3, "x", [], {"status_code": []}, {"status_code": "200"}, {"status_code": 200, "body": "\ud800"}]

    planned = ledger.batches.plan("m", "h", calls(range(len(odd))), [5] * len(odd), None)
    sender = BatchSender(client_of("http://127.0.0.1:9/v1"), ledger, MODEL, None, PATIENCE)
    for attempt, response in zip(planned.attempts, odd, strict=True):
        run(sender.settle(attempt, {"response": response, "error": response}, None))
    ledger.batches.end(planned.batch, "completed")
    assert len(list(ledger.exchanges())) == 1


@pytest.mark.parametrize("how", ["sick", "refused"])
def test_a_batch_that_cannot_be_made_owes_nothing_and_leaves_no_file(host, ledger, how):
    host.switch(next={"create": [how] * 9})
    with pytest.raises(HostRefused, match="answers"):
        asked(host, ledger, calls(range(3)), patience=replace(PATIENCE, tries=3, appears=0.05))
    assert host.files == host.batches == ledger.batches.open() == []
    is_paid_as_billed(host, ledger)


def test_a_file_that_could_not_be_looked_for_is_the_next_runs(host, ledger, caplog):
    host.switch(next={"upload": ["unheard"], "files": ["sick"] * 9})
    with pytest.raises(HostRefused, match="cannot be reached"):
        asked(host, ledger, calls(range(5)), patience=replace(PATIENCE, tries=1))
    assert len(host.files) == 1
    assert "stays with" in caplog.text
    assert len(ledger.batches.uncleared()) == 1
    host.switch(next={})
    clear(host, ledger)
    assert host.files == ledger.batches.uncleared() == []


@pytest.mark.parametrize("where", ["uploaded", "waiting"])
def test_a_batch_that_the_host_does_not_know_is_of_another_account_or_forgotten_and_may_have_been_billed(
    host, tmp_path, where
):
    path, some = tmp_path / "ledger.sqlite", calls(range(4))
    killed(host, path, 4, where)
    host.switch(forgetful=True)
    with Ledger(path) as ledger:
        with pytest.raises(HostRefused, match="knows nothing of batch 1") as caught:
            asked(host, ledger, some)
        assert "key of the account" in caught.value.hint
        assert len(ledger.batches.open()) == 1
        asked(host, ledger, calls([]), patience=replace(PATIENCE, gone=0.0, tries=1))
        assert ledger.batches.open() == []
        assert ledger.budget("refresh").held == sum(worst_case(MODEL, payload(n), batch=True) for n in range(4))
        host.switch(forgetful=False)
        assert all_answered(asked(host, ledger, some))


# Deaths


def killed(host: Host, path: Path, count: int, where: str) -> None:
    command = [sys.executable, WORKER, path, host.vendor.base_url, str(count), str(PLENTY), where]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == -signal.SIGKILL, ran.stderr


@pytest.mark.drill("kill")
@pytest.mark.parametrize("where", ["stored", "uploaded", "made", "waiting", "collecting"])
def test_a_process_that_died_is_taken_over_and_nothing_is_run_twice(host, tmp_path, where):
    path, some = tmp_path / "ledger.sqlite", calls(range(60))
    killed(host, path, 60, where)
    assert len(host.batches) == (0 if where in {"stored", "uploaded"} else 1)
    assert host.files
    with Ledger(path) as ledger:
        ledger.check()
        before = ledger.recorded([call.key for call in some])
        assert (len(before) > 0) == (where == "collecting")
        (batch,) = ledger.batches.open()
        assert (batch.vendor is None, batch.file is None) == (where not in {"waiting", "collecting"}, where == "stored")
        left = ledger.open_attempts()
        assert len(left) == 60 - len(before) > 0
        assert not any(one.lost for one in left), "what is in a batch is not lost"
        assert ledger.budget("refresh").held == sum(int(one.reserve * NANO) for one in left)

        assert all_answered(asked(host, ledger, some))
        assert len(host.batches) == 1
        assert host.count("requests") == host.count("billed") == 60
        is_paid_as_billed(host, ledger)
        assert host.files == ledger.batches.open() == []
        ledger.check()


@pytest.mark.drill("kill")
def test_a_batch_that_failed_after_its_process_died_is_asked_again(host, tmp_path, caplog):
    path = tmp_path / "ledger.sqlite"
    host.switch(answered=0.5, ends="failed")
    killed(host, path, 20, "waiting")
    with Ledger(path) as ledger:
        while host.batches[0]["status"] != "failed":
            continue
        host.switch(answered=1.0)
        found = asked(host, ledger, calls(range(20)))
        assert all_answered(found)
        assert host.count("billed") == 20
        is_paid_as_billed(host, ledger)
    assert "refused batch 1" in caplog.text


def test_a_batch_whose_host_is_no_more_is_given_up(host, tmp_path):
    path, some = tmp_path / "ledger.sqlite", calls(range(5))
    killed(host, path, 5, "waiting")
    host.switch(forgetful=True)
    with Vendor() as other, Ledger(path) as ledger:
        moved = Host(other)
        with pytest.raises(LedgerBusy, match=f"batch 1 of m at {host.vendor.base_url}") as caught:
            asked(moved, ledger, some)
        assert "gongqing ledger give-up-batch 1" in caught.value.hint
        with pytest.raises(UnknownName, match="open batch '2'"):
            ledger.batches.give_up(2)
        # A call by itself does not pay for what the batch of a dead process holds.
        with pytest.raises(LedgerBusy, match="nobody has collected") as caught:
            run(ledger.begin(some[0], reserve=1, budget=None))
        assert "--batch" in caught.value.hint
        held = ledger.budget("refresh").held
        assert ledger.batches.give_up(1) == 5
        with pytest.raises(UnknownName):
            ledger.batches.give_up(1)
        assert ledger.budget("refresh").held == held > 0
        assert [one.lost for one in ledger.open_attempts()] == [True] * 5
        assert ledger.batches.open() == []
        assert [one.id for one in ledger.batches.uncleared()] == [1]
        assert all(isinstance(one, Recorded) for one in asked(moved, ledger, some).values())
        assert ledger.budget("refresh").held == held
        ledger.check()


def test_a_batch_that_somebody_waits_for_is_not_given_up(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with Ledger(path) as first, Ledger(path) as second:
        planned = first.batches.plan("m", "h", calls([1]), [5], None)
        with pytest.raises(LedgerBusy, match="alive waits for batch 1"):
            second.batches.give_up(planned.batch.id)
        assert first.batches.give_up(planned.batch.id) == 1


@pytest.mark.parametrize(("kind", "how"), [("create", ["unheard"]), ("create", ["late"]), ("upload", ["unheard"] * 2)])
def test_what_was_made_and_nobody_heard_of_is_looked_for(host, ledger, kind, how):
    """No batch is made twice; of the files, which hold what people wrote, only that of the batch may be there."""
    host.switch(next={kind: how}, hidden=0.15)
    assert all_answered(asked(host, ledger, calls(range(10))))
    assert len(host.batches) == 1
    assert host.count("billed") == 10
    assert host.files == ledger.batches.uncleared() == []


@pytest.mark.drill("race")
def test_a_second_process_leaves_the_batch_of_a_living_one_alone_and_gets_its_answers(host, tmp_path):
    path, some = tmp_path / "ledger.sqlite", calls(range(15))
    host.switch(held=True)

    async def both() -> Any:
        with Ledger(path) as first, Ledger(path) as second:
            budget = opened(first, PLENTY).id
            async with client_of(host.vendor.base_url) as client:
                one = asyncio.create_task(BatchSender(client, first, MODEL, budget, PATIENCE).ask(some))
                while not host.batches:
                    await asyncio.sleep(0.01)
                two = asyncio.create_task(BatchSender(client, second, MODEL, budget, PATIENCE).ask(some))
                assert isinstance(await second.begin(some[0], reserve=1, budget=None), InProgress)
                await asyncio.sleep(0.2)
                host.switch(held=False)
                return await asyncio.gather(one, two)

    first, second = run(both())
    assert first == second
    assert len(host.batches) == 1


# Files with people's texts


def clear(host: Host, ledger: Ledger) -> None:
    async def clears() -> None:
        async with client_of(host.vendor.base_url) as client:
            for batch in ledger.batches.uncleared():
                await BatchSender(client, ledger, MODEL, None, PATIENCE).clear_left(batch)

    run(clears())


def test_a_file_that_cannot_be_deleted_is_a_warning_and_the_next_runs(host, ledger, caplog):
    host.switch(next=NO_DELETIONS, odd={calls([3])[0].key: "filtered"})  # one line in the file of errors
    assert all_answered(asked(host, ledger, calls(range(6))))
    (batch,) = host.batches
    left = {batch[name] for name in ("input_file_id", "output_file_id", "error_file_id")}
    assert set(host.files) == left
    for file in left:
        assert f"{file} of batch 1 stays with {host.vendor.base_url}/ (InternalServerError)" in caplog.text
    clear(host, ledger)  # and again in vain
    host.switch(next={"any": ["sick"]})
    clear(host, ledger)  # not even the batch can be looked up
    assert set(host.files) == left
    caplog.clear()
    clear(host, ledger)
    assert host.files == []
    assert caplog.text.count("stays with") == 0
    assert ledger.batches.uncleared() == []


def test_files_that_another_accounts_host_does_not_know_are_not_given_up(host, ledger, caplog):
    host.switch(next=NO_DELETIONS)
    asked(host, ledger, calls([1, 2]))
    host.switch(next={}, forgetful=True)
    clear(host, ledger)
    assert len(host.files) == 2
    host.switch(forgetful=False)
    with Vendor() as other:
        clear(Host(other), ledger)
    assert "which nobody asks now" in caplog.text
    clear(host, ledger)
    assert host.files == ledger.batches.uncleared() == []


def test_what_died_between_the_last_answer_and_the_deletion_is_deleted_by_the_next(host, tmp_path):
    path = tmp_path / "ledger.sqlite"
    killed(host, path, 20, "clearing")
    assert len(host.files) == 2
    with Ledger(path) as ledger:
        assert len(ledger.recorded([call.key for call in calls(range(20))])) == 20
        assert ledger.batches.open() == []
        clear(host, ledger)
        assert host.files == []
        assert host.count("requests") == 20
        ledger.check()


@pytest.mark.drill("upgrade")
def test_a_ledger_of_version_1_is_brought_up_and_the_files_of_its_batches_are_deleted(host, tmp_path):
    path = tmp_path / "ledger.sqlite"
    host.switch(next=NO_DELETIONS)
    with Ledger(path) as ledger:
        found = asked(host, ledger, calls(range(5)))
    with contextlib.closing(sqlite3.connect(path)) as db:  # as version 1 would have left it
        for column in ("output", "errors", "cleared"):
            db.execute(f"ALTER TABLE batch DROP COLUMN {column}")
        db.execute("ALTER TABLE attempt DROP COLUMN repair")
        db.execute("PRAGMA user_version = 1")
    host.switch(next={})
    with Ledger(path) as ledger:
        ledger.check()
        assert asked(host, ledger, calls(range(5))) == found
        clear(host, ledger)
        assert host.files == []
        assert [one.repairs for one in ledger.spend()] == [0], "nobody noted them"
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        assert db.execute("SELECT count(*) FROM batch WHERE cleared IS NULL").fetchone() == (0,)


@pytest.mark.parametrize("fits", [10, 2])
def test_a_budget_is_spent_in_rounds_and_never_passed_and_what_does_not_fit_is_said(host, ledger, fits):
    some, cap = calls(range(30)), fits * worst_case(MODEL, payload(0), batch=True)
    if fits == 2:
        with pytest.raises(BudgetSpent) as caught:
            asked(host, ledger, some, cap=cap)
        assert caught.value.spent == amount(ledger.budget("refresh").spent) > 0
    else:
        assert all_answered(asked(host, ledger, some, cap=cap))
    assert len(host.batches) > 1  # so many at most are set aside for at a time
    kept = ledger.recorded([call.key for call in some])
    assert fits <= len(kept) == host.count("billed")
    assert (len(kept) == 30) == (fits == 10)
    assert ledger.budget("refresh").spent <= cap
    is_paid_as_billed(host, ledger)


def test_a_price_without_a_share_is_refused_before_anything_leaves(host, ledger):
    dear = MODEL.model_copy(update={"price": PRICE.model_copy(update={"batch": None})})
    with pytest.raises(RequestError, match="costs in a batch"):
        run(BatchSender(client_of(host.vendor.base_url), ledger, dear).ask(calls([1])))
    assert host.count("requests") == 0


def test_a_batch_that_the_host_refuses_is_named_by_codes_and_owes_nothing(host, ledger):
    other = json.dumps(payload(2) | {"model": "another"}).encode()
    mixed = [*calls([1]), Call("k" * 64, "coe", "m", "another", other)]
    with pytest.raises(HostRefused, match="mismatched_model") as caught:
        asked(host, ledger, mixed)
    assert "lines [2]" in str(caught.value)
    assert ledger.open_attempts() == []
    is_paid_as_billed(host, ledger)
    assert len(asked(host, ledger, calls([1]))) == 1


def test_a_host_that_has_no_batches_and_says_so_with_a_page(ledger):
    pages = HostileHost(lambda handler, _: handler.give(b"<html>", Content_Type="text/html"))
    with pages, pytest.raises(HostRefused, match="sends what has no id"):
        asked(SimpleNamespace(vendor=pages), ledger, calls([1]))
    assert ledger.open_attempts() == ledger.batches.open() == []


def test_files_are_cut_by_number_and_by_size(monkeypatch):
    some = calls(range(20))
    assert [len(part) for part in parts(some)] == [20]
    monkeypatch.setattr(batches, "MOST_REQUESTS", 8)
    assert [len(part) for part in parts(some)] == [8, 8, 4]
    size = len(line(some[0].key, some[0].payload))
    monkeypatch.setattr(batches, "MOST_BYTES", 3 * size + 10)
    cut = parts(some)
    assert all(sum(len(line(call.key, call.payload)) for call in part) <= 3 * size + 10 for part in cut)
    assert [call for part in cut for call in part] == some
    monkeypatch.setattr(batches, "MOST_BYTES", size - 10)
    with pytest.raises(RequestError, match="too large"):
        parts(some)


def test_lines_of_results_that_cannot_be_read_are_counted_and_no_error(caplog):
    unread = (b"{not json", b"[]", b'"custom_id"', b'{"custom_id": []}', b"[" * 100_000)
    assert results([b'{"custom_id": "a", "response": "x\\u2028y"}', *unread]).keys() == {"a"}
    assert "5 lines of a batch's results cannot be read" in caplog.text


def test_the_ledger_is_not_asked_line_by_line_for_what_a_batch_has_sent(host, ledger, monkeypatch):
    """Between two answers it would wait for the disk, and no group of answers would share a flush."""
    read, groups = Batches.payloads, []
    monkeypatch.setattr(Batches, "payloads", lambda *args: groups.append(read(*args)) or groups[-1])
    asked(host, ledger, calls(range(40)))
    assert [len(group) for group in groups] == [40]
