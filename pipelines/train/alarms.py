"""What a curve of training should not do, and what to do about it: pure functions over rollouts and metrics.

Every threshold is ours. Figures are judged by their means over some steps; an alarm names the first step since which it
holds without a break. One that is not finite is reported separately, and is no part of a mean.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from pipelines.core.overlap import hashes, points
from pipelines.train.runs import Metrics

Curve = dict[int, float]  # a figure by step

_SHINGLE = 5  # characters
_BASE = 1_000_003
WINDOW = 10  # steps that are taken together, at most a quarter of the run
REPEATS = 0.5  # the share of shingles of an output that stand in its prompt, from which on it repeats that
STRICT = 0.1  # by how much the strict share falls while the form is paid no less
# What has to be finite at every step, by the trainers' names.
_WATCHED = {
    "critic/score/mean": "the reward",
    "train/loss": "the loss",
    "val/loss": "the loss of the validation",
    "actor/kl_loss": "KL to the reference",
    "actor/ppo_kl": "KL to the policy before",
    "actor/entropy": "the entropy",
    "actor/grad_norm": "the norm of the gradient",
    "train/grad_norm": "the norm of the gradient",
}
# What is compared with its beginning: metric, the least and the most of the ratio, message, hint.
DRIFTS = {
    "length": (
        "response_length/mean",
        (0.5, 2.0),
        "the outputs are {ratio:.2f} times as long as at the beginning",
        "read some of them: a reward may pay for length, or for leaving things out; a KL term, or a shorter limit of "
        "the response, holds it",
    ),
    "entropy": (
        "actor/entropy",
        (0.2, 1.5),
        "the entropy is {ratio:.2f} times that of the beginning",
        "collapsed: all outputs become one, and advantages vanish; a lower learning rate, a higher temperature or a KL "
        "term. Rising: the policy dissolves; a lower learning rate",
    ),
}
# Shares of outputs or groups: the most, message, hint.
_SHARES = {
    "echo": (
        0.1,
        "{now:.0%} of the outputs repeat what they answer",
        "read them; the answer reward should not pay for it: look at the judge's prompt, or at E's threshold",
    ),
    "equal_groups": (
        0.5,
        "{now:.0%} of the groups have one reward for all their outputs: they teach nothing",
        "more outputs a prompt, a higher temperature, or other prompts; near the highest reward: the run is over; near "
        "the lowest: nothing is met that could be paid for, so a longer warm start",
    ),
    "redundancy": (
        0.5,
        "{now:.0%} of the groups are told apart by redundancy alone",
        "the rewards themselves do not differ: look at the judge, or train without reweighting (ablation ur)",
    ),
    "judge": (
        0.02,  # the judge itself stops the run at [rewards] failures
        "{now:.0%} of the outputs have no verdict of the judge",
        "gongqing ledger, and the judge's log in the folder of the run; without a judge on purpose, leave it",
    ),
}
_ANSWER = r"(?s)<answer>(.*?)</answer>"


class Alarm(NamedTuple):
    """Something to look at. `name` is its kind, `figures` what it rests on."""

    name: str
    since: int
    what: str
    figures: dict[str, float]
    hint: str


def find_alarms(rollouts: pl.DataFrame, metrics: Mapping[int, Metrics]) -> list[Alarm]:
    """What stands at the end of the curves, the longest standing first; without rollouts, what rests on them is not
    looked at.
    """
    alarms = [*_not_finite(metrics)]
    for name, (metric, _, _, _) in DRIFTS.items():
        alarms += _drift(name, curve_of(metrics, metric))
    if rollouts.height:
        means = mean_terms(rollouts)
        for name, curve in _shares(rollouts, means).items():
            alarms += _too_high(name, curve)
        for paid in ("r_format", "format"):  # M's, and C's
            if "strict" in means and paid in means:
                alarms += _paid_for_nothing(means["strict"], means[paid])
    return sorted(alarms, key=lambda alarm: (alarm.since, alarm.name))


def mean_terms(rollouts: pl.DataFrame) -> dict[str, Curve]:
    """The mean of every term of the reward, by step."""
    named = rollouts.select("step", "rewards").explode("rewards", empty_as_null=False).unnest("rewards")
    means = named.group_by("name", "step").agg(pl.col("value").mean()).sort("name", "step")
    curves: dict[str, Curve] = {}
    for name, step, value in means.iter_rows():
        curves.setdefault(name, {})[step] = value
    return curves


def curve_of(metrics: Mapping[int, Metrics], name: str) -> Curve:
    """A metric by step, where a step has it."""
    return {step: figures[name] for step, figures in sorted(metrics.items()) if name in figures}


def smooth(curve: Curve) -> Curve:
    """The mean of each step and the steps before it, from the first on that has enough of them; of finite figures."""
    steps = sorted(step for step, value in curve.items() if math.isfinite(value))
    width = min(WINDOW, max(1, len(steps) // 4))
    values = np.array([curve[step] for step in steps])
    return {steps[place]: float(values[place - width + 1 : place + 1].mean()) for place in range(width - 1, len(steps))}


def _not_finite(metrics: Mapping[int, Metrics]) -> Iterator[Alarm]:
    bad = {
        name: [step for step, value in curve_of(metrics, name).items() if not math.isfinite(value)] for name in _WATCHED
    }
    bad = {name: steps for name, steps in bad.items() if steps}
    if bad:
        where = " and ".join(f"{_WATCHED[name]} in {len(steps):,}" for name, steps in bad.items())
        yield Alarm(
            "not_finite",
            min(steps[0] for steps in bad.values()),
            f"of {len(metrics):,} steps {where} is NaN or infinite",
            {name: float(len(steps)) for name, steps in bad.items()},
            "weights that took such a step are lost: go back to a checkpoint before it; a lower learning rate, or "
            "bfloat16 in the place of float16",
        )


def _drift(name: str, curve: Curve) -> Iterator[Alarm]:
    _, (least, most), what, hint = DRIFTS[name]
    smoothed = smooth(curve)
    first = next(iter(smoothed.values()), 0.0)
    if first <= 0:
        return
    ratios = {step: value / first for step, value in smoothed.items()}
    last = max(ratios)
    for side, bad in (
        ("falls", {step: ratio < least for step, ratio in ratios.items()}),
        ("rises", {step: ratio > most for step, ratio in ratios.items()}),
    ):
        if bad[last]:
            figures = {"first": first, "now": smoothed[last], "ratio": ratios[last]}
            yield Alarm(f"{name}_{side}", _since(bad), what.format(ratio=ratios[last]), figures, hint)


def _shares(rollouts: pl.DataFrame, means: Mapping[str, Curve]) -> dict[str, Curve]:
    shares = {"echo": echo_shares(rollouts), "equal_groups": group_shares(rollouts, has_equal_rewards)}
    if "redundancy_alone" in means:
        shares["redundancy"] = group_shares(rollouts, differs_by_redundancy)
    if "judge_ok" in means:
        shares["judge"] = {step: 1 - value for step, value in means["judge_ok"].items()}
    return shares


def _too_high(name: str, curve: Curve) -> Iterator[Alarm]:
    most, what, hint = _SHARES[name]
    smoothed = smooth(curve)
    if smoothed and (now := smoothed[max(smoothed)]) > most:
        since = _since({step: value > most for step, value in smoothed.items()})
        yield Alarm(name, since, what.format(now=now), {"share": now, "limit": most}, hint)


def _paid_for_nothing(strict: Curve, form: Curve) -> Iterator[Alarm]:
    """M's format reward pays for empty sections, C's for labels that there are not: the strict share falls, and the
    reward does not.
    """
    well, paid = smooth(strict), smooth(form)
    steps = [step for step in well if step in paid]
    if not steps:
        return
    first, last = steps[0], steps[-1]
    bad = {step: well[first] - well[step] > STRICT and paid[step] >= paid[first] for step in steps}
    if bad[last]:
        yield Alarm(
            "strict",
            _since(bad),
            f"the format reward rises to {paid[last]:.2f}, and the share of outputs in good form falls to "
            f"{well[last]:.0%}",
            {"strict_first": well[first], "strict": well[last], "format_first": paid[first], "format": paid[last]},
            "it pays for empty or misplaced sections, C's for labels that there are not: stop at a checkpoint before, "
            "or train on the answer's reward (M), or with format=strict (C)",
        )


def _since(bad: Mapping[int, bool]) -> int:
    """The first step of the last unbroken run of bad ones, of which the last step is one."""
    steps = sorted(bad)
    return next((after for step, after in zip(steps[-2::-1], steps[:0:-1], strict=True) if not bad[step]), steps[0])


def group_shares(rollouts: pl.DataFrame, holds: Callable[[pl.Expr], pl.Expr]) -> Curve:
    """The share of a step's groups of two outputs and more of which something holds; groups of which it is null are
    left out.
    """
    groups = (
        rollouts.group_by("step", "uid")
        .agg(holds(pl.col("rewards")).alias("holds"), pl.len().alias("outputs"))
        .filter(pl.col("outputs") > 1, pl.col("holds").is_not_null())
    )
    return dict(groups.group_by("step").agg(pl.col("holds").mean()).sort("step").iter_rows())


def has_equal_rewards(rewards: pl.Expr) -> pl.Expr:
    """All outputs of a group have the same reward; null where fewer than two of them have one that is a number."""
    score = _value(rewards, "score")
    return pl.when(score.count() > 1).then(score.max() - score.min() <= 1e-9)


def differs_by_redundancy(rewards: pl.Expr) -> pl.Expr:
    """The rewards of a group differ by redundancy alone."""
    return (_value(rewards, "redundancy_alone") > 0).any()


def _value(rewards: pl.Expr, name: str) -> pl.Expr:
    element = pl.element().struct
    return rewards.list.eval(pl.element().filter(element.field("name") == name).struct.field("value")).list.first()


def echo_shares(rollouts: pl.DataFrame) -> Curve:
    """The share of a step's outputs that repeat what they answer: as much of their shingles stands in the prompt.

    What many prompts share is ours, the system prompt, and no echo; of an output with an answer that alone is looked
    at. With a single prompt its parts cannot be told apart: then there is no figure. E's guard
    (`rewards.contrastive.echoed`) gets the question itself, and one at a time; here are thousands of prompts.
    """
    prompts = rollouts["prompt"].unique(maintain_order=True).to_list()
    if len(prompts) < 2:
        return {}
    own = dict(zip(prompts, own_shingles([shingles_of(text) for text in prompts]), strict=True))
    answers = rollouts.select("step", "prompt", pl.col("output").str.extract(_ANSWER).fill_null(pl.col("output")))
    echoes: dict[int, list[bool]] = {}
    for step, prompt, answer in answers.iter_rows():
        shingles = shingles_of(answer)
        share = np.isin(shingles, own[prompt]).mean() if len(shingles) else 0.0
        echoes.setdefault(step, []).append(bool(share >= REPEATS))
    return {step: sum(marks) / len(marks) for step, marks in sorted(echoes.items())}


def own_shingles(prompts: list[np.ndarray]) -> list[np.ndarray]:
    """Of the shingles of each prompt those that few prompts have: one, or fewer than a tenth."""
    _, places, counts = np.unique(np.concatenate(prompts), return_inverse=True, return_counts=True)
    few = counts[places] < max(2, len(prompts) / 10)
    ends = np.cumsum([len(shingles) for shingles in prompts])
    return [shingles[own] for shingles, own in zip(prompts, np.split(few, ends[:-1]), strict=True)]


def shingles_of(text: str) -> np.ndarray:
    """The shingles of a text as numbers, each once; without white space."""
    return np.unique(hashes(points("".join(text.split())), _SHINGLE, _BASE))
