"""What a curve of training should not do, and what to do about it: pure functions over rollouts and metrics.

Every threshold is ours. A figure of a step is judged by its mean over some steps, so that one odd step raises nothing;
an alarm tells the first of the steps since which it holds without a break. A figure that is no finite number is told of
apart, also where it has passed, and is no part of a mean: it would hide all that is compared with it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from pipelines.core.overlap import hashes, points
from pipelines.train.runs import Metrics

Curve = dict[int, float]  # a figure by step

_SHINGLE = 5  # characters
_BASE = 1_000_003
# What has to be a number at every step, by the trainers' names.
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
_TAGS = r"(?s)<answer>(.*?)</answer>"


@dataclass(frozen=True)
class Limits:
    """When something is told of. All ours.

    `window` steps are taken together, at most a quarter of the run. Shares are of outputs or groups. `shorter`,
    `longer`, `collapsed` and `rising` are the figure of now against that of the beginning.
    """

    window: int = 10
    repeats: float = 0.5  # an output of whose shingles so many stand in what it answers repeats that
    echo: float = 0.1
    shorter: float = 0.5
    longer: float = 2.0
    collapsed: float = 0.2
    rising: float = 1.5
    redundancy: float = 0.5
    judge: float = 0.02  # the judge itself stops the run at [rewards] failures
    strict: float = 0.1  # by how much it falls while the form is paid no less
    equal: float = 0.5


class Alarm(NamedTuple):
    """Something to look at. `name` is its kind, `figures` what it rests on."""

    name: str
    since: int
    what: str
    figures: dict[str, float]
    hint: str


def alarms(rollouts: pl.DataFrame, metrics: Mapping[int, Metrics], limits: Limits | None = None) -> list[Alarm]:
    """What stands at the end of the curves, the longest standing first.

    Args:
        rollouts: Rows of the table; without some, what rests on them is not looked at.
        metrics: verl's, by step.
        limits: Other thresholds.
    """
    told = limits or Limits()
    found = [*_of_metrics(metrics, told), *(_of_rollouts(rollouts, told) if rollouts.height else ())]
    return sorted(found, key=lambda alarm: (alarm.since, alarm.name))


def terms(rollouts: pl.DataFrame) -> dict[str, Curve]:
    """The mean of every term of the reward, by step."""
    named = rollouts.select("step", "rewards").explode("rewards", empty_as_null=False).unnest("rewards")
    means = named.group_by("name", "step").agg(pl.col("value").mean()).sort("name", "step")
    found: dict[str, Curve] = {}
    for name, step, value in means.iter_rows():
        found.setdefault(name, {})[step] = value
    return found


def curve(metrics: Mapping[int, Metrics], name: str) -> Curve:
    """A metric by step, where there is one."""
    return {step: told[name] for step, told in sorted(metrics.items()) if name in told}


def _of_metrics(metrics: Mapping[int, Metrics], limits: Limits) -> Iterator[Alarm]:
    yield from _not_finite(metrics)
    length = curve(metrics, "response_length/mean")
    yield from _against_the_first(
        length,
        limits,
        ("length", limits.shorter, limits.longer),
        "the outputs are {ratio:.2f} times as long as at the beginning",
        "read some of them: a reward may pay for length, or for leaving things out; a KL term, or a shorter limit of "
        "the response, holds it",
    )
    yield from _against_the_first(
        curve(metrics, "actor/entropy"),
        limits,
        ("entropy", limits.collapsed, limits.rising),
        "the entropy is {ratio:.2f} times that of the beginning",
        "collapsed: all outputs become one, and advantages vanish; a lower learning rate, a higher temperature or a KL "
        "term. Rising: the policy dissolves; a lower learning rate",
    )


def _not_finite(metrics: Mapping[int, Metrics]) -> Iterator[Alarm]:
    steps = {
        name: [step for step, value in curve(metrics, name).items() if not math.isfinite(value)] for name in _WATCHED
    }
    bad = {name: found for name, found in steps.items() if found}
    if bad:
        told = " and ".join(f"{_WATCHED[name]} in {len(found):,}" for name, found in bad.items())
        yield Alarm(
            "not_finite",
            min(found[0] for found in bad.values()),
            f"of {len(metrics):,} steps {told} is NaN or infinite",
            {name: float(len(found)) for name, found in bad.items()},
            "weights that took such a step are lost: go back to a checkpoint before it; a lower learning rate, or "
            "bfloat16 in the place of float16",
        )


def _of_rollouts(rollouts: pl.DataFrame, limits: Limits) -> Iterator[Alarm]:
    means = terms(rollouts)
    yield from _above(
        echoes(rollouts, limits.repeats),
        limits,
        ("echo", limits.echo),
        "{now:.0%} of the outputs repeat what they answer",
        "read them; the answer reward should not pay for it: look at the judge's prompt, or at E's threshold",
    )
    yield from _above(
        of_groups(rollouts, equal),
        limits,
        ("equal_groups", limits.equal),
        "{now:.0%} of the groups have one reward for all their outputs: they teach nothing",
        "more outputs a prompt, a higher temperature, or other prompts; near the highest reward: the run is over; near "
        "the lowest: nothing is met that could be paid for, so a longer warm start",
    )
    if "redundancy_alone" in means:
        yield from _above(
            of_groups(rollouts, by_redundancy),
            limits,
            ("redundancy", limits.redundancy),
            "{now:.0%} of the groups are told apart by redundancy alone",
            "the rewards themselves say nothing more: look at the judge, or train without reweighting (arm ur)",
        )
    if "judge_ok" in means:
        yield from _above(
            {step: 1 - value for step, value in means["judge_ok"].items()},
            limits,
            ("judge", limits.judge),
            "{now:.0%} of the outputs have no verdict of the judge",
            "gongqing ledger, and the judge's log in the folder of the run; without a judge on purpose, leave it",
        )
    if "strict" in means and "r_format" in means:
        yield from _paid_for_nothing(means["strict"], means["r_format"], limits)


def _paid_for_nothing(strict: Curve, form: Curve, limits: Limits) -> Iterator[Alarm]:
    """M's format reward pays for empty sections: the strict share falls, and the reward does not."""
    well, paid = smooth(strict, limits), smooth(form, limits)
    steps = [step for step in well if step in paid]
    if len(steps) < 2:
        return
    first = steps[0]
    bad = {step: well[first] - well[step] > limits.strict and paid[step] >= paid[first] for step in steps}
    last = steps[-1]
    if bad[last]:
        yield Alarm(
            "strict",
            _since(bad),
            f"the format reward rises to {paid[last]:.2f}, and the share of outputs in good form falls to "
            f"{well[last]:.0%}",
            {"strict_first": well[first], "strict": well[last], "format_first": paid[first], "format": paid[last]},
            "it pays for empty or misplaced sections: stop at the checkpoint before, or train on the answer's reward",
        )


