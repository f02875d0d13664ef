"""The page of a run: one file that asks no network, with its curves, alarms, what it was made of, and some outputs.

What a policy wrote is hostile: it is escaped, and the page's own policy lets no script run, whatever it may say.
"""

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipelines.core.files import write_whole
from pipelines.core.plotting import png
from pipelines.train.alarms import Alarm, Curve, curve, terms
from pipelines.train.differences import of_run
from pipelines.train.recipe import recipe
from pipelines.train.runs import MODEL, PAGE, Metrics, metrics, note, told_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TEMPLATE = Path(__file__).with_name("report.html.j2")
_SAMPLED_STEPS = 5
# Curves by verl's names; `perf` and the like stand in the files of the run.
_METRICS = {
    "reward": ("critic/score/mean",),
    "loss": ("train/loss", "val/loss"),
    "KL to the reference": ("actor/kl_loss",),
    "KL to the policy before": ("actor/ppo_kl",),
    "length of outputs, tokens": ("response_length/mean",),
    "entropy": ("actor/entropy",),
    "norm of the gradient": ("actor/grad_norm", "train/grad_norm"),
}
_BESIDE = ("score", "judge_ok")  # terms with a curve of their own: score is verl's reward


class Curves(NamedTuple):
    """Curves that are drawn on one pair of axes, by name."""

    title: str
    curves: Mapping[str, Curve]


def write(run: Path, rollouts: pl.DataFrame, found: list[Alarm]) -> Path:
    """Write the page of a run into its folder; where it is.

    Args:
        run: The folder of the run.
        rollouts: Its rows of the table; none where it made none.
        found: Its alarms.
    """
    page = run / PAGE
    write_whole(page, _rendered(run, rollouts, found).encode())
    return page


def drawn(told: Curves) -> bytes:
    """Curves as a PNG."""
    file, _ = png(partial(draw, told=told), (6.4, 2.8), dpi=80)
    return file


def all_curves(told: Mapping[int, Metrics], means: Mapping[str, Curve]) -> Iterator[Curves]:
    """What is drawn of a run, where there are figures for it: of its metrics, and of the terms of its reward."""
    for title, names in _METRICS.items():
        found = {name: values for name in names if (values := curve(told, name))}
        if found:
            yield Curves(title, found)
        if title == "reward" and (parts := {name: means[name] for name in means if name not in _BESIDE}):
            yield Curves("terms of the reward", parts)
    if "judge_ok" in means:
        yield Curves("share of outputs with the judge's verdict", {"judge_ok": means["judge_ok"]})


def _rendered(run: Path, rollouts: pl.DataFrame, found: list[Alarm]) -> str:
    from jinja2 import Environment, StrictUndefined

    told = metrics(run)
    asked = note(run)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    names = [name for names in _METRICS.values() for name in names if curve(told, name)]
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=run.name,
        ended=(run / MODEL).is_dir(),
        steps=max(told, default=0),
        alarms=found,
        made_of=_made_of(asked),
        rows=told_of_rows(run),
        differences=of_run(run),
        curves=[(one.title, base64.b64encode(drawn(one)).decode()) for one in all_curves(told, terms(rollouts))],
        samples=list(_samples(rollouts)),
        names=names,
        figures=[(step, [told[step].get(name) for name in names]) for step in sorted(told)],
    )


def _made_of(asked: Mapping[str, Any]) -> dict[str, str]:
    release = asked["release"]
    judge = asked.get("judge")
    return {
        "recipe": f"{asked['recipe']} ({recipe(asked['recipe']).about})",
        "arm": asked.get("arm") or "the paper's own set-up",
        "preset": asked["preset"],
        "release": f"{release['name']}, content {release['content']}",
        "judge": ", ".join(f"{name} {value}" for name, value in judge.items()) if judge else "none",
        "encoder": asked.get("encoder") or "none",
        "rows": f"{asked['most_rows']:,} at most" if asked.get("most_rows") else "all",
    }


def _samples(rollouts: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Of some steps, from the first to the last, the outputs of the highest and of the lowest reward."""
    steps = rollouts["step"].unique().sort().to_list()
    places = {round(place * (len(steps) - 1) / (_SAMPLED_STEPS - 1)) for place in range(_SAMPLED_STEPS)}
    for step in (steps[place] for place in sorted(places) if steps):
        rows = sorted(rollouts.filter(step=step).to_dicts(), key=lambda row: (-_score(row), row["output_index"]))
        yield from rows[:1] + rows[1:][-1:]


def _score(row: Mapping[str, Any]) -> float:
    return float(next((term["value"] for term in row["rewards"] if term["name"] == "score"), 0.0))


def draw(axes: "Axes", told: Curves) -> None:
    """Draw curves, one a name."""
    for name, values in told.curves.items():
        axes.plot(list(values), list(values.values()), label=name, marker="." if len(values) < 30 else "")
    axes.set(title=told.title, xlabel="step")
    axes.locator_params(axis="x", integer=True)
    if len(told.curves) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
