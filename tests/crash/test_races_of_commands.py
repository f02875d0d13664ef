"""Two refreshes, an import and an erasure on one home at once: one at a time, and the order makes no difference."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_model import FakePool
from killing import (
    IMPORT_POSTS,
    Command,
    broken,
    current,
    done,
    home_with,
    leftovers,
    open_runs,
    prints,
    started,
    wait_until,
)

from pipelines.flow.refresh import refresh
from pipelines.settings import Settings
from pipelines.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.drill("race"),
    pytest.mark.xdist_group("races"),
    pytest.mark.timeout(1200),
]


@dataclass(frozen=True)
class Race:
    """A home after a race and one refresh more; who won, and how each of the others ended."""

    home: Path
    winner: Command
    ended: dict[str, int]
    printed: dict[str, str]


@pytest.fixture(scope="module")
def race(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Race:
    """Dialogues are there when two refreshes begin; posts come in while one works, and a dialogue is to be erased."""
    home = home_with(sample_home, tmp_path_factory.mktemp("race") / "home", ["imported_dialogues"])
    talk = Store(sample_home / "data").read("imported_dialogues").collect()["dialogue_id"][0]
    with ExitStack() as running:
        refreshes = [running.enter_context(started(home, "refresh")) for _ in range(2)]
        wait_until(prints("clean_dialogues"), *refreshes)
        others = {
            "import": running.enter_context(started(home, *IMPORT_POSTS)),
            "erase": running.enter_context(started(home, "erase", talk)),
        }
        ended = {name: command.wait() for name, command in others.items()}
        refreshes.sort(key=Command.wait)  # 0: it has won
        winner, others["refresh"] = refreshes
        ended |= {"winner": winner.wait(), "refresh": others["refresh"].wait()}
    done(home, "refresh")
    return Race(home, winner, ended, {name: command.printed for name, command in others.items()})


@pytest.mark.parametrize("other", ["refresh", "erase"])
def test_one_refresh_works_and_the_others_say_who_it_is_and_what_to_do(race, other):
    assert race.ended["winner"] == 0, race.winner.printed
    assert race.ended[other] == 1
    assert f"process {race.winner.pid} on " in race.printed[other]
    assert "hint: wait for it, or end that process" in race.printed[other]
    assert "Traceback" not in race.printed[other]


def test_an_import_is_not_held_up(race):
    assert race.ended["import"] == 0, race.printed["import"]


def test_one_refresh_later_the_tables_are_those_of_one_command_after_the_other(race, sample_home, tmp_path):
    """Versions and all; the splits too, which remember in what order the rows came."""
    in_order = home_with(sample_home, tmp_path / "in order", ["imported_dialogues"])
    _make_all(in_order)
    home_with(sample_home, in_order, ["imported_posts"])
    _make_all(in_order)
    assert current(race.home) == current(in_order)
    assert broken(race.home) == []
    assert leftovers(race.home) == []
    assert open_runs(race.home) == {}


def _make_all(home: Path) -> None:
    refresh(home, Settings(), clients=FakePool(None, Settings().llm))
