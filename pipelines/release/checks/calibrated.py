"""What a release says of what was held against people, and what it may demand of it: how well the rules of a home find
what they look for, how far people agree, and which models may stand in for them.

`gongqing calibrate` measures (`pipelines.operations.calibrate`); here stands what its figures are valid for.
"""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem

import polars as pl

from pipelines.core.code_version import code_version
from pipelines.release.checks.released import Released, finding
from pipelines.settings import Settings
from pipelines.store.release_manifest import Agreed, Calibration, Finding, Judge
from schemas.labels import CALIBRATED, OMEGA

# The modules whose code decides what a stage finds in a text, and the settings.
_MODULES = {
    "personal_data": ("pipelines.text.pii.redaction",),
    **{stage: (f"pipelines.text.{stage}", "pipelines.clean.cells") for stage in ("risk", "minors", "relevance")},
}
_SETTINGS = {
    "personal_data": ("cleaning.names", "cleaning.ner"),
    "relevance": ("cleaning", "filters.min_emotional_context"),
}


def rules_of(stage: str, settings: Settings) -> dict[str, str]:
    """The columns `code` and `settings` of a calibration of the rules as they stand."""
    dumped = settings.model_dump(mode="json")
    decisive = {name: reduce(getitem, name.split("."), dumped) for name in _SETTINGS.get(stage, ())}
    return {"code": code_version(*_MODULES[stage]), "settings": json.dumps(decisive, sort_keys=True)}


def calibrations(released: Released) -> list[Calibration]:
    """What a release says of its rules: the calibrations of these rules, and of no earlier ones."""
    order = {(stage, kind): place for place, (stage, kind) in enumerate(_kinds())}
    rows = _of_these_rules(released).sort("gold").to_dicts()
    return [
        Calibration(
            **{name: row[name] for name in ("stage", "kind", "gold", "gold_sha256", "posts", "kappa", "auc")},
            precision=_estimate(row, "precision"),
            recall=_estimate(row, "recall"),
        )
        for row in sorted(rows, key=lambda row: order[row["stage"], row["kind"]])
    ]


def earlier_calibrations(released: Released) -> Iterator[Finding]:
    """Stages that were calibrated, and whose rules are others today: the release says nothing of them."""
    current = set(_of_these_rules(released)["stage"])
    rows = released.table("calibrations").filter(~pl.col("stage").is_in(list(current)))
    stages = rows["stage"].unique().sort().to_list()
    if stages:
        what = f"rules were calibrated, and have changed since: {', '.join(stages)}"
        hint = f"the card says nothing of them; {_command(rows)}"
        yield finding("calibration", what, hint, stages, severity="warn")


def floors(released: Released) -> Iterator[Finding]:
    """Figures that the settings demand (`[release] floors`), and that nobody has measured of these rules, or that are
    lower by one of the files of labelled posts.
    """
    known, current = released.table("calibrations"), _of_these_rules(released)
    for name, floor in released.settings.release.floors.items():
        stage, kind, figure = name.split(".")
        of_kind = {"stage": stage, "kind": kind}
        rows = current.filter(**of_kind)
        if rows.is_empty():
            before = known.filter(**of_kind)
            problem = "was not measured" if before.is_empty() else "was measured of other rules than today's"
            yield finding("floor", f"{name} {problem}, and a floor demands {floor}", _command(before, stage), [name])
        for row in rows.sort("gold").iter_rows(named=True):
            if row[figure] is None or row[figure] < floor:
                value = "undefined" if row[figure] is None else f"{row[figure]:.3f}"
                what = f"{name} is {value} by {row['gold']} ({row['posts']:,} posts), and a floor demands {floor}"
                hint = f"{_command(rows)} --show 20 shows what is wrong: mend the rules, or lower the floor"
                yield finding("floor", what, hint, [name])


def _kinds() -> Iterator[tuple[str, str]]:
    return ((stage, kind) for stage, kinds in CALIBRATED.items() for kind in kinds)


def _of_these_rules(released: Released) -> pl.DataFrame:
    rows = released.table("calibrations")
    stages = rows["stage"].unique().to_list()
    today = [rows.filter(stage=stage, **rules_of(stage, released.settings)) for stage in stages]
    return pl.concat([rows.clear(), *today])


def _estimate(row: Mapping[str, float | None], figure: str) -> tuple[float, float, float] | None:
    value, low, high = (row[figure + end] for end in ("", "_low", "_high"))
    return None if value is None or low is None or high is None else (value, low, high)


def _command(rows: pl.DataFrame, stage: str = "STAGE") -> str:
    """How to measure again what the rows say, where there are any."""
    if rows.is_empty():
        return f"gongqing calibrate {stage} --gold FILE"
    named = rows.select("stage", "gold").unique().sort("stage", "gold").rows()
    return "; ".join(f"gongqing calibrate {of} --gold {gold}" for of, gold in named)


def agreement(released: Released) -> list[Agreed]:
    """The agreement of all people on each question, without anybody's name."""
    rows = released.table("agreements").filter(annotator="all")
    lines = []
    for (kind, question), of_question in rows.group_by("kind", "question", maintain_order=True):
        figures = {
            row["measure"]: None if row["value"] is None else (row["value"], row["low"], row["high"])
            for row in of_question.iter_rows(named=True)
        }
        first = of_question.row(0, named=True)
        lines.append(
            Agreed(
                kind=str(kind),
                question=str(question),
                items=first["n_items"],
                people=first["n_raters"],
                figures=figures,
            )
        )
    return lines


def judges(released: Released) -> list[Judge]:
    """The models that were held against people."""
    rows = released.table("judge_tests").rename({"n_people": "tested", "n_items": "items"})
    named = rows.select(*(name for name in Judge.model_fields if name != "people"), people=pl.col("tested"))
    return [Judge(**row) for row in named.sort("kind", "question", "model").iter_rows(named=True)]


def demanded_judges(released: Released) -> Iterator[Finding]:
    """Models that have to be fit to stand in for people (`[release] judges`), and are not, or were not tested."""
    rows = released.table("judge_tests")
    for name, model in released.settings.release.judges.items():
        kind, question = name.split(".")
        hint = f"gongqing calibrate {kind} --judge FILE, with answers of {model}"
        tested = rows.filter(kind=kind, question=question, model=model)
        if tested.is_empty():
            yield finding("floor", f"{model} was not held against people on {name}, which is demanded", hint, [name])
        for row in tested.filter(pl.col("omega") < OMEGA).iter_rows(named=True):
            what = f"{model} may not stand in for people on {name}: ω is {row['omega']:.2f}, and {OMEGA} is demanded"
            yield finding("floor", what, f"let people label, or judge by another model; {hint}", [name])
