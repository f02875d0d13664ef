"""What people's labels say of a release, and the judges that it demands."""

import datetime as dt
from typing import Any

import polars as pl
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.reviewed import agreement, demanded_judges, judges
from pipelines.settings import Release, Settings
from schemas.reviews import Agreements, JudgeTests

DEMANDED = Settings(release=Release(judges={"cer.preference": "m"}))
TESTED = {
    **{"kind": "cer", "question": "preference", "model": "m", "people": "experts", "epsilon": 0.2, "omega": 1.0},
    **{"rho": 0.9, "n_people": 3, "n_items": 40, "kappa": 0.7, "kappa_of_people": None, "answers": "m.jsonl"},
    **{"answers_sha256": "0" * 64, "measured_at": dt.datetime(2026, 11, 1, tzinfo=dt.UTC)},
}


def released(settings: Settings = DEMANDED, **tables: pl.DataFrame) -> Any:
    told = post(1, "我最近睡不好，总是想工作上的事情。")
    return few_rows(told, split_of={"g1": "train"}, settings=settings, **tables)


def judged(*changes: dict[str, Any]) -> pl.DataFrame:
    return JudgeTests.validate(pl.DataFrame([TESTED | one for one in changes], schema=JudgeTests.polars_schema()))


def figure(annotator: str, measure: str, value: float | None) -> dict[str, Any]:
    bounds = {"low": value and value - 0.1, "high": value and value + 0.1, "n_items": 40, "n_raters": 3}
    return {"kind": "cer", "question": "step1", "annotator": annotator, "measure": measure, "value": value} | bounds


def test_the_agreement_of_all_is_said_and_that_of_nobody_alone():
    rows = [figure("all", "raw", 0.9), figure("all", "alpha", None), figure("u_1", "raw", 0.5)]
    table = Agreements.validate(pl.DataFrame(rows, schema=Agreements.polars_schema()))
    (one,) = agreement(released(agreements=table))
    assert (one.kind, one.question, one.items, one.people) == ("cer", "step1", 40, 3)
    assert one.figures == {"raw": (0.9, 0.8, 1.0), "alpha": None}


def test_a_judge_that_was_not_tested_or_is_not_fit_refuses():
    for rows, problem in (
        (judged(), "was not held against people"),
        (judged({"model": "other"}), "was not held against people"),
        (judged({"question": "step1"}), "was not held against people"),
        (judged({"omega": 0.49}), "ω is 0.49"),
    ):
        (found,) = demanded_judges(released(judge_tests=rows))
        assert (found.check, found.severity, found.examples) == ("floor", "refuse", ["cer.preference"])
        assert problem in found.what
        assert "gongqing calibrate cer --judge FILE" in found.hint
    assert list(demanded_judges(released(judge_tests=judged({"omega": 0.5})))) == []
    assert list(demanded_judges(released(Settings()))) == []


def test_every_model_that_was_tested_is_listed():
    listed = judges(released(judge_tests=judged({}, {"question": "step1", "omega": 0.0})))
    assert [(one.question, one.omega, one.people, one.items) for one in listed] == [
        ("preference", 1.0, 3, 40),
        ("step1", 0.0, 3, 40),
    ]
