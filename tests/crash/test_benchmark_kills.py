"""A dialogue benchmark that is killed at many moments: what was answered is paid for once, its score is the same."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from judge_host import JudgeHost
from judge_process import profiles
from played import NAMES, played

from pipelines.core.home import Home
from pipelines.llm.ledger.ledger import Ledger
from pipelines.settings import ROOT
from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.drill("kill"), pytest.mark.timeout(600)]

KILLS, SEEKERS = 4, 6


def start(home: Path) -> "subprocess.Popen[bytes]":
    seekers = str(ROOT / "samples" / "evaluate" / "seekers.jsonl")
    words = ["evaluate", "tested", "--suite", "sage", "--seekers", seekers, "--seeker", "seeker", "--budget", "50"]
    command = [sys.executable, "-c", "from pipelines.cli import main; main()", *words]
    environment = {**os.environ, "GONGQING_HOME": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def end(process: "subprocess.Popen[bytes]") -> None:
    _, words = process.communicate(timeout=120)
    assert process.returncode == 0, words


def figures(home: Path) -> list[dict[str, Any]]:
    return Store(home / "data").read("evaluations", partition="tested").collect().to_dicts()


def test_it_goes_on_after_any_kill_and_pays_twice_for_no_more_than_was_in_flight(tmp_path: Path):
    rng = random.Random(7)
    with JudgeHost(played, lambda _: 0.02) as host:
        home, other = tmp_path / "home", tmp_path / "other"
        profiles(home, host.base_url, names=NAMES, profile='key_variable = ""\n', temperature="temperature = 0.7\n")
        shutil.copytree(home, other)
        end(start(other))
        needed = len(host.asked)
        assert needed > 100
        host.asked.clear()
        for _ in range(KILLS):
            process = start(home)
            # A moment of the work, not of the clock: after so many requests, wherever its process is then.
            moment = len(host.asked) + rng.randint(1, needed // KILLS)
            while process.poll() is None and len(host.asked) < moment:
                time.sleep(0.001)
            assert process.poll() is None, "there was something left to do"
            process.send_signal(signal.SIGKILL)
            process.communicate()
        end(start(home))
        paid = Counter(json.dumps(payload, sort_keys=True) for payload in host.asked)
    with Ledger(Home(home).ledger) as ledger:
        in_flight = len(ledger.open_attempts())  # sent, and not answered before the kill
    assert in_flight <= SEEKERS * KILLS, "a dialogue has one request in flight"
    assert sum(paid.values()) - len(paid) <= in_flight
    assert len(paid) == needed
    assert figures(home) == figures(other)
