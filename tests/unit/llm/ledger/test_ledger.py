"""The ledger: nothing is paid for twice, no cap is passed, nothing that was answered is lost."""

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_calls import COST, answer, ask, begin_when_free, bytes_beside, call, key_of, opened, run

from pipelines.errors import BudgetSpent, DamagedLedger, LedgerBusy, LedgerError, LedgerFull, RequestError
from pipelines.llm.ledger import file as ledger_file
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt, InProgress, Recorded
from pipelines.llm.money import NANO, Usage, amount


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger(path) as made:
        yield made
    with Ledger(path) as again:
        again.check()


def test_what_was_answered_is_not_asked_again(ledger, path):
    first = run(ask(ledger, 1))
    assert isinstance(first, Recorded)
    assert run(ask(ledger, 1)) == first
    ledger.close()
    with Ledger(path) as again:
        found = again.recorded([key_of(1), key_of(2)])
        assert found == {key_of(1): first}
        told = found[key_of(1)]
        assert (told.body, told.served, told.finish_reason) == (answer(1).body, "R1-0528", "stop")
        assert (told.usage, told.cost, told.alias) == (Usage(100, 10, 20), COST, "r1")


def test_the_calls_of_some_requests_are_told_with_what_each_cost(ledger):
    run(ask(ledger, 1))
    run(ask(ledger, 2))
    run(begin_and_fail(ledger, 3))
    [told] = ledger.calls([key_of(1), "of nobody"])
    assert (told.key, told.status, told.cost) == (key_of(1), "answered", amount(COST))
    assert (told.model_served, told.tokens_in, told.tokens_out, told.currency) == ("R1-0528", 100, 20, "USD")
    [failed] = ledger.calls([key_of(3)])
    assert (failed.status, failed.cost, failed.at_risk > 0) == ("timeout", 0, True)
    ledger.forget([key_of(1)])
    assert ledger.calls([key_of(1)]) == []


async def begin_and_fail(ledger: Ledger, number: int) -> None:
    attempt = await ledger.begin(call(number), reserve=COST, budget=None)
    assert isinstance(attempt, Attempt)
    await ledger.failed(attempt, "timeout", billed=None)


async def ask_all(ledger: Ledger, count: int) -> None:
    await asyncio.gather(*(ask(ledger, number) for number in range(count)))


def test_many_are_read_in_chunks(ledger):
    run(ask_all(ledger, 2500))
    keys = [key_of(number) for number in range(-10, 2500)]
    recorded = ledger.recorded(keys)
    assert set(recorded) == set(keys[10:])
    assert ledger.replies(keys) == {key: one.body for key, one in recorded.items()}
    assert sorted(one.answer.key for one in ledger.exchanges()) == sorted(keys[10:])


# Attempts


def test_an_attempt_is_on_the_disk_before_it_may_leave(ledger, path):
    got = run(ledger.begin(call(1), reserve=1000, budget=None))
    copied = path.with_name("copy.sqlite")  # what a power cut would leave
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copied}{suffix}")
    with Ledger(copied) as other:
        (there,) = other.open_attempts()
        assert (there.id, there.key, there.stage, there.alias) == (got.id, key_of(1), "coe", "r1")


def test_the_same_request_is_under_way_once(ledger):
    async def twice():
        first, second = await asyncio.gather(*(ledger.begin(call(1), reserve=1, budget=None) for _ in range(2)))
        assert isinstance(first, Attempt)
        assert isinstance(second, InProgress)
        waiting = asyncio.create_task(begin_when_free(ledger, 1))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await ledger.answered(first, answer(1))
        assert isinstance(await waiting, Recorded)

    run(twice())


def test_an_attempt_ends_once_and_one_that_cannot_be_written_takes_no_other_with_it(ledger):
    async def together():
        begun = [await ledger.begin(call(number), reserve=1, budget=None) for number in range(5)]
        await ledger.failed(begun[2], "http_500", billed=False)
        return await asyncio.gather(
            *(ledger.answered(one, answer(number)) for number, one in enumerate(begun)), return_exceptions=True
        )

    results = run(together())
    assert [type(one) for one in results] == [type(None), type(None), LedgerError, type(None), type(None)]
    assert "ended before" in str(results[2])
    assert len(ledger.recorded([key_of(number) for number in range(5)]).keys()) == 4
    assert sum(one.cost for one in ledger.spend()) == 4 * amount(COST)


