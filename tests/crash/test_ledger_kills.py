"""Processes that share a ledger, and processes that are killed with SIGKILL while they use it."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger_calls import call, key_of, opened, run
from ledger_worker import RESERVE, is_sound, lines

from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Attempt
from pipelines.settings import ROOT

WORKER = ROOT / "tests" / "doubles" / "ledger_worker.py"


class Home:
    """A ledger, and the log of what was sent and kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.log = folder, folder / "ledger.sqlite", folder / "log"

    @contextmanager
    def started(self, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, str(WORKER), str(self.path), str(self.log), *map(str, arguments)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def run(self, *arguments: object) -> None:
        with self.started(*arguments) as process:
            ends_well(process)

    def sent(self) -> list[str]:
        return lines(self.log, "sent")

    def wait_for(self, sent: int) -> None:
        until = time.monotonic() + 60
        while len(self.sent()) < sent:
            assert time.monotonic() < until, "nothing was sent"
            time.sleep(0.001)

    def lost(self, in_flight: int, numbers: int) -> Counter[str]:
        return is_sound(self.folder, in_flight, numbers)


def ends_well(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        assert process.wait(timeout=120) == 0, process.stderr.read()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# Several processes


@pytest.mark.drill("race")
def test_what_several_processes_ask_is_sent_once(home):
    with home.started(0, 300) as first, home.started(0, 300) as second, home.started(100, 400) as third:
        ends_well(first, second, third)
    assert Counter(home.sent()) == dict.fromkeys(map(key_of, range(400)), 1)
    assert home.lost(0, 400) == Counter()
    assert len({line.split()[2] for line in home.log.read_text().splitlines()}) > 1, "one of them did it all"


@pytest.mark.drill("race")
@pytest.mark.parametrize("cap", [RESERVE - 1, 100 * RESERVE + 7])
def test_several_processes_spend_to_the_cap_and_no_nano_beyond(home, cap):
    with Ledger(home.path) as ledger:
        opened(ledger, cap)
    workers = [home.started(first, first + 200, "--budget", cap, "--at-once", 64) for first in (0, 200, 400)]
    with workers[0] as one, workers[1] as two, workers[2] as three:
        ends_well(one, two, three)
    assert len(home.sent()) == cap // RESERVE
    with Ledger(home.path) as ledger:
        ledger.check()
        budget = ledger.budget("refresh")
        assert (budget.spent, budget.held) == (cap // RESERVE * RESERVE, 0)


@pytest.mark.drill("kill")
def test_a_process_that_waits_for_a_call_takes_it_over_when_the_other_dies(home):
    with home.started(0, 1, "--seconds", 60) as slow:
        home.wait_for(1)
        with home.started(0, 1) as second:
            time.sleep(0.3)
            assert second.poll() is None
            assert home.sent() == [key_of(0)]
            slow.kill()
            assert second.wait(timeout=30) == 0
    assert home.sent() == [key_of(0)] * 2
    assert home.lost(1, 1) == Counter({key_of(0): 1})


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
    assert home.lost(5, 5) == Counter(map(key_of, range(5)))
    home.run(0, 5, "--budget", 1000)
    assert Counter(home.sent()) == dict.fromkeys(map(key_of, range(5)), 2)
    assert home.lost(5, 5) == Counter(map(key_of, range(5)))
    home.run(0, 5, "--budget", 1000)
    assert len(home.sent()) == 10, "a finished stage was asked again"
