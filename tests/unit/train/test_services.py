"""What a run starts beside itself."""

import os
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.errors import TrainingFailed
from pipelines.judge.service import read_options
from pipelines.settings import Rewards, load
from pipelines.train.services import Judge, beside, judge_command


def test_the_judge_is_started_as_the_settings_have_it(tmp_path: Path):
    settings = "failures = 0.2\nat_once = 7\njudge_timeout = 1.5\njudge_attempts = 2\n"
    (tmp_path / "gongqing.toml").write_text(f"[rewards]\n{settings}", encoding="utf-8")
    judge = Judge("openai", {"model": "qwen-plus"}, Decimal("2.5"), "apart", load(tmp_path).rewards)
    told = read_options(judge_command(tmp_path, "run-1", judge)[3:])
    assert (told.failures, told.at_once, told.timeout, told.attempts) == (0.2, 7, 1.5, 2)
    assert (told.provider, told.model, told.mode, told.budget) == ("openai", "qwen-plus", "apart", Decimal("2.5"))
    assert (told.home, told.budget_of) == (tmp_path, "judge of run-1")
    judge = Judge("replay", {"model": "x"}, None, "unified", Rewards())
    started, alone = read_options(judge_command(tmp_path, "run-1", judge)[3:]), read_options(["--model=x"])
    for name in ("failures", "timeout", "attempts", "budget"):
        assert getattr(started, name) == getattr(alone, name), f"{name}: the judge's own default"


def started(folder: Path, script: str) -> dict[str, str]:
    """Where a service is that does what a script does, and then waits for its end."""
    command = [sys.executable, "-c", f"import sys\n{script}\nsys.stdout.flush()\nsys.stdin.read()"]
    with beside({"judge": command}, {"judge": os.environ}, folder) as addresses:
        return dict(addresses)


def test_what_a_library_prints_before_the_address_goes_to_the_log(tmp_path: Path):
    stray = ["loading …", "[1, 2]", '"address"', '{"address": null}', '{"progress": 1}', "", "\udcff"]
    lines = "\n".join([*stray, '{"address": "http://127.0.0.1:1/x"}', ""]).encode("utf-8", "surrogateescape")
    assert started(tmp_path, f"sys.stdout.buffer.write({lines!r})") == {"GONGQING_JUDGE": "http://127.0.0.1:1/x"}
    log = (tmp_path / "log-judge.txt").read_text(encoding="utf-8", errors="surrogateescape")
    assert log.splitlines() == stray


@pytest.mark.parametrize(
    "script",
    [
        "print('no GPU', file=sys.stderr); sys.exit(3)",
        "print('no GPU'); sys.stdout.flush(); import os; os.close(1); sys.stdin.read(); os._exit(0)",
    ],
)
def test_a_service_that_ends_without_an_address_did_not_start(tmp_path: Path, script: str):
    with pytest.raises(TrainingFailed, match=r"the judge did not start:\nno GPU") as error:
        started(tmp_path, script)
    assert error.value.where == tmp_path / "log-judge.txt"
