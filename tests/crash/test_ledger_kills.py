"""Processes that share a ledger, and processes that are killed with SIGKILL while they use it."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from ledger_calls import call, key_of, opened, run
from ledger_worker import RESERVE, work

from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt
from pipelines.llm.money import amount
from pipelines.settings import ROOT

WORKER = ROOT / "tests" / "doubles" / "ledger_worker.py"


class Home:
    """A ledger, and the log of what was sent and kept."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.sqlite"
        self.log = folder / "log"

    def command(self, *given: object) -> list[str]:
        return [sys.executable, str(WORKER), str(self.path), str(self.log), *map(str, given)]

    def run(self, *given: object) -> str:
        ran = subprocess.run(self.command(*given), capture_output=True, text=True, timeout=300)
        assert ran.returncode in (0, -9), ran.stderr
        return ran.stdout

    def run_here(self, numbers: range, *, at_once: int, budget: int) -> None:
        """As a worker does that nobody kills, without the start of another process."""
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with Ledger(self.path) as ledger:
            run(work(ledger, log, numbers, at_once, 0.002, opened(ledger, budget).id))
        os.close(log)

    @contextmanager
    def started(self, *given: object) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(self.command(*given), stderr=subprocess.PIPE, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def lines(self, kind: str) -> list[str]:
        told = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.split()[1] for line in told if line.startswith(kind)]

    def wait_for(self, lines: int) -> None:
        until = time.monotonic() + 60
        while len(self.lines("sent")) < lines:
            assert time.monotonic() < until, "nothing was sent"
            time.sleep(0.001)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def is_sound(home: Home, in_flight: int, numbers: int) -> Counter[str]:
    """What holds after any number of deaths with so many calls in flight each. Gives the lost attempts by key."""
    sent, kept = Counter(home.lines("sent")), set(home.lines("kept"))
    with Ledger(home.path) as ledger:
        ledger.check()
        assert kept <= ledger.recorded(sorted(kept)).keys(), "an answer is lost"
        answered = ledger.recorded([key_of(number) for number in range(numbers)]).keys()
        open_ = ledger.open_attempts()
        assert all(one.lost for one in open_), "a dead process passes for a living one"
        lost = Counter(one.key for one in open_)
        for key, times in sent.items():
            assert times <= lost[key] + (key in answered), "a call left that the ledger does not know of"
        assert len(open_) <= in_flight
        if (budget := ledger.budget("refresh")) is not None:
            assert budget.spent == RESERVE * len(answered)
            assert budget.held == RESERVE * len(open_)
    return lost


# Several processes


@pytest.mark.drill("race")
def test_what_several_processes_ask_is_sent_once(home):
    with home.started(0, 300) as first, home.started(0, 300) as second, home.started(100, 400) as third:
        for process in (first, second, third):
            process.wait(timeout=120)
            assert process.returncode == 0, process.stderr.read()
    assert Counter(home.lines("sent")) == dict.fromkeys(map(key_of, range(400)), 1)
    assert is_sound(home, 0, 400) == Counter()
    assert len({line.split()[2] for line in home.log.read_text().splitlines()}) > 1, "one of them did it all"


