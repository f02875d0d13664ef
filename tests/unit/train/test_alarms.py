"""Alarms of a run, on curves made up for them: each is raised by what it is named after, and by nothing else."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_lines import row, table

from pipelines.train.alarms import (
    DRIFTS,
    Alarm,
    echo_shares,
    find_alarms,
    group_shares,
    has_equal_rewards,
    own_shingles,
    shingles_of,
    smooth,
)

STEPS = range(1, 41)
NOTHING = table([])
POSTS = [
    "我和最好的朋友吵了一架，已经三个星期没有说话，路上遇见也装作没看见。",
    "妈妈住院之后我每天下班都去医院，回到家已经十一点，躺下却一直睡不着。",
    "新来的主管总是当着大家的面挑我的错，我现在一听到他的脚步声就发抖。",
]
SYSTEM = "请用温和的语气回应来信的人，先接住情绪，再谈看法，不要说教。\n"


def alarms_of(rollouts: pl.DataFrame = NOTHING, **curves: list[float]) -> dict[str, Alarm]:
    """The alarms of a run, by name."""
    names = {"length": "response_length/mean", "entropy": "actor/entropy"}
    metrics = {
        step: {names[name]: values[place] for name, values in curves.items()} for place, step in enumerate(STEPS)
    }
    return {one.name: one for one in find_alarms(rollouts, metrics)}


def turning(before: float, after: float, at: int = 21) -> list[float]:
    return [before if step < at else after for step in STEPS]


def of_terms(**curves: list[float]) -> pl.DataFrame:
    """Four groups a step, two outputs each, of different rewards, with these terms."""
    return table(
        row(step, 2 * group + output, f"{step}-{group}", score=output, **{name: v[i] for name, v in curves.items()})
        for i, step in enumerate(STEPS)
        for group, output in product(range(4), range(2))
    )


def test_a_steady_run_raises_nothing():
    steady = of_terms(judge_ok=[1.0] * 40, strict=[0.5] * 40, r_format=[0.6] * 40, redundancy_alone=[0.0] * 40)
    assert alarms_of(steady, length=[100.0] * 40, entropy=[0.9] * 40) == {}


def test_drift_names_the_step_since_which_it_holds():
    for curve, before, after, name in (
        ("length", 100.0, 300.0, "length_rises"), ("length", 100.0, 20.0, "length_falls"),
        ("entropy", 1.0, 0.05, "entropy_falls"), ("entropy", 1.0, 2.0, "entropy_rises"),
    ):  # fmt: skip
        [alarm] = alarms_of(**{curve: turning(before, after)}).values()
        assert (alarm.name, bool(alarm.hint)) == (name, True)
        assert 21 <= alarm.since <= 30, "within a window of the turn"
        assert (alarm.figures["first"], alarm.figures["now"]) == (before, pytest.approx(after))


def test_terms_of_the_reward_raise_theirs():
    for term, name, share in (("judge_ok", "judge", 0.1), ("redundancy_alone", "redundancy", 1.0)):
        before = 1.0 if name == "judge" else 0.0
        [alarm] = alarms_of(of_terms(**{term: turning(before, abs(before - share))})).values()
        assert (alarm.name, alarm.figures["share"]) == (name, pytest.approx(share))


def test_a_format_reward_that_pays_for_empty_sections_raises_an_alarm():
    strict, paid = turning(0.8, 0.3), turning(0.7, 0.95)
    [alarm] = alarms_of(of_terms(strict=strict, r_format=paid)).values()
    assert alarm.name == "strict"
    assert (alarm.figures["strict_first"], alarm.figures["strict"]) == (pytest.approx(0.8), pytest.approx(0.3))
    [alarm] = alarms_of(of_terms(strict=strict, format=turning(0.0, 0.9))).values()  # C's, from −1 to 1
    assert (alarm.name, alarm.figures["format"]) == ("strict", pytest.approx(0.9))
    falls_too = of_terms(strict=strict, r_format=turning(0.7, 0.4))
    assert alarms_of(falls_too) == {}, "it pays for nothing"


def test_groups_of_equal_reward_teach_nothing():
    rows = [row(step, 2 * group + output, f"{step}-{group}", score=output * (step < 21 or group == 0))
            for step, group, output in product(STEPS, range(4), range(2))]  # fmt: skip
    [alarm] = alarms_of(table(rows)).values()
    assert (alarm.name, alarm.figures["share"]) == ("equal_groups", pytest.approx(0.75))


def test_a_group_without_two_rewards_to_hold_against_each_other_is_no_group():
    """A reward that is no number is left out of the table (`rollouts`): such a group is neither equal nor not."""
    rows = [row(step, 4 * group + output, f"{step}-{group}", **({} if group + output > 3 else {"score": output}))
            for step, group, output in product(STEPS, range(8), range(2))]  # fmt: skip
    assert alarms_of(table(rows)) == {}
    assert group_shares(table(rows), has_equal_rewards) == dict.fromkeys(STEPS, 0.0)
    assert alarms_of(table(row(step, 0, f"{step}", score=1.0) for step in STEPS)) == {}, "nor is one output"
    nothing = table(row(step, output, f"{step}") for step, output in product(STEPS, range(2)))
    assert group_shares(nothing, has_equal_rewards) == {}
    assert alarms_of(nothing) == {}


COMFORT = "听起来您这阵子很不容易，愿意多说一点吗？"


def echoing(share: int) -> pl.DataFrame:
    """Of four outputs a step `share` repeat their post."""
    return table(
        row(step, place, f"{step}-{place}",
            output=f"<answer>{POSTS[place % 3][:25]}</answer>" if place < share else COMFORT,
            prompt=SYSTEM + POSTS[place % 3], score=float(place))
        for step, place in product(STEPS, range(4))
    )  # fmt: skip


def test_outputs_that_repeat_the_post_are_an_echo():
    [alarm] = alarms_of(echoing(1)).values()
    assert (alarm.name, alarm.since, alarm.figures["share"]) == ("echo", 10, pytest.approx(0.25))
    assert alarms_of(echoing(0)) == {}


def test_reasoning_and_words_of_the_system_prompt_are_no_echo():
    said = f"<thinking>{POSTS[0]}</thinking><answer>{{}}</answer>"
    rows = [row(1, 0, prompt=POSTS[0], output=said.format("先坐下来，喝一口水，我们慢慢说。")),
            row(2, 0, prompt=POSTS[0], output=said.format(POSTS[0])),
            row(2, 1, prompt=POSTS[1], output="嗯。"),
            *(row(3, place, str(place), SYSTEM, f"{SYSTEM}第{place}封信") for place in range(3))]  # fmt: skip
    assert echo_shares(table(rows)) == {1: 0.0, 2: 0.5, 3: 0.0}


def test_a_figure_that_is_not_finite_raises_an_alarm_also_where_it_has_passed():
    for name, broken in product(("critic/score/mean", "actor/grad_norm", "train/loss"), (float("nan"), float("inf"))):
        [alarm] = find_alarms(NOTHING, {step: {name: broken if step in (7, 8) else 1.0} for step in STEPS})
        assert (alarm.name, alarm.since, alarm.figures) == ("not_finite", 7, {name: 2.0})


def test_a_figure_that_is_not_finite_hides_no_other_alarm():
    lengths = turning(100.0, 300.0)
    lengths[0] = lengths[-1] = float("nan")
    entropy = [*[1.0] * 39, float("nan")]
    assert alarms_of(length=lengths, entropy=entropy).keys() == {"length_rises", "not_finite"}


_PROMPTS = st.lists(st.text("甲乙丙 ", max_size=12), min_size=2, max_size=40, unique=True)


@given(prompts=_PROMPTS)
def test_a_shingle_is_a_prompts_own_where_one_has_it_or_fewer_than_a_tenth(prompts: list[str]):
    asked = [shingles_of(text) for text in prompts]
    for shingles, own in zip(asked, own_shingles(asked), strict=True):
        having = {shingle: sum(shingle in other for other in asked) for shingle in shingles}
        expected = [shingle for shingle in shingles if having[shingle] == 1 or having[shingle] < len(asked) / 10]
        assert np.array_equal(own, expected)


_CURVES = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=60)


@given(values=_CURVES)
def test_an_alarm_holds_at_every_step_since_it_began_and_not_at_the_one_before(values: list[float]):
    metrics = {step: {"actor/entropy": value} for step, value in enumerate(values)}
    smoothed = smooth({step: figures["actor/entropy"] for step, figures in metrics.items()})
    first = next(iter(smoothed.values()))
    bad = {
        "entropy_falls": lambda value: value / first < DRIFTS["entropy"][1][0],
        "entropy_rises": lambda value: value / first > DRIFTS["entropy"][1][1],
    }
    raised = {one.name: one.since for one in find_alarms(NOTHING, metrics)}
    assert raised.keys() == {name for name, holds in bad.items() if holds(smoothed[max(smoothed)])}
    for name, since in raised.items():
        assert all(bad[name](value) for step, value in smoothed.items() if step >= since)
        assert since - 1 not in smoothed or not bad[name](smoothed[since - 1])