def _above(found: Curve, limits: Limits, kind: tuple[str, float], what: str, hint: str) -> Iterator[Alarm]:
    name, most = kind
    smoothed = smooth(found, limits)
    if smoothed and (now := smoothed[max(smoothed)]) > most:
        since = _since({step: value > most for step, value in smoothed.items()})
        yield Alarm(name, since, what.format(now=now), {"share": now, "limit": most}, hint)


def _against_the_first(
    found: Curve, limits: Limits, kind: tuple[str, float, float], what: str, hint: str
) -> Iterator[Alarm]:
    name, least, most = kind
    smoothed = smooth(found, limits)
    first = next(iter(smoothed.values()), 0.0)
    if first <= 0:
        return
    ratios = {step: value / first for step, value in smoothed.items()}
    sides = {
        f"{name}_falls": {step: ratio < least for step, ratio in ratios.items()},
        f"{name}_rises": {step: ratio > most for step, ratio in ratios.items()},
    }
    last = max(ratios)
    for side, bad in sides.items():
        if bad[last]:
            figures = {"first": first, "now": smoothed[last], "ratio": ratios[last]}
            yield Alarm(side, _since(bad), what.format(ratio=ratios[last]), figures, hint)


def smooth(found: Curve, limits: Limits) -> Curve:
    """The mean of each step and the steps before it, from the first on that has enough of them; of finite figures."""
    steps = sorted(step for step, value in found.items() if math.isfinite(value))
    width = min(limits.window, max(1, len(steps) // 4))
    values = np.array([found[step] for step in steps])
    return {steps[place]: float(values[place - width + 1 : place + 1].mean()) for place in range(width - 1, len(steps))}


def _since(bad: Mapping[int, bool]) -> int:
    """The first step of the last unbroken run of bad ones, of which the last step is one."""
    steps = sorted(bad)
    return next((after for step, after in zip(steps[-2::-1], steps[:0:-1], strict=True) if not bad[step]), steps[0])


def of_groups(rollouts: pl.DataFrame, holds: Callable[[pl.Expr], pl.Expr]) -> Curve:
    """The share of a step's groups of two outputs and more of which something holds; where it is null, nobody can tell
    of a group, and it is none.
    """
    groups = (
        rollouts.group_by("step", "uid")
        .agg(holds(pl.col("rewards")).alias("holds"), pl.len().alias("outputs"))
        .filter(pl.col("outputs") > 1, pl.col("holds").is_not_null())
    )
    shares = groups.group_by("step").agg(pl.col("holds").mean()).sort("step")
    return dict(shares.iter_rows())


def equal(rewards: pl.Expr) -> pl.Expr:
    """All outputs of a group have the same reward; null where fewer than two of them have one that is a number."""
    score = _value(rewards, "score")
    return pl.when(score.count() > 1).then(score.max() - score.min() <= 1e-9)


def by_redundancy(rewards: pl.Expr) -> pl.Expr:
    """A group is told apart by redundancy alone."""
    return (_value(rewards, "redundancy_alone") > 0).any()


def _value(rewards: pl.Expr, name: str) -> pl.Expr:
    element = pl.element().struct
    return rewards.list.eval(pl.element().filter(element.field("name") == name).struct.field("value")).list.first()


def echoes(rollouts: pl.DataFrame, repeats: float) -> Curve:
    """The share of a step's outputs that repeat what they answer: as much of their shingles stands in the prompt.

    What many prompts share is ours, the system prompt, and no echo; of an output with an answer that alone is looked
    at. With a single prompt nobody can tell its parts apart: then there is no figure. E's guard
    (`rewards.contrastive.echoed`) is handed the question itself, and one at a time; here thousands of prompts are.
    """
    asked = rollouts["prompt"].unique(maintain_order=True).to_list()
    if len(asked) < 2:
        return {}
    said = dict(zip(asked, own_shingles([shingles_of(text) for text in asked]), strict=True))
    found: dict[int, list[bool]] = {}
    answers = rollouts.select(
        "step", "prompt", pl.col("output").str.extract(_TAGS).fill_null(pl.col("output")).alias("answer")
    )
    for step, prompt, answer in answers.iter_rows():
        shingles = shingles_of(answer)
        share = np.isin(shingles, said[prompt]).mean() if len(shingles) else 0.0
        found.setdefault(step, []).append(bool(share >= repeats))
    return {step: sum(marks) / len(marks) for step, marks in sorted(found.items())}


def own_shingles(asked: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of the shingles of each prompt those that few prompts have: one, or fewer than a tenth."""
    _, places, counts = np.unique(np.concatenate(asked), return_inverse=True, return_counts=True)
    few = counts[places] < max(2, len(asked) / 10)
    ends = np.cumsum([len(shingles) for shingles in asked])
    return [shingles[own] for shingles, own in zip(asked, np.split(few, ends[:-1]), strict=True)]


def shingles_of(text: str) -> np.ndarray:
    """The shingles of a text as numbers, each once; white space is none of it."""
    return np.unique(hashes(points("".join(text.split())), _SHINGLE, _BASE))