@pytest.mark.drill("race")
@pytest.mark.parametrize("cap", [0, RESERVE - 1, RESERVE, 100 * RESERVE + 7])
def test_several_processes_spend_to_the_cap_and_no_nano_beyond(home, cap):
    with Ledger(home.path) as ledger:
        opened(ledger, cap)
    asked = [home.started(first, first + 200, "--budget", cap, "--at-once", 64) for first in (0, 200, 400)]
    with asked[0] as one, asked[1] as two, asked[2] as three:
        for process in (one, two, three):
            process.wait(timeout=120)
            assert process.returncode == 0, process.stderr.read()
    assert len(home.lines("sent")) == cap // RESERVE
    with Ledger(home.path) as ledger:
        ledger.check()
        told = ledger.budget("refresh")
        assert (told.spent, told.held) == (cap // RESERVE * RESERVE, 0)


@pytest.mark.drill("kill")
def test_whoever_waits_for_a_call_takes_it_over_when_the_other_dies(home):
    with home.started(0, 1, "--seconds", 60) as slow:
        home.wait_for(1)
        with home.started(0, 1) as second:
            time.sleep(0.3)
            assert second.poll() is None
            assert home.lines("sent") == [key_of(0)]
            slow.kill()
            assert second.wait(timeout=30) == 0
    assert home.lines("sent") == [key_of(0)] * 2
    assert is_sound(home, 1, 1) == Counter({key_of(0): 1})


def test_another_process_sees_what_is_under_way_and_that_it_lives(home):
    with home.started(0, 3, "--seconds", 60) as slow:
        home.wait_for(3)
        with Ledger(home.path) as ledger:
            assert [one.lost for one in ledger.open_attempts()] == [False] * 3
            slow.kill()
            slow.wait()
            assert [one.lost for one in ledger.open_attempts()] == [True] * 3
            assert isinstance(run(ledger.begin(call(1), reserve=1, budget=None)), Attempt)


# Kills


@pytest.mark.drill("kill")
def test_a_death_loses_exactly_what_was_in_flight(home):
    """All that was sent and not kept is listed, and nothing else, when nobody can be between two steps."""
    with home.started(0, 5, "--seconds", 60, "--at-once", 5, "--budget", 1000) as process:
        home.wait_for(5)
        process.kill()
        process.wait()
    assert is_sound(home, 5, 5) == Counter(map(key_of, range(5)))
    home.run(0, 5, "--budget", 1000)
    assert Counter(home.lines("sent")) == dict.fromkeys(map(key_of, range(5)), 2)
    assert is_sound(home, 5, 5) == Counter(map(key_of, range(5)))
    home.run(0, 5, "--budget", 1000)
    assert len(home.lines("sent")) == 10, "a finished stage was asked again"


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_killed_at_any_time(home):
    """Sixteen deaths of a process with 32 calls in flight, each at a random moment; then it ends in peace."""
    random = Random(5)
    in_flight, kills, numbers = 32, 0, 1600
    for _ in range(16):
        before = len(home.lines("sent"))
        with home.started(0, numbers, "--at-once", in_flight, "--budget", 10**6, "--seconds", 0.05) as process:
            until = time.monotonic() + 30
            while len(home.lines("sent")) == before and process.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(random.random() * 0.15)
            kills += process.poll() is None
            process.kill()
            process.wait()
        is_sound(home, in_flight * kills, numbers)
    assert kills == 16
    home.run(0, numbers, "--at-once", in_flight, "--budget", 10**6)
    is_sound(home, in_flight * kills, numbers)
    sent = home.lines("sent")
    assert set(sent) == set(map(key_of, range(numbers)))
    assert len(sent) <= numbers + kills * in_flight


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_killed_at_steps_all_over_the_code_that_writes(tmp_path):
    counting = Home(tmp_path)
    steps = int(counting.run(0, 6, "--at-once", 3, "--budget", 1000, "--steps"))
    assert steps > 500
    deaths = 0
    for place in range(30):
        (folder := tmp_path / str(place)).mkdir()
        home = Home(folder)
        with Ledger(home.path) as ledger:
            opened(ledger, 1000)
        home.run(0, 6, "--at-once", 3, "--budget", 1000, "--kill-at", place * steps // 30)
        deaths += len(home.lines("kept")) < 6
        is_sound(home, 3, 6)
        home.run_here(range(6), at_once=3, budget=1000)
        is_sound(home, 3, 6)
        assert set(home.lines("kept")) | set(home.lines("sent")) == set(map(key_of, range(6)))
        with Ledger(home.path) as ledger:
            assert len(ledger.recorded([key_of(number) for number in range(6)]).keys()) == 6
            assert sum(one.cost for one in ledger.spend()) == amount(6 * RESERVE)
        assert list((folder / "ledger.sqlite-sessions").iterdir()) == []
    assert deaths > 20
