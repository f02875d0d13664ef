"""What people's labels say of a release: how far they agree, and which models may stand in for them."""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Agreed, Finding, Judge
from schemas.labels import OMEGA


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
