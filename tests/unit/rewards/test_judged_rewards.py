"""M's and C's rewards as verl calls them, with a judge on this machine that speaks the wire."""

import asyncio
import math
from typing import Any

import annotate_rows
import numpy as np
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from judge_stub import beside, verdict

from pipelines.rewards import compeer, mindchat, services
from pipelines.rewards.compeer import parts
from pipelines.rewards.redundancy import reweight
from pipelines.rewards.services import RewardFailed, close
from schemas.labels import PREFERENCES
from schemas.reasoning import Ecot

WELL = Ecot(situation="失眠", motivation="想被理解", strategy="先共情", answer="您辛苦了。").render()
CER_WELL = annotate_rows.cer().render()
ROW = {
    "split": "train",
    "row_id": "sample:1",
    "lang": "zh",
    "dialogue": [
        {"role": "seeker", "text": "最近总是睡不着。"},
        {"role": "supporter", "text": "我在听，您慢慢说。"},
        {"role": "seeker", "text": "工作压力很大。"},
    ],
}
MINDCHAT_KEYS = {
    *("score", "r_format", "r_exist", "r_num", "r_order", "ordered", "strict", "r_answer", "judge_ok", "words"),
    *("fluency", "empathy", "support"),
}
TERMS = ("step1", "step2", "step3", "response", "format")
COMPEER_KEYS = {
    "score",
    "r",
    *TERMS,
    "strict",
    "length",
    "s_in",
    "s_hi",
    "tau",
    "redundancy_alone",
    "judge_ok",
    "words",
}


def scored(
    reward: Any, output: str, answer: Any = verdict, info: Any = None, token: str = "", **settings: Any
) -> tuple[dict[str, Any], list[Any]]:
    """What a reward says of an output, and what its judge was asked."""
    told = {"data_source": "gongqing/x", "ground_truth": "听起来很累。", "extra_info": info or ROW}
    return beside(
        answer, "GONGQING_JUDGE", lambda: reward.compute_score(solution_str=output, **told, **settings), token
    )


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "PAUSES", (0.0,))


def test_m_adds_the_judges_points_to_the_form():
    found, [(path, question)] = scored(
        mindchat, WELL, lambda *_: {"ok": True, "fluency": 5, "empathy": 3, "support": 1, "words": "自然"}
    )
    assert found.keys() == MINDCHAT_KEYS
    assert found["r_answer"] == pytest.approx(9 / 15)
    assert found["score"] == pytest.approx(1 + 9 / 15)
    assert (found["judge_ok"], found["words"]) == (1, "自然")
    assert path == "/mindchat"
    assert question == {"row_id": "sample:1", "lang": "zh", "dialogue": ROW["dialogue"], "answer": "您辛苦了。"}


def test_without_one_answer_nobody_is_asked_and_nothing_failed():
    for output in (
        *("", "您辛苦了。", WELL + "<answer>再见</answer>", WELL.replace("</answer>", "")),
        *(WELL.replace("您辛苦了。", "您<strategy>辛苦了。"), WELL.replace("您辛苦了。", " ")),
    ):
        found, questions = scored(mindchat, output)
        assert questions == [], output
        assert (found["r_answer"], found["judge_ok"], found["score"]) == (0, 1, found["r_format"])


def test_a_failed_judgement_is_worth_nothing_and_says_so():
    found, _ = scored(mindchat, WELL, lambda *_: {"ok": False, "problem": "no marked field"})
    assert (found["r_answer"], found["judge_ok"], found["words"]) == (0, 0, "no marked field")
    assert found.keys() == MINDCHAT_KEYS
    found, _ = scored(compeer, CER_WELL, lambda *_: {"ok": False, "problem": "no marked field"})
    assert [found[name] for name in TERMS] == [0, 0, 0, 0, 1]
    assert (found["score"], found["judge_ok"]) == (1, 0)
    assert found.keys() == COMPEER_KEYS