def test_a_begin_that_is_cancelled_leaves_nothing_under_way(ledger):
    async def cancelled():
        for after in (0.0, 0.0005, 0.001, 0.002, 0.005):
            task = asyncio.create_task(ledger.begin(call(1), reserve=1, budget=None))
            await asyncio.sleep(after)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            got = task.result() if not task.cancelled() else None
            if isinstance(got, Attempt):
                await ledger.failed(got, "http_500", billed=False)
        return await asyncio.wait_for(begin_when_free(ledger, 1), 10)

    begun = run(cancelled())
    assert isinstance(begun, Attempt)
    assert [one.id for one in ledger.open_attempts()] == [begun.id]


def test_an_answer_is_kept_though_its_caller_was_cancelled(ledger):
    async def cancelled():
        begun = await ledger.begin(call(1), reserve=1, budget=None)
        task = asyncio.create_task(ledger.answered(begun, answer(1)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(cancelled())
    ledger.close()
    with Ledger(ledger.path) as again:
        assert (again.recorded([key_of(1)]).keys(), again.open_attempts()) == ({key_of(1)}, [])


def test_what_is_under_way_at_the_end_is_lost_and_stays_set_aside(ledger, path):
    budget = opened(ledger, 10_000)
    begun = run(ledger.begin(call(1), reserve=1000, budget=budget.id))
    assert [one.lost for one in ledger.open_attempts()] == [False]
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        run(ledger.answered(begun, answer(1)))
    with pytest.raises(LedgerError, match="closed"):
        ledger.spend()
    with Ledger(path) as again:
        (lost,) = again.open_attempts()
        assert (lost.id, lost.lost, lost.reserve) == (begun.id, True, amount(1000))
        assert again.budget("refresh").held == 1000
        assert isinstance(run(ask(again, 1)), Recorded)
        assert [one.id for one in again.open_attempts()] == [begun.id]
        again.check()


# Budgets


def test_a_budget_that_was_broken_off_goes_on_and_a_closed_one_does_not(ledger, path):
    first = opened(ledger, 1000)
    run(ask(ledger, 1, budget=first.id))
    ledger.close()
    with Ledger(path) as again:
        on = opened(again, 1500)
        assert (on.id, on.spent, on.cap) == (first.id, 700, 1500)
        with pytest.raises(RequestError, match="USD"):
            again.open_budget(Decimal(1), "CNY", "refresh")
        assert again.open_budget(Decimal(1), "CNY", "evaluate").id != on.id
        again.close_budget("refresh")
        assert again.budget("refresh") is None
        with pytest.raises(RequestError, match="no open budget"):
            run(ask(again, 2, budget=on.id))
        fresh = opened(again, 1000)
        assert (fresh.spent, fresh.held) == (0, 0)
        assert fresh.id != on.id


def test_currencies_are_never_mixed(ledger):
    budget = opened(ledger, 1000)
    with pytest.raises(RequestError, match="CNY"):
        run(ask(ledger, 1, currency="CNY", budget=budget.id))
    run(ask(ledger, 1, currency="CNY"))
    run(ask(ledger, 2))
    assert [(one.currency, one.calls) for one in ledger.spend()] == [("CNY", 1), ("USD", 1)]


OPERATION = st.tuples(
    st.sampled_from(["begin", "answer", "free", "risk", "cap", "reopen"]), st.integers(0, 5), st.integers(0, 400)
)


@given(st.lists(OPERATION, max_size=25))
@settings(max_examples=40)
def test_the_sums_are_those_of_a_plain_account(tmp_path_factory, operations):
    """Against an account of three numbers and two dictionaries."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    cap, spent, held = 1000, 0, 0
    under_way: dict[int, Attempt] = {}
    answered: set[int] = set()
    ledger = Ledger(path)
    budget = opened(ledger, cap)
    try:
        for what, number, size in operations:
            if what == "cap":
                cap = 5 * size
                assert opened(ledger, cap).cap == cap
            elif what == "reopen":
                ledger.close()
                ledger = Ledger(path)
                under_way.clear()  # lost, and held for ever
            elif what == "begin":
                try:
                    begun = run(ledger.begin(call(number), reserve=size, budget=budget.id))
                except BudgetSpent:
                    assert number not in answered | under_way.keys()
                    assert spent + held + size > cap
                    continue
                expected = Recorded if number in answered else InProgress if number in under_way else Attempt
                assert type(begun) is expected
                if isinstance(begun, Attempt):
                    held += size
                    assert spent + held <= cap
                    under_way[number] = begun
            elif (attempt := under_way.pop(number, None)) is not None:
                held -= attempt.reserve
                if what == "answer":
                    cost = min(size, attempt.reserve)
                    spent += cost
                    answered.add(number)
                    run(ledger.answered(attempt, answer(number, cost)))
                else:
                    run(ledger.failed(attempt, what, billed=None if what == "risk" else False))
                    held += attempt.reserve if what == "risk" else 0
            told = ledger.budget("refresh")
            assert (told.spent, told.held, told.cap) == (spent, held, cap)
        ledger.check()
        lines = ledger.spend()
        assert sum(one.cost for one in lines) * NANO == spent
        assert sum(one.at_risk for one in lines) * NANO == held
    finally:
        ledger.close()


def test_spend_is_told_by_stage_model_and_day(ledger):
    served = [("coe", "r1", "R1-0528"), ("coe", "r1", "R1-0528"), ("coe", "r1", "R1-1120"), ("cer", "gpt", "G")]

    async def some():
        for number, (stage, alias, model) in enumerate(served):
            await ask(ledger, number, answer(number, served=model), stage=stage, alias=alias)
        lost = await ledger.begin(call(9), reserve=50, budget=None)
        await ledger.failed(lost, "timeout", billed=None)
        await ledger.begin(call(10), reserve=70, budget=None)

    run(some())
    told = {(one.stage, one.alias, one.model_served): one for one in ledger.spend()}
    assert set(told) == {*served, ("coe", "r1", None)}
    two = told["coe", "r1", "R1-0528"]
    assert (two.calls, two.tokens_in, two.tokens_cached, two.tokens_out, two.cost) == (2, 200, 20, 40, amount(2 * COST))
    assert (two.day, two.model_asked) == (time.strftime("%Y-%m-%d", time.gmtime()), "R1")
    none = told["coe", "r1", None]
    assert (none.calls, none.failed, none.unsettled, none.at_risk) == (0, 1, 1, amount(120))


def test_forgetting_leaves_the_cost_and_not_a_byte_of_the_texts(ledger, path):
    secret = bytes(Random(1).randbytes(400)).hex().encode()  # nothing that compresses into something else

    async def asked():
        for number in range(30):
            if number == 7:
                await ask(ledger, 7, answer(7, body="编造的一句话".encode() * 50), payload=secret)
            else:
                await ask(ledger, number)

    run(asked())
    before = ledger.spend()
    (row,) = sqlite3.connect(path).execute("SELECT payload FROM request WHERE key = ?", (key_of(7),)).fetchall()
    packed = row[0][20:80]
    assert packed in bytes_beside(path)
    assert ledger.forget([key_of(7), key_of(99), key_of(7)]) == 1
    assert packed not in bytes_beside(path)
    assert ledger.recorded([key_of(number) for number in range(30)]).keys() == {key_of(n) for n in range(30) if n != 7}
    assert ledger.spend() == before
    assert isinstance(run(ask(ledger, 7)), Recorded)  # it may be asked again, and is paid again
    assert sum(one.calls for one in ledger.spend()) == 31


def test_forgetting_says_when_bytes_may_be_left(ledger, path):
    run(ask(ledger, 1))
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM attempt").fetchone()
    run(ask(ledger, 2))
    ledger._file.writes.execute("PRAGMA busy_timeout = 50")
    with pytest.raises(LedgerBusy, match="in the log"):
        ledger.forget([key_of(1)])
    reader.close()
    assert ledger.forget([key_of(1)]) == 0


# Files


def test_what_people_wrote_is_for_the_owner_alone(path):
    with Ledger(path) as ledger:
        run(ask(ledger, 1))
        files = [file for file in path.parent.rglob("*") if file.is_file()]
        assert len(files) >= 4  # the database, its log, its shared memory, the lock, the session
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert list((path.parent / "ledger.sqlite-sessions").iterdir()) == []
    path.chmod(0o644)
    Ledger(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_ledger_is_as_durable_as_sqlite_can(ledger):
    asked = [ledger._file.writes.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert asked == ["wal", 2]


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, however long it is" * 100)


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def _another(path: Path) -> None:
    changed(path, "CREATE TABLE things (id INTEGER)")


def _newer(path: Path) -> None:
    Ledger(path).close()
    changed(path, "PRAGMA user_version = 99")


def _overwritten(path: Path) -> None:
    with Ledger(path) as ledger:
        run(ask_all(ledger, 200))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 8192))


@pytest.mark.drill("damage")
@pytest.mark.parametrize(
    ("damage", "told"),
    [(_garbage, "not a database"), (_another, "something else"), (_newer, "newer gongqing"), (_overwritten, "")],
)
def test_a_file_that_is_no_ledger_or_a_damaged_one_is_refused(path, damage, told):
    path.parent.mkdir()
    damage(path)
    before = path.read_bytes()
    with pytest.raises(DamagedLedger) as caught, Ledger(path) as ledger:
        ledger.check()
    assert told in str(caught.value)
    assert (caught.value.where, caught.value.exit_code, bool(caught.value.hint)) == (path, 1, True)
    assert path.read_bytes() == before


def test_a_flipped_bit_in_a_body_is_noticed(path):
    with Ledger(path) as ledger:
        run(ask(ledger, 1, answer(1, body=Random(2).randbytes(3000))))
    body = sqlite3.connect(path).execute("SELECT body FROM answer").fetchone()[0]
    content = path.read_bytes()
    at = content.index(body[1000:1100])
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with Ledger(path) as ledger:
        with pytest.raises(DamagedLedger, match="body of a call"):
            ledger.recorded([key_of(1)])
        with pytest.raises(DamagedLedger, match="body of a call"):  # it is read there as well
            run(ledger.begin(call(1), reserve=1, budget=None))


def test_sums_that_are_not_those_of_the_calls_are_noticed(path):
    with Ledger(path) as ledger:
        run(ask(ledger, 1, budget=opened(ledger, 5000).id))
        ledger.check()
    changed(path, "UPDATE budget SET spent = spent - 1")
    with Ledger(path) as ledger, pytest.raises(DamagedLedger, match="sums of budget"):
        ledger.check()


def test_a_process_that_was_stopped_while_it_writes_is_named_in_the_end(path, monkeypatch):
    code = (
        "import sys, time; from pathlib import Path; from pipelines.llm.ledger.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "with ledger._file.transaction():\n    print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert other.stdout.readline() == b"in\n"
        monkeypatch.setattr(ledger_file, "PATIENCE", 0.3)
        with pytest.raises(LedgerBusy, match="another process"):
            Ledger(path)
    finally:
        other.kill()
        other.communicate()
    Ledger(path).close()


@pytest.mark.drill("disk")
@pytest.mark.parametrize("small_disk", ["1m"], indirect=True)
def test_a_full_disk_records_nothing_by_half(small_disk):
    path = small_disk / "ledger.sqlite"
    random = Random(3)
    kept: set[str] = set()
    full: list[LedgerFull] = []

    async def until_full(ledger: Ledger, budget: int) -> None:
        async def one(number: int) -> None:
            big = answer(number, 4, body=random.randbytes(4000))
            kept.add((await ask(ledger, number, big, budget=budget, payload=random.randbytes(2000))).key)

        for start in range(0, 1000, 8):
            done = await asyncio.gather(*map(one, range(start, start + 8)), return_exceptions=True)
            full.extend(error for error in done if isinstance(error, LedgerFull))
            assert not [error for error in done if isinstance(error, Exception) and not isinstance(error, LedgerFull)]
            if full:
                return

    ledger = Ledger(path)
    run(until_full(ledger, opened(ledger, 10**9).id))
    for part in (str(path), "free some space"):
        assert part in str(full[0])
    assert len(kept) > 20
    assert ledger.recorded(sorted(kept)).keys() == kept
    ledger.check()
    told = ledger.budget("refresh")
    assert told.spent == 4 * sum(one.calls for one in ledger.spend())
    assert told.held == 1000 * len(ledger.open_attempts())

    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert isinstance(run(ask(ledger, 5000, budget=opened(ledger, 10**9).id)), Recorded)
    ledger.close()


@pytest.mark.drill("disk")
@pytest.mark.parametrize("small_disk", ["1m"], indirect=True)
def test_no_room_to_make_one(small_disk):
    (small_disk / "ballast").write_bytes(b"\0" * (1 << 20))
    with pytest.raises(LedgerError) as caught:
        Ledger(small_disk / "ledger.sqlite")
    assert "room" in str(caught.value) or os.strerror(errno.ENOSPC) in str(caught.value)
    (small_disk / "ballast").unlink()
    with Ledger(small_disk / "ledger.sqlite") as ledger:
        assert isinstance(run(ask(ledger, 1)), Recorded)
        ledger.check()


def test_two_sessions_spend_to_the_cap_and_no_nano_beyond(path):
    async def begun(sessions, budget):
        calls = (sessions[n % 2].begin(call(n), reserve=10, budget=budget) for n in range(300))
        return await asyncio.gather(*calls, return_exceptions=True)

    with Ledger(path) as one, Ledger(path) as two:
        results = run(begun((one, two), opened(one, 1007).id))
        assert Counter(map(type, results)) == {Attempt: 100, BudgetSpent: 200}
        assert one.budget("refresh").held == 1000
        one.check()
