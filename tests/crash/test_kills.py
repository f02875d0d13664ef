"""SIGKILL at any step: the next command finishes, and what there is then is what an undisturbed one makes."""

import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
from crash_writers import WRITERS
from invented_posts import invent
from killing import (
    IMPORT_POSTS,
    DoneBeforeError,
    creates_a_run,
    current,
    done,
    home_with,
    killed,
    prints,
    publishes,
    require_sound,
    starts,
    versions,
)
from labels_made import LABELLED_TOML
from troubled_replica import Replica

from pipelines.flow.stages import STAGES
from pipelines.settings import ROOT
from pipelines.store import Store
from schemas.tables import TABLES

pytestmark = [pytest.mark.slow, pytest.mark.drill("kill"), pytest.mark.timeout(1200)]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_that_is_killed_at_any_of_its_steps(tmp_path, writer):
    drill = [sys.executable, ROOT / "tests" / "doubles" / "crash_drill.py", writer, tmp_path]
    ran = subprocess.run(drill, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    kills = [json.loads(line) for line in ran.stdout.splitlines()]
    wanted = WRITERS[writer]
    assert len(kills) > 0.7 * max(wanted.spread, wanted.functions)
    assert len({kill["place"] for kill in kills}) > 0.7 * wanted.functions
    assert [kill for kill in kills if kill["problem"] or kill["differs"]] == []


# Whole commands, killed from outside when a fact is there and some random milliseconds later: (fact, seconds at most).


def kill_and_finish(home: Path, command: tuple[str, ...], moments) -> list[dict[str, str]]:
    """Kills the command at each of the moments, then lets it finish; what was current after each kill. A kill that came
    too late is none: it is tried again on the home as it was.
    """
    chance, after_kills, before = random.Random(15), [], home.with_name("before")
    for fact, at_most in moments:
        shutil.copytree(home, before)
        for more_tries in (2, 1, 0):
            try:
                killed(home, *command, when=fact, seconds=chance.uniform(0, at_most))
                break
            except DoneBeforeError:
                if not more_tries:
                    raise
                shutil.rmtree(home)
                shutil.copytree(before, home)
        shutil.rmtree(before)
        after_kills.append(current(home))
    done(home, *command)
    return after_kills


def require_undisturbed(home: Path, wanted: dict[str, str], after_kills: list[dict[str, str]]) -> None:
    """The wanted versions and no others; no kill made a wrong one current or took one away; nothing is left."""
    assert {(one.name, one.version) for one in versions(home)} == set(wanted.items())
    for before, after in pairwise([*after_kills, wanted]):
        assert before.items() <= after.items()
    require_sound(home)


@pytest.mark.xdist_group("killed imports")
def test_an_import_command(sample_home, tmp_path):
    home = home_with(sample_home, tmp_path / "home", [])  # the pseudonyms, and so the version, follow from its key
    moments = [(creates_a_run, 0.0), (publishes("imported_posts"), 0.02)]
    after_kills = kill_and_finish(home, IMPORT_POSTS, moments)
    place = "imported_posts/sample"
    require_undisturbed(home, {place: current(sample_home)[place]}, after_kills)


SOURCES = ("imported_posts", "imported_dialogues")
MADE_EARLY = ("clean", "unique", "sample", "annotate")  # groups of stages; all others are late
# `splits` is made by one stage with two other tables, and kept for ever.
EARLY = [(starts, 3.0), (creates_a_run, 0.0), (publishes("splits"), 0.02), (prints("ecot_chains"), 1.5)]
LATE = [
    (publishes("persona_fits"), 0.02),  # kept for ever as well
    (publishes("personas"), 2.0),  # a kill that comes late may have let these be made as well
    (prints("rewrite_drafts"), 0.5),
    (publishes("sft_coe"), 0.02),
    (prints("rm_outcome"), 0.2),  # the last of all follows: nothing may be left to make
]


def tables_of(groups: tuple[str, ...]) -> list[str]:
    return [table for stage in STAGES if stage.group in groups for table in stage.tables]


@pytest.mark.xdist_group("killed early")
def test_a_refresh_command_in_its_early_stages(sample_home, tmp_path):
    home = home_with(sample_home, tmp_path / "home", SOURCES)
    command = ("refresh", *(word for group in MADE_EARLY for word in ("--select", group)))
    tables = {*SOURCES, *tables_of(MADE_EARLY)}
    wanted = {place: one for place, one in current(sample_home).items() if place.split("/")[0] in tables}
    require_undisturbed(home, wanted, kill_and_finish(home, command, EARLY))


@pytest.mark.xdist_group("killed late")
def test_a_refresh_command_in_its_late_stages(labelled_store, tmp_path):
    whole = labelled_store.storage.root.parent
    home = home_with(whole, tmp_path / "home", [*SOURCES, *tables_of(MADE_EARLY), "cer_labels"])
    (home / "gongqing.toml").write_text(LABELLED_TOML, encoding="utf-8")
    wanted = {place: one for place, one in current(whole).items() if place.split("/")[0] in TABLES}
    require_undisturbed(home, wanted, kill_and_finish(home, ("refresh",), LATE))


# A crawl: parent and child

N_POSTS, FIRST, LAST = 200, dt.date(2025, 3, 1), dt.date(2025, 3, 10)
# The command itself, but without delays: it has no such option, for no site is ever crawled without.
CRAWL = (
    "import sys; from pipelines.settings import home; from pipelines.cli.pipeline import crawl_window; "
    "crawl_window(home(), 'replica', *sys.argv[1:3], base_url=sys.argv[3], delays=False)"
)


def posts_of_ten_days(path: Path) -> Path:
    """Long enough ago for the pages to give each post a whole date, whenever they are read."""
    chance, lines = random.Random(7), []
    start = dt.datetime.combine(FIRST, dt.time(), tzinfo=dt.timezone(dt.timedelta(hours=8)))
    for index in range(N_POSTS):
        post = asdict(invent(index, start + dt.timedelta(days=10 * chance.random())))
        row = {"id": post.pop("key"), **post, "answers": post.pop("coming")}
        lines.append(json.dumps(row, default=dt.datetime.isoformat))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def journal_bytes(home: Path) -> int:
    """Of all posts that were fetched."""
    return sum(path.stat().st_size for path in home.glob("crawl/replica/*/*/items.jsonl"))


def test_a_crawl_command_gives_each_post_once_and_asks_for_few_pages_twice(tmp_path):
    alone, home, chance = tmp_path / "alone", tmp_path / "killed", random.Random(3)
    alone.mkdir()
    home.mkdir()
    with Replica(file=posts_of_ten_days(tmp_path / "posts.jsonl")) as replica:
        window = (str(FIRST), str(LAST), replica.url)
        how = {"program": (sys.executable, "-c", CRAWL), "GONGQING_AUTHOR_KEY": "a key for the tests alone"}
        done(alone, *window, **how)
        undisturbed, whole = len(replica.log.paths), journal_bytes(alone)
        replica.reset()
        killed(home, *window, when=starts, seconds=chance.uniform(0, 2), **how)
        for _ in range(4):
            target = journal_bytes(home) + chance.uniform(0, whole / 4)
            fetches = lambda _, target=target: journal_bytes(home) > target  # noqa: E731
            killed(home, *window, when=fetches, seconds=chance.uniform(0, 0.05), **how)
        has_ended = lambda _: any(home.glob("crawl/replica/*/*/stats.json"))  # noqa: E731
        killed(home, *window, when=has_ended, seconds=chance.uniform(0, 0.2), **how)
        done(home, *window, **how)
        disturbed = len(replica.log.paths)
    stores = [Store(one / "data") for one in (home, alone)]
    rows, wanted = (one.read("raw_posts").collect().drop("fetched_at").sort("post_id") for one in stores)
    assert rows["post_id"].n_unique() == rows.height == N_POSTS
    assert rows.equals(wanted)
    assert len(stores[0].partitions("raw_posts")) == 10
    assert undisturbed < disturbed <= 1.3 * undisturbed
