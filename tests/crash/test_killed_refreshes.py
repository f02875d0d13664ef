"""`gongqing refresh` killed in any of its stages, early and late: the next one makes the same tables."""

import random
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from killing import (
    broken,
    creates_a_run,
    current,
    done,
    home_with,
    killed,
    leftovers,
    open_runs,
    prints,
    publishes,
    starts,
    versions,
    writes,
)

from pipelines.flow.stages import STAGES
from schemas.tables import TABLES

pytestmark = [pytest.mark.slow, pytest.mark.drill("kill"), pytest.mark.timeout(1200)]

SOURCES = ("imported_posts", "imported_dialogues")
MADE_EARLY = ("clean", "unique", "sample", "annotate")  # groups of stages; all others are late
SETTINGS = """
[rewrite]
variants = ["D", "R", "P"]
[annotate]
human_answers = false
"""  # labels_made.LABELLED, so that every training set has rows

# What to wait for, and for how many seconds at most the command then works on.
EARLY = [
    (starts, 3.0),
    (writes, 0.0),
    (prints("clean_posts"), 1.5),
    (creates_a_run, 0.0),
    (publishes("splits"), 0.02),  # three tables are made by one stage, and this one is kept for ever
    (prints("coherent_dialogues"), 1.5),
    (publishes("emotions"), 0.02),
    (prints("ecot_chains"), 1.5),
]
LATE = [
    (publishes("persona_fits"), 0.02),  # kept for ever as well
    (prints("personas"), 2.0),
    (publishes("rewritten_dialogues"), 0.02),
    (prints("grpo_ecot"), 1.5),
    (publishes("sft_coe"), 0.02),
    (prints("sft_cer"), 1.0),
    (publishes("rm_process"), 0.02),
    (publishes("rm_unified"), 0.0),  # the last of all: nothing is left to make
]


@dataclass(frozen=True)
class Drill:
    """A home after the kills and one refresh more, and the versions of one where nobody was killed."""

    home: Path
    wanted: dict[str, str]
    after_kills: list[dict[str, str]]  # what was current each time


def tables_of(groups: tuple[str, ...]) -> list[str]:
    """The tables that these groups of stages make."""
    return [table for stage in STAGES if stage.group in groups for table in stage.tables]


def drill(home: Path, wanted: dict[str, str], moments: list[Any], groups: list[str]) -> Drill:
    """Kills a refresh at each of the moments, one after the other, and lets the last one finish."""
    chance, after_kills = random.Random(15), []
    command = ["refresh", *(word for group in groups for word in ("--select", group))]
    for when, at_most in moments:
        killed(home, *command, when=when, seconds=chance.uniform(0, at_most))
        after_kills.append(current(home))
    done(home, *command)
    return Drill(home, wanted, after_kills)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("early", marks=pytest.mark.xdist_group("killed early")),
        pytest.param("late", marks=pytest.mark.xdist_group("killed late")),
    ],
)
def drilled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drill:
    home = tmp_path_factory.mktemp("killed") / "home"
    early = tables_of(MADE_EARLY)
    if request.param == "early":
        whole = request.getfixturevalue("sample_home")
        home_with(whole, home, SOURCES)
        groups, moments, tables = list(MADE_EARLY), EARLY, {*SOURCES, *early}
    else:
        whole = request.getfixturevalue("labelled_store").storage.root.parent
        home_with(whole, home, [*SOURCES, *early, "cer_labels"])
        (home / "gongqing.toml").write_text(SETTINGS, encoding="utf-8")
        groups, moments, tables = [], LATE, set(TABLES)
    wanted = {place: one for place, one in current(whole).items() if place.split("/")[0] in tables}
    return drill(home, wanted, moments, groups)


def test_the_tables_are_those_of_a_home_where_nothing_was_killed(drilled):
    """All of them, and no version that is not current: what a killed stage had written is what the next one writes."""
    assert versions(drilled.home) == {place: [one] for place, one in drilled.wanted.items()}
    assert broken(drilled.home) == []


def test_no_kill_leaves_a_wrong_table_current(drilled):
    """Nor takes one away that was there."""
    assert len(drilled.after_kills) > 1
    for before, after in pairwise(drilled.after_kills):
        assert before.items() <= after.items() <= drilled.wanted.items()


def test_nothing_is_left_of_the_killed(drilled):
    assert leftovers(drilled.home) == []


def test_no_run_of_the_killed_stays_open(drilled):
    """Dagster would show it as coming, or at work, for ever."""
    assert open_runs(drilled.home) == {}
