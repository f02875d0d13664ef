"""Our manager of rewards, as verl loads it: groups that meet across workers, and outputs without a reward."""

import json
from typing import Any

import pytest
from train_env import in_train_env

from pipelines.rewards.redundancy import reweight
from pipelines.settings import ROOT

# As tests/doubles/gathered.py has them.
ANSWERS, HISTORY = ["我在听。", "我在听，您慢慢说。", ""], ["我在听。", "睡不着。"]

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    environment = {"PYTHONPATH": f"{ROOT}", "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    script = ROOT / "tests" / "doubles" / "gathered.py"
    output = in_train_env(script, tmp_path_factory.mktemp("gathered"), **environment)
    cases: dict[str, dict[str, Any]] = json.loads(output.splitlines()[-1])
    return cases


def test_a_group_whose_outputs_went_to_two_workers_is_weighed_as_one(cases: dict[str, dict[str, Any]]):
    found = cases["whole"]
    terms = [one["reward_extra_info"] for one in found["came_to"]]
    lengths = dict(zip(ANSWERS, (one["length"] for one in terms), strict=True))
    expected = reweight([one["r"] for one in terms], ANSWERS, HISTORY, length=lengths.__getitem__)
    assert [one["reward_score"] for one in found["came_to"]] == pytest.approx(expected.tolist())
    assert 0 < lengths["我在听。"] < len("我在听。"), "it is measured in tokens"
    assert terms[0]["s_in"] > 0
    assert found["reason"] == ""
    validated = [one["reward_score"] for one in cases["validation"]["came_to"]]
    assert len(validated) == 2, "what is validated on has groups of its own size"


def test_every_output_leaves_a_line_with_its_terms_and_the_judges_words(cases: dict[str, dict[str, Any]]):
    found = cases["whole"]
    lines = sorted(found["lines"], key=lambda line: line["session"])
    assert [line["terms"] for line in lines] == [one["reward_extra_info"] for one in found["came_to"]]
    assert [line["words"] for line in lines] == ["好", "好", ""], "nobody was asked about an output without parts"
    assert {(line["uid"], line["split"], line["row_id"]) for line in lines} == {("whole", "train", "sample:1")}
    assert all(set(map(type, one["reward_extra_info"].values())) == {float} for one in found["came_to"])


def test_an_output_that_fails_does_not_leave_its_group_waiting(cases: dict[str, dict[str, Any]]):
    found = cases["stopped"]
    assert all("the judge failed at 3 of the last 10 answers" in one for one in found["came_to"])
    assert found["reason"] == "an output has no reward: the judge failed at 3 of the last 10 answers"
    assert found["lines"] == []


def test_a_group_that_stays_incomplete_is_an_error(cases: dict[str, dict[str, Any]]):
    assert "of the 3 outputs of a prompt 2 had a reward after 4 s" in cases["lost"]["reason"]
    assert all("of the 3 outputs of a prompt 2 had" in one for one in cases["lost"]["came_to"])


def test_a_judge_that_is_too_slow_stops_the_run(cases: dict[str, dict[str, Any]]):
    assert cases["slow"]["reason"].startswith("an output has no reward: no answer from http://127.0.0.1:")
    assert cases["slow"]["came_to"][0].startswith("RewardFailed: ")


def test_what_is_no_number_is_no_reward(cases: dict[str, dict[str, Any]]):
    assert "the judge gave nan for empathy" in cases["not_a_number"]["reason"]
    one, other = cases["numbers"]["came_to"]
    assert one == "RewardFailed: the reward has no judge_ok"
    assert other == "RewardFailed: score of the reward is nan, which is no finite number"
