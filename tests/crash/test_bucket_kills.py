"""A bucket under writers that are killed, and under sixteen at once: no half version, no lost swap."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def drilled(what: str, number: int, folder: Path) -> dict[str, Any]:
    """What `bucket_drill` reports; one thread of polars and of obstore is enough, and cheap to start in each fork."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1", "TOKIO_WORKER_THREADS": "1"}
    drill = [sys.executable, ROOT / "tests" / "doubles" / "bucket_drill.py", what, str(number), folder]
    ran = subprocess.run(drill, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {"errors": ran.stderr} | json.loads(ran.stdout)


@pytest.mark.drill("kill")
def test_kills_leave_no_half_version_and_the_same_work_again_finishes(tmp_path):
    """Of a write, a release and an erasure, before each request that they send and after each: two rounds kill at all
    of these, so that more than four would show the same again.
    """
    report = drilled("kills", 120, tmp_path)
    assert report["rounds"] >= 2
    assert min(report["kills"].values()) > 20
    assert (report["half"], report["failed"]) == ([], []), report["errors"]


@pytest.mark.drill("race")
def test_sixteen_writers_without_a_lock_between_them_lose_nothing(tmp_path):
    """Each writes versions of one table, its own and some that all write, and adds to one number by swaps."""
    report = drilled("race", 3, tmp_path)
    assert (report["writers"], report["swaps"]) == (16, 48)
    assert (report["half"], report["failed"]) == ([], []), report["errors"]