def of_group(module: Any, results: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    """A prompt's outputs, all alike."""
    outputs = [WELL if module is mindchat else CER_WELL] * len(results)
    return asyncio.run(module.group_scores(outputs, results, extra_info=ROW, **settings))


def test_what_nobody_judged_is_neither_good_nor_bad():
    """It has the mean of its siblings: a policy gains nothing, and loses nothing, by what its judge refuses."""
    judged, _ = scored(mindchat, WELL, lambda *_: {"ok": True, "fluency": 4, "empathy": 3, "support": 2, "words": ""})
    refused, _ = scored(mindchat, WELL, lambda *_: {"ok": False, "problem": "refused"})
    for found in of_group(mindchat, [judged, judged, refused]):
        assert (found["score"], found["r_answer"]) == (judged["score"], judged["r_answer"])
    assert [one["judge_ok"] for one in of_group(mindchat, [judged, refused])] == [1, 0]
    wrong, _ = scored(compeer, CER_WELL, lambda *_: {"ok": True, "steps": [False] * 3, "preference": "first"})
    refused, _ = scored(compeer, CER_WELL, lambda *_: {"ok": False, "problem": "refused"})
    assert {one["score"] for one in of_group(compeer, [wrong, wrong, refused], reweight=False)} == {wrong["r"]}


def test_what_needs_no_judge_counts_also_where_the_judge_fails():
    """A refused output has its own format and its own missing step; of its siblings it has the rest."""
    no_step, no_answer = (CER_WELL.replace(tag, "") for tag in ("</emotion>", "</answer>"))
    mixed = {"ok": True, "steps": [True, True, False], "preference": "both"}
    wrong = {"ok": True, "steps": [True, False, False], "preference": "first"}
    outputs = [CER_WELL, CER_WELL, no_answer, no_step]
    answers = [mixed, wrong, wrong, {"ok": False, "problem": "refused"}]
    results = [scored(compeer, output, lambda *_, a=a: a)[0] for output, a in zip(outputs, answers, strict=True)]
    found = asyncio.run(compeer.group_scores(outputs, results, extra_info=ROW, reweight=False))
    step1, step2, step3, response, form = 1, -1, -1, 0, -1
    assert found[3]["r"] == found[3]["score"] == step1 + step2 + step3 + response + form
    assert [one["r"] for one in found[:3]] == [one["r"] for one in results[:3]] == [3, -1, -3]
    alone = asyncio.run(compeer.group_scores([no_step], results[3:], extra_info=ROW, reweight=False))
    assert [one["r"] for one in alone] == [-2]


def test_a_setting_that_there_is_not_is_no_reward():
    for module in (mindchat, compeer):
        with pytest.raises(TypeError, match="no setting rewieght"):
            scored(module, WELL, rewieght=False)


@pytest.mark.parametrize("preference", PREFERENCES)
def test_c_is_the_sum_of_five_terms(preference: str):
    answer = {"ok": True, "steps": [True, False, True], "preference": preference, "words": ""}
    found, [(path, question)] = scored(compeer, CER_WELL, lambda *_: answer, length=lambda text: 3)
    response = 1 if preference in ("second", "both") else -1
    assert [found[name] for name in TERMS] == [1, -1, 1, response, 1]
    assert found["score"] == found["r"] == 2 + response
    assert found["length"] == 3
    assert found.keys() == COMPEER_KEYS
    assert path == "/compeer"
    assert question["reference"] == "听起来很累。"
    assert question["response"] == "那天发生了什么？"
    assert [step.partition("：")[0] for step in question["steps"]] == ["阶段", "情感", "策略"]


def test_what_is_there_is_judged_also_where_the_whole_is_malformed():
    broken = CER_WELL.replace("</emotion>", "").replace("<cer_think>", "")
    found, [(_, question)] = scored(compeer, broken, lambda *_: {"ok": True, "steps": [True] * 3, "preference": "both"})
    assert [step is None for step in question["steps"]] == [False, True, False]
    assert [found[name] for name in TERMS] == [1, -1, 1, 1, -1]


def test_an_output_with_nothing_to_judge_is_not_shown_to_anybody():
    found, questions = scored(compeer, "我在听。")
    assert (questions, found["score"], found["judge_ok"], found["length"]) == ([], -5, 1, 0)


def test_a_verdict_of_another_form_is_no_reward():
    for reward, answer, said in (
        *(
            (mindchat, {"ok": True, "fluency": 5, "empathy": points, "support": 1}, "for empathy, and points go from 1")
            for points in (0.5, 6, math.nan, "5", None)
        ),
        *(
            (compeer, {"ok": True, "steps": steps, "preference": "both"}, "judge")
            for steps in ([True, True], [1, 0, 1])
        ),
        (compeer, {"ok": True, "preference": "both"}, "the judge"),
        (compeer, {"ok": True, "steps": [True] * 3, "preference": "third"}, "the judge"),
        (compeer, {"ok": True, "steps": [True] * 3}, "the judge"),
        *((one, {}, "the judge says ok .*, and true or false was asked for") for one in (mindchat, compeer)),
        *((one, {"ok": "false"}, "the judge says ok .*, and true or") for one in (mindchat, compeer)),
    ):
        with pytest.raises(RewardFailed, match=said):
            scored(reward, WELL if reward is mindchat else CER_WELL, lambda *_, answer=answer: answer)


async def slow(*_: Any) -> dict[str, Any]:
    await asyncio.sleep(1)
    return {}


def test_a_judge_that_does_not_judge_is_no_zero(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "SECONDS", 0.2)
    for answer, said in (
        (lambda *_: web.json_response({"stop": "7 of 9 judgements failed"}, status=503), "7 of 9"),
        (lambda *_: web.Response(text="<html>"), "no JSON object"),
        (lambda *_: [1], "no JSON object"),
        (lambda *_: web.json_response({}, status=500), "status 500"),
        (slow, "no answer from"),
    ):
        for reward, output in ((mindchat, WELL), (compeer, CER_WELL)):
            with pytest.raises(RewardFailed, match=said):
                scored(reward, output, answer)


async def ask() -> None:
    try:
        await mindchat.compute_score(solution_str=WELL, extra_info=ROW)
    finally:
        await close()


def test_without_a_judge_there_is_no_reward_and_no_error_names_the_token_that_it_wants(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(RewardFailed, match="GONGQING_JUDGE is not set"):
        asyncio.run(ask())
    with pytest.raises(RewardFailed, match=r"refuses: status 404$") as refused:
        scored(mindchat, WELL, token="/s3cret")
    monkeypatch.setenv("GONGQING_JUDGE", "http://127.0.0.1:1/s3cret")  # nobody listens there
    with pytest.raises(RewardFailed, match="no answer from") as unheard:
        asyncio.run(ask())
    for caught in (refused, unheard):
        assert "/mindchat" in str(caught.value)
        assert "s3cret" not in str(caught.value)


def result(r: float, response: str) -> dict[str, Any]:
    return {"score": r, "r": r, "length": float(len(response)), "judge_ok": 1.0}


responses = st.text(alphabet="我在听您慢说ab", min_size=1, max_size=12)
group = st.lists(st.tuples(responses, st.integers(-5, 5).map(float)), min_size=1, max_size=6)


@given(group, st.lists(responses, max_size=3), st.sampled_from(["paper", "shift"]), st.floats(0, 2), st.floats(0, 9))
def test_the_scores_of_a_group_are_its_reweighted_rewards(members, history, mode, alpha, beta):
    row = {**ROW, "dialogue": [{"role": "seeker", "text": text} for text in history]}
    outputs = [f"x<answer>{text}</answer>" for text, _ in members]
    results = [result(r, text) for text, r in members]
    found = asyncio.run(compeer.group_scores(outputs, results, extra_info=row, alpha=alpha, beta=beta, mode=mode))
    rewards, texts = [r for _, r in members], [text for text, _ in members]
    wanted = reweight(rewards, texts, history, alpha, beta, mode=mode).tolist()
    assert [one["score"] for one in found] == pytest.approx(wanted)
    assert [one["r"] for one in found] == rewards
    unweighed = asyncio.run(compeer.group_scores(outputs, results, extra_info=row, reweight=False))
    assert [one["score"] for one in unweighed] == rewards
    assert all(math.isfinite(one[name]) for one in found for name in ("score", "s_in", "s_hi", "tau"))


def test_a_group_that_redundancy_alone_decides_is_told():
    texts = ["您愿意多说一点吗？", "我在听，您慢慢说。"]
    outputs = [f"<answer>{text}</answer>" for text in texts]
    for rewards, alone in (((3, 3), 1), ((3, 1), 0)):
        results = [result(r, text) for r, text in zip(rewards, texts, strict=True)]
        found = asyncio.run(compeer.group_scores(outputs, results, extra_info=ROW))
        assert [one["redundancy_alone"] for one in found] == [alone, alone]


def weighed_by(vectors: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """A group of three, one without an answer, beside an encoder; and what that was asked."""
    outputs = ["<answer>甲</answer>", "<answer>乙</answer>", "no answer"]
    results = [result(4, "甲"), result(4, "乙"), result(-5, "")]
    return beside(vectors, "GONGQING_ENCODER", lambda: compeer.group_scores(outputs, results, extra_info=ROW))


def test_a_broken_encoder_makes_no_group_that_is_like_nothing():
    for vectors, said in (
        ([[math.nan, 0.0]] * 5, "no number"),
        ([[math.inf, 0.0]] * 5, "no number"),
        ([[1.0, 0.0]] * 2, "one vector for each text"),
        (None, "one vector for each text"),
    ):
        with pytest.raises(RewardFailed, match=said):
            weighed_by(lambda *_, vectors=vectors: {"vectors": vectors})


def test_the_encoder_of_the_recipe_says_what_is_alike():
    def vectors(path: str, question: dict[str, Any]) -> dict[str, Any]:
        return {"vectors": [[1.0, 0.0] if text in "甲乙" else [0.0, 1.0] for text in question["texts"]]}

    found, questions = weighed_by(vectors)
    before = [turn["text"] for turn in ROW["dialogue"]]
    assert questions == [("/embed", {"texts": ["甲", "乙", *before], "kind": "answer"})]
    assert [(one["s_in"], one["s_hi"]) for one in found] == [(0.5, 0.0), (0.5, 0.0), (0.0, 0.0)]


def test_a_hostile_output_has_no_section():
    for text in (
        *("<answer><answer>您</answer></answer>", "<answer>您</answer>" * 10_000, "<" * 1_000_000),
        *("<answer>" * 10_000 + "</answer>" * 10_000, "</answer>您<answer>", "</answer>您</answer>"),
        "<answer>您<history>好</history></answer>",
    ):
        assert parts(text).response is None, text[:40]


def test_what_verl_hands_over_may_be_an_array():
    _, [(_, question)] = scored(mindchat, WELL, info=ROW | {"dialogue": np.array(ROW["dialogue"], dtype=object)})
    assert question["dialogue"] == ROW["dialogue"]


def test_without_a_judge_the_form_alone_counts_and_nobody_is_asked():
    for reward, output in ((mindchat, WELL), (compeer, CER_WELL)):
        found, questions = scored(reward, output, judge=False)
        assert (questions, found["score"], found["judge_ok"]) == ([], 1, 1)
        assert scored(reward, "不知道。", judge=False)[0]["score"] < 1


def test_without_a_judge_what_repeats_is_worth_less_all_the_same():
    outputs = [CER_WELL, CER_WELL, CER_WELL.replace("那天发生了什么？", "那一个月里，最难的是哪一天？")]
    results = [scored(compeer, output, judge=False)[0] for output in outputs]
    found = asyncio.run(compeer.group_scores(outputs, results, extra_info=ROW, judge=False))
    assert found[0]["score"] == found[1]["score"] < found[2]["score"]
