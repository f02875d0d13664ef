"""An erasure that is killed at any of its steps is finished by the next command, and nothing is lost or left."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from erase_home import HIS, OF_ERASED, OTHER_TALK, QUOTED, TO_HIM, make_home
from every_byte import runs, traces

from pipelines.settings import ROOT
from pipelines.store.store import Store
from schemas.tables import PARTITIONED, TABLES

KILLS = 20


@pytest.fixture(scope="module")
def kills(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    make_home(folder / "made")
    command = [
        sys.executable,
        ROOT / "tests" / "doubles" / "kill_erasures.py",
        folder / "made",
        folder,
        "7",
        str(KILLS),
    ]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return [folder / "whole", *(Path(json.loads(line)["home"]) for line in ran.stdout.splitlines())], ran.stdout


def content(home: Path) -> dict[str, object]:
    """What every version reads as."""
    store = Store(home / "data")
    read = {}
    for table in TABLES:
        for partition in store.partitions(table) if table in PARTITIONED else [None]:
            for version in store.versions(table, partition):
                store.verify(version)
                where = (table, version.version, partition)
                parts = (store.read(*where), store.read_dropped(*where))
                read[" ".join(map(str, where))] = [
                    part.collect().drop("detail", strict=False).write_ndjson().replace(_mask(home), "")
                    for part in parts
                ]
    return read


def _mask(home: Path) -> str:
    """Masks differ from home to home, by its key."""
    from pipelines.store.suppression import SuppressionList

    return SuppressionList(home).mask("s:a/1")


@pytest.mark.drill("kill")
def test_all_were_killed_on_the_way_and_finished(kills):
    told = [json.loads(line) for line in kills[1].splitlines()]
    assert len(told) == KILLS
    assert {one["ended"] for one in told} == {-9}
    assert {one["again"] for one in told} == {0}
    assert {one["begun"] for one in told} == {True, False}, "before the plan was there, and after"


@pytest.mark.drill("kill")
def test_no_byte_is_left_after_any_of_them(kills):
    wanted = runs([*OF_ERASED, QUOTED]) - runs([HIS, TO_HIM, *OTHER_TALK])
    assert {home.name: found for home in kills[0] if (found := traces(home, wanted))} == {}


@pytest.mark.drill("kill")
def test_every_version_reads_as_after_one_that_was_not_killed(kills):
    whole, *others = kills[0]
    wanted = content(whole)
    assert wanted
    assert len(others) == KILLS
    for home in others:
        assert content(home) == wanted, home.name
