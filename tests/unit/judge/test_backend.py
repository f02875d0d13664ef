"""A judge is asked at the temperature that its profile says, and not at all without one."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import SettingsError
from pipelines.judge.backend import require
from pipelines.judge.judging import OUTCOME, PROCESS, UNIFIED, scoring_question
from pipelines.judge.turns import system_prompt
from pipelines.llm.payload import payload
from pipelines.llm.profiles import Profile, profiles
from pipelines.llm.questions import Question
from pipelines.settings import Annotate, Llm, Rewards, Rewrite

SHIPPED = profiles()
POST = [{"role": "seeker", "text": "我睡不着。"}]
TURNS = {
    task: Question(task=task, row_id="r", prompt=system_prompt(task, "zh"), inputs={}, parse=str, model="-")
    for task in (UNIFIED, PROCESS, OUTCOME)
}


def test_every_judge_that_the_settings_name_has_temperature_0_in_its_profile_and_it_is_sent():
    rewards = Rewards()
    asked: dict[str, Question[Any]] = {
        rewards.mindchat: scoring_question("r", "zh", POST, "听起来很累。", "-"),
        rewards.compeer: TURNS[UNIFIED],
        rewards.compeer_process: TURNS[PROCESS],
        rewards.compeer_outcome: TURNS[OUTCOME],
        Rewrite().judging: TURNS[UNIFIED],
        Annotate().coherence: TURNS[UNIFIED],
    }
    assert {alias: SHIPPED[alias].temperature for alias in asked} == dict.fromkeys(asked, 0)
    assert [payload(question, SHIPPED[alias])["temperature"] for alias, question in asked.items()] == [0] * len(asked)


def judging(folder: Path, profile: str) -> None:
    price = 'input = 0\noutput = 0\ncurrency = "USD"\ndate = 2026-11-21\nsource = "a machine of one\'s own"\n'
    path = folder / "profiles.toml"
    path.write_text(f'[mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n{profile}[mine.price]\n{price}')
    require(folder, Llm(profiles=path), "openai", ["mine"], Decimal(1))


@pytest.mark.parametrize("profile", ["", "thinking = true\n"])
def test_a_judge_whose_profile_says_none_is_refused_before_anything_is_asked(tmp_path: Path, profile: str):
    """Its host would choose one, and a model that thinks would lose the prompt's."""
    with pytest.raises(SettingsError, match="the judge mine says no temperature") as caught:
        judging(tmp_path, profile)
    assert "temperature = 0" in caught.value.hint
    for stated in ("temperature = 0\n", "temperature = 0.3\n", 'temperature = "none"\n'):
        judging(tmp_path, profile + stated)


def test_what_takes_no_temperature_says_so_and_is_sent_none():
    for thinking in (False, True):
        mine = Profile(alias="m", model="m", temperature="none", thinking=thinking)
        assert "temperature" not in payload(scoring_question("r", "zh", POST, "嗯。", "-"), mine)
