"""Two refreshes, an import and an erasure on one home at once: one at a time, and the order makes no difference."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_model import FakePool
from killing import IMPORT_POSTS, Command, current, done, home_with, prints, require_sound, wait_until

from pipelines.flow.refresh import refresh
from pipelines.settings import Settings
from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.drill("race"), pytest.mark.xdist_group("races"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def race(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Dialogues are there when two refreshes begin; posts come in while one works, and a dialogue is to be erased.

    Then comes one refresh more.
    """
    home = home_with(sample_home, tmp_path_factory.mktemp("race") / "home", ["imported_dialogues"])
    talk = Store(sample_home / "data").read("imported_dialogues").collect()["dialogue_id"][0]
    with ExitStack() as running:
        refreshes = [running.enter_context(Command(home, "refresh")) for _ in range(2)]
        wait_until(prints("clean_dialogues"), *refreshes)
        arguments = {"import": IMPORT_POSTS, "erase": ("erase", talk)}
        others = {name: running.enter_context(Command(home, *words)) for name, words in arguments.items()}
        for command in others.values():
            command.wait()
        refreshes.sort(key=Command.wait)  # 0: it has won
        winner, others["refresh"] = refreshes
    done(home, "refresh")
    return SimpleNamespace(home=home, winner=winner, others=others)


def test_one_refresh_works_the_others_say_who_it_is_and_what_to_do_and_an_import_is_not_held_up(race):
    assert race.winner.wait() == 0, race.winner.printed
    assert race.others["import"].wait() == 0, race.others["import"].printed
    for other in (race.others["refresh"], race.others["erase"]):
        assert other.wait() == 1
        assert f"process {race.winner.process.pid} on " in other.printed
        assert "hint: wait for it, or end that process" in other.printed
        assert "Traceback" not in other.printed


def test_one_refresh_later_the_tables_are_those_of_one_command_after_the_other(race, sample_home, tmp_path):
    """Versions and all; the splits too, which remember in what order the rows came."""
    for table in ("imported_dialogues", "imported_posts"):
        in_order = home_with(sample_home, tmp_path / "in order", [table])
        refresh(in_order, Settings(), clients=FakePool(None, Settings().llm))
    assert current(race.home) == current(in_order)
    require_sound(race.home)
