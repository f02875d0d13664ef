"""What a run leaves beside its model, also where it failed: its rollouts as a table, alarms, and its page.

The page is one file that needs no network, with curves, alarms, what the run was made of, and some outputs. What a
policy wrote is hostile: it is escaped, and the page's own policy lets no script run, whatever it contains.
"""

import base64
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipelines.core.files import write_whole
from pipelines.core.page import render_page
from pipelines.core.plotting import png
from pipelines.store.store import Store, Version
from pipelines.train.alarms import Alarm, Curve, curve_of, find_alarms, mean_terms
from pipelines.train.processes import no_erasure
from pipelines.train.recipe import Recipe, load_recipe
from pipelines.train.rollouts import TABLE, write_rollouts
from pipelines.train.runs import MODEL, PAGE, Metrics, describe_rows, read_metrics, read_note
from pipelines.train.trainers import TRAINERS, describe_course, run_differences
from schemas.training import Rollouts

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
_OF_ENCODER = "validation/"
_BESIDE = ("score", "judge_ok")  # terms with a separate curve: score is verl's reward


class Outcome(NamedTuple):
    """The rollouts of a run (None where it made none), the mean of every term of the reward by step, its alarms, and
    where its page lies.
    """

    rollouts: Version | None
    terms: dict[str, Curve]
    alarms: list[Alarm]
    page: Path


def report(store: Store, run: Path) -> Outcome:
    """Keep and describe what the folder of a run holds. Raises Busy during an erasure, and what the store raises."""
    with no_erasure(run.parents[1]):
        version = write_rollouts(store, run)
        rows = Rollouts.create_empty() if version is None else store.read(TABLE, version.version, run.name).collect()
        alarms = find_alarms(rows, read_metrics(run))
        return Outcome(version, mean_terms(rows), alarms, write_page(run, rows, alarms))


def write_page(run: Path, rollouts: pl.DataFrame, alarms: list[Alarm]) -> Path:
    """Write the page of a run into its folder; where it is."""
    metrics, note = read_metrics(run), read_note(run)
    recipe = load_recipe(note["recipe"])
    names = [name for names in _METRICS.values() for name in names if curve_of(metrics, name)]
    html = render_page(
        _TEMPLATE,
        run.name,
        ended=(run / MODEL).is_dir(),
        steps=max(metrics, default=0),
        course=describe_course(recipe.trainer, metrics),
        alarms=alarms,
        made_of=_made_of(note, recipe),
        rows=describe_rows(run),
        differences=run_differences(run),
        curves=[(title, _picture(title, curves)) for title, curves in all_curves(metrics, mean_terms(rollouts))],
        samples=list(_samples(rollouts)),
        validated=dict(_validated(metrics)),
        names=names,
        figures=[(step, [metrics[step].get(name) for name in names]) for step in sorted(metrics)],
    )
    write_whole(run / PAGE, html)
    return run / PAGE


def all_curves(metrics: Mapping[int, Metrics], means: Mapping[str, Curve]) -> Iterator[tuple[str, dict[str, Curve]]]:
    """Titles and curves by name of what a run has figures for: its metrics, and the terms of its reward."""
    for title, names in _METRICS.items():
        curves = {name: curve for name in names if (curve := curve_of(metrics, name))}
        if curves:
            yield title, curves
        if title == "reward" and (terms := {name: means[name] for name in means if name not in _BESIDE}):
            yield "terms of the reward", terms
    if "judge_ok" in means:
        yield "share of outputs with the judge's verdict", {"judge_ok": means["judge_ok"]}


def draw(axes: "Axes", title: str, curves: Mapping[str, Curve]) -> None:
    """Draw curves, one a name."""
    for name, values in curves.items():
        axes.plot(list(values), list(values.values()), label=name, marker="." if len(values) < 30 else "")
    axes.set(title=title, xlabel="step")
    axes.locator_params(axis="x", integer=True)
    if len(curves) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")


def _validated(metrics: Mapping[int, Metrics]) -> Iterator[tuple[str, float]]:
    """What the encoder of a run reaches on validation, if it trained one: T, what passes it, AUC by kind."""
    for _, of_step in sorted(metrics.items()):
        for name, value in of_step.items():
            if name.startswith(_OF_ENCODER):
                yield name.removeprefix(_OF_ENCODER), value


def _picture(title: str, curves: Mapping[str, Curve]) -> str:
    picture, _ = png(partial(draw, title=title, curves=curves), (6.4, 2.8), dpi=80)
    return base64.b64encode(picture).decode()


def _made_of(note: Mapping[str, Any], recipe: Recipe) -> dict[str, str]:
    release = note["release"]
    judge = note.get("judge")
    smoke = f": {TRAINERS[recipe.trainer].smoke}" if note["preset"] == "cpu_smoke" else ""
    return {
        "recipe": f"{recipe.name} ({recipe.about})",
        "ablation": note.get("ablation") or "the paper's own set-up",
        "preset": note["preset"] + smoke,
        "release": f"{release['name']}, content {release['content']}",
        "judge": ", ".join(f"{name} {value}" for name, value in judge.items()) if judge else "none",
        "encoder": note.get("encoder") or "none",
        "rows": f"{note['most_rows']:,} at most" if note.get("most_rows") else "all",
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
