"""C's reward, worked by hand: every number below was reached with pencil arithmetic, which stands beside it."""

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from annotate_rows import cer
from judge_stub import beside

from pipelines.rewards import compeer
from pipelines.rewards.redundancy import reweight

WELL = cer().render()
RIGHT = {"ok": True, "steps": [True, True, True], "preference": "both"}

# Five terms, in their order: step 1, step 2, step 3, response, format. What the judge says, then the sum.
SUMS = {
    "all right": (WELL, RIGHT, 1 + 1 + 1 + 1 + 1),
    "it beats the reference": (WELL, RIGHT | {"preference": "second"}, 1 + 1 + 1 + 1 + 1),
    "the reference is better": (WELL, RIGHT | {"preference": "first"}, 1 + 1 + 1 - 1 + 1),
    "neither will do": (WELL, RIGHT | {"preference": "neither"}, 1 + 1 + 1 - 1 + 1),
    "a wrong step": (WELL, RIGHT | {"steps": [True, False, True]}, 1 - 1 + 1 + 1 + 1),
    "all wrong, and complete": (WELL, RIGHT | {"steps": [False] * 3, "preference": "first"}, -1 - 1 - 1 - 1 + 1),
    "a step is missing": (WELL.replace("</emotion>", ""), RIGHT, 1 - 1 + 1 + 1 - 1),
    "the response is missing": (WELL.replace("<answer>", ""), RIGHT, 1 + 1 + 1 - 1 - 1),
    "nothing is there": ("我在听。", RIGHT, -1 - 1 - 1 - 1 - 1),
}

# Format: an output, its term where completeness is paid for, and where our grammar is.
FORMS = {
    "as asked for": (WELL, 1, 1),
    "a strategy that there is not": (WELL.replace("策略：提问", "策略：催眠"), 1, -1),
    "an intensity beyond 5": (WELL.replace("强度：3", "强度：9"), 1, -1),
    "words around it": (f"好的。{WELL}再见。", 1, -1),
    "the response first": (WELL[WELL.index("<answer>") :] + WELL[: WELL.index("<answer>")], 1, -1),
    "without the tags around the steps": (WELL.replace("<cer_think>", "").replace("</cer_think>", ""), 1, -1),
    "the response twice": (WELL + "<answer>再见。</answer>", 1, -1),
    "no step 1": (WELL.replace("<history>", "").replace("</history>", ""), -1, -1),
    "a step 3 that nobody sees": (WELL[: WELL.index("策略：")] + WELL[WELL.index("</strategy>") :], -1, -1),
    "no response": (WELL[: WELL.index("<answer>")], -1, -1),
    "nothing": ("", -1, -1),
}

# Redundancy: three responses and three utterances before them, as vectors of length 1. Their cosines, those below 0
# counting as 0 (papers.md §6):
#          甲    乙    丙  | 求一  助一  求二
#   甲      -   .6     0  |  .8    1     0    s_in (.6 + 0) / 2 = .3   s_hi 1.8 / 3 = .6     the supporter's alone 1
#   乙     .6    -    .8  |  .96   .6   -.8   s_in 1.4 / 2 = .7        s_hi 1.56 / 3 = .52   .6
#   丙      0   .8     -  |  .6    0    -1    s_in .8 / 2 = .4         s_hi .6 / 3 = .2      0
VECTORS = {"甲": (1, 0), "乙": (0.6, 0.8), "丙": (0, 1), "求一": (0.8, 0.6), "助一": (1, 0), "求二": (0, -1)}
TURNS = [("seeker", "求一"), ("supporter", "助一"), ("seeker", "求二")]
REWARDS = [5.0, 3.0, -5.0]
FIVES, SEVENS = [4.0, 5.0, 6.0], [7.0, 7.0, 7.0]  # L = 5 = β gives τ = 1/2; L = 7 gives τ = 1 / (1 + e^−1)
GROUPS: dict[str, tuple[dict[str, Any], list[float], list[float]]] = {
    # 5 / (1.15 · 1.3) = 5 / 1.495; 3 / (1.35 · 1.26) = 3 / 1.701; −5 / (1.2 · 1.1) = −5 / 1.32: it gains by repeating
    "as printed": ({}, FIVES, [3.344481605351, 1.763668430335, -3.787878787879]),
    # 5 / (1.15 · 1.5) = 5 / 1.725; 3 / (1.35 · 1.3) = 3 / 1.755; −5 / (1.2 · 1)
    "the supporter's history": ({"history": "supporter"}, FIVES, [2.898550724638, 1.709401709402, -4.166666666667]),
    # 10 / 1.495 − 5; 8 / 1.701 − 5; 0 / 1.32 − 5: the lowest reward stays the lowest
    "shifted": ({"mode": "shift"}, FIVES, [1.688963210702, -0.296884185773, -5.0]),
    # 10 / 1.725 − 5; 8 / 1.755 − 5; 0 − 5
    "shifted, the supporter's history": (
        {"mode": "shift", "history": "supporter"}, FIVES, [0.797101449275, -0.441595441595, -5.0]),
    # τ = .731058578630: 5 / (1.219317573589 · 1.438635147178); 3 / (1.511741005041 · 1.380150460888);
    # −5 / (1.292423431452 · 1.146211715726)
    "longer ones count more": ({}, SEVENS, [2.850378311747, 1.437862729884, -3.375206416837]),
    # α = 0: τ = 1/2 whatever the length
    "no slope": ({"alpha": 0.0}, SEVENS, [3.344481605351, 1.763668430335, -3.787878787879]),
    "not weighed at all": ({"reweight": False}, SEVENS, REWARDS),
}  # fmt: skip


