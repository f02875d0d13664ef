"""kill −9: what was answered is never asked again, what was lost is counted, and a finished stage costs nothing."""

import os
import signal
import time
from collections import Counter
from itertools import pairwise

import pytest
from asking_tools import asking, digests, keys, ledger_of, llm_for, questions, vendor_as, worker

N = 900
CONCURRENCY = 64


def killed_after(process, vendor, requests):
    while vendor.stats()["requests"] < requests:
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_two_kills_in_900_calls_lose_what_was_in_flight_and_no_more(tmp_path):
    with vendor_as(latency=0.02) as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        lost_until = [0]
        for after in (N // 3, 2 * N // 3):
            killed_after(worker(tmp_path, llm, N), vendor, after)
            with ledger_of(tmp_path) as ledger:
                lost_until.append(len(ledger.open_attempts()))
        last = worker(tmp_path, llm, N)
        assert last.communicate(timeout=300)[0] == f"answered {N}\n"
        time.sleep(0.1)
        stats, book = vendor.stats(), vendor.book()

        assert stats["most_in_flight"] <= 2 * CONCURRENCY  # of the dead and of the living
        assert N <= stats["requests"] <= N + 2 * CONCURRENCY
        with ledger_of(tmp_path) as ledger:
            ledger.check()
            lost = ledger.open_attempts()
            spent = sum(row.cost for row in ledger.spend()) * 10**9
            billed_to_us = sum(row.calls for row in ledger.spend())
        assert all(one.lost for one in lost)
        assert len(lost) == lost_until[-1]
        assert all(0 < after - before <= CONCURRENCY for before, after in pairwise(lost_until)), "of each process"
        assert billed_to_us == N

        # Exactly the lost ones: every request beyond one a question was under way when a process died.
        name_of = dict(zip(keys(llm, questions(N)), digests(llm, questions(N)), strict=True))
        lost_by_name = Counter(name_of[one.key] for one in lost)
        assert book.keys() == set(name_of.values())
        assert [name for name, (asked, _, _) in book.items() if asked - 1 > lost_by_name[name]] == []
        # How many of the lost had reached the host when their process died is chance (on a busy machine few had);
        # had none, these kills would have shown nothing.
        assert 0 < stats["requests"] - N <= len(lost)
        # What was billed for the dead and never heard of is all that the ledger has not spent.
        assert spent == sum(nano // billed for _, billed, nano in book.values())

        # A finished stage.
        with asking(tmp_path, llm, None) as ask:
            assert ask.estimate("emotions", questions(N)).calls == 0
            assert all(reply.value for reply in ask.ask("emotions", questions(N)))
        assert vendor.stats()["requests"] == stats["requests"]


@pytest.mark.drill("race")
@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True])
def test_two_processes_with_the_same_questions_send_each_once(tmp_path, dies):
    """The second waits for what the first has under way; where the first dies, it takes over what was lost."""
    n = 256
    with vendor_as(latency=0.1) as vendor:
        llm = llm_for(tmp_path, vendor.base_url)
        workers = [worker(tmp_path, llm, n) for _ in range(2)]
        if dies:
            killed_after(workers.pop(), vendor, n // 2)
        said = [one.communicate(timeout=120)[0] for one in workers]
        requests = vendor.stats()["requests"]
    assert said == [f"answered {n}\n"] * len(workers)
    with ledger_of(tmp_path) as ledger:
        lost = len(ledger.open_attempts())
        assert sum(row.calls for row in ledger.spend()) == n
    assert lost <= CONCURRENCY * dies
    assert n <= requests <= n + lost
