"""What a run starts beside itself."""

from decimal import Decimal
from pathlib import Path

from pipelines.judging.service import _arguments
from pipelines.settings import Rewards, load
from pipelines.train.services import Judge, judge_command


def test_the_judge_is_started_as_the_settings_have_it(tmp_path: Path):
    settings = "failures = 0.2\nat_once = 7\njudge_timeout = 1.5\njudge_attempts = 2\n"
    (tmp_path / "gongqing.toml").write_text(f"[rewards]\n{settings}", encoding="utf-8")
    judge = Judge("openai", {"model": "qwen-plus"}, Decimal("2.5"), "apart", load(tmp_path).rewards)
    told = _arguments(judge_command(tmp_path, "run-1", judge)[3:])
    assert (told.failures, told.at_once, told.timeout, told.attempts) == (0.2, 7, 1.5, 2)
    assert (told.provider, told.model, told.mode, told.budget) == ("openai", "qwen-plus", "apart", Decimal("2.5"))
    assert (told.home, told.budget_of) == (tmp_path, "judge of run-1")


def test_what_no_setting_says_is_the_judges_own_default(tmp_path: Path):
    started = _arguments(
        judge_command(tmp_path, "run-1", Judge("rules", {"model": "x"}, None, "unified", Rewards()))[3:]
    )
    alone = _arguments([])
    for name in ("failures", "timeout", "attempts", "budget"):
        assert getattr(started, name) == getattr(alone, name), name