def info(turns: list[tuple[str, str]]) -> dict[str, Any]:
    dialogue = [{"role": role, "text": text} for role, text in turns]
    return {"row_id": "sample:1", "lang": "zh", "split": "train", "dialogue": dialogue}


def of_one(output: str, verdict: dict[str, Any], **settings: Any) -> dict[str, Any]:
    asked = {"ground_truth": "听起来很累。", "extra_info": info(TURNS), **settings}
    return beside(lambda *_: verdict, "GONGQING_JUDGE", lambda: compeer.compute_score(solution_str=output, **asked))[0]


def of_group(
    responses: list[str], rewards: list[float], lengths: list[float], turns: list[tuple[str, str]], **settings: Any
) -> list[dict[str, Any]]:
    results = [{"r": r, "score": r, "judge_ok": 1.0, "length": n} for r, n in zip(rewards, lengths, strict=True)]
    outputs = [f"<answer>{text}</answer>" for text in responses]
    return beside(
        lambda _, asked: {"vectors": [VECTORS[text] for text in asked["texts"]]},
        "GONGQING_ENCODER",
        lambda: compeer.group_scores(outputs, results, extra_info=info(turns), **settings),
    )[0]


@pytest.mark.parametrize("name", SUMS)
def test_r_is_the_sum_of_five_terms(name: str):
    output, verdict, r = SUMS[name]
    scores = of_one(output, verdict)
    assert (scores["score"], scores["r"]) == (r, r)


@pytest.mark.parametrize("name", FORMS)
def test_the_format_is_paid_for_completeness_or_for_our_grammar_and_both_are_reported(name: str):
    output, complete, strict = FORMS[name]
    printed, ours = of_one(output, RIGHT), of_one(output, RIGHT, format="strict")
    assert (printed["format"], ours["format"]) == (complete, strict)
    assert printed["strict"] == ours["strict"] == (strict + 1) / 2
    assert ours["r"] == printed["r"] - complete + strict


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_is_weighed_by_its_redundancy(name: str):
    settings, lengths, wanted = GROUPS[name]
    scores = of_group(["甲", "乙", "丙"], REWARDS, lengths, TURNS, **settings)
    assert [one["score"] for one in scores] == pytest.approx(wanted, abs=1e-11)
    assert [one["r"] for one in scores] == REWARDS
    assert [one["s_in"] for one in scores] == pytest.approx([0.3, 0.7, 0.4])
    supporter = settings.get("history") == "supporter"
    assert [one["s_hi"] for one in scores] == pytest.approx([1, 0.6, 0] if supporter else [0.6, 0.52, 0.2])
    tau = 0.731058578630 if lengths is SEVENS and "alpha" not in settings else 0.5
    assert [one["tau"] for one in scores] == pytest.approx([tau] * 3)


def test_one_output_alone_has_no_group_to_repeat():
    """3 / (1 + .5 · .52) = 3 / 1.26; shifted 8 / 1.26 − 5."""
    for mode, score in (("paper", 2.380952380952), ("shift", 1.349206349206)):
        [scores] = of_group(["乙"], [3.0], [5.0], TURNS, mode=mode)
        assert (scores["s_in"], scores["score"]) == (0, pytest.approx(score, abs=1e-11))


def test_where_nothing_was_said_before_there_is_no_history_to_repeat():
    """5 / 1.15; 3 / 1.35; −5 / 1.2: of a first round there is no turn of the supporter yet, and one of the seeker."""
    first = TURNS[:1]
    scores = of_group(["甲", "乙", "丙"], REWARDS, FIVES, first, history="supporter")
    assert [one["score"] for one in scores] == pytest.approx([4.347826086957, 2.222222222222, -4.166666666667])
    assert [one["s_hi"] for one in scores] == [0, 0, 0]
    assert [one["s_hi"] for one in of_group(["甲", "乙", "丙"], REWARDS, FIVES, first)] == pytest.approx(
        [0.8, 0.96, 0.6]
    )
    assert reweight(REWARDS, ["甲", "乙", "丙"], [], encode=encoded, length=lambda _: 5) == pytest.approx(
        [4.347826086957, 2.222222222222, -4.166666666667]
    )


def encoded(texts: Any) -> Any:
    return np.array([VECTORS[text] for text in texts])


def test_without_an_encoder_pairs_of_characters_are_counted():
    """我在·在听 and 我在·在听·听您·您说 share two pairs: 2 / (√2 · √4) = .707106781187. L = (3 + 5) / 2 = 4, so
    τ = 1 / (1 + e^.5) = .377540668798, and 4 / (1 + .377540668798 · .707106781187) = 3.157159699182.
    """
    assert math.isclose(math.sqrt(0.5), 0.707106781187, abs_tol=1e-12)
    assert reweight([4.0, 4.0], ["我在听", "我在听您说"], []) == pytest.approx([3.157159699182] * 2, abs=1e-11)
    results = [{"r": 4.0, "score": 4.0, "judge_ok": 1.0, "length": n} for n in (3.0, 5.0)]
    outputs = ["<answer>我在听</answer>", "<answer>我在听您说</answer>"]
    scores = asyncio.run(compeer.group_scores(outputs, results, extra_info=info([("seeker", "睡不好。")])))
    assert [one["score"] for one in scores] == pytest.approx([3.157159699182] * 2, abs=1e-11)  # it shares no pair
