"""What a release says of its rules and of its labels, and the floors and judges that it demands."""

import datetime as dt
from typing import Any

import polars as pl
import pytest
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.calibrated import (
    agreement,
    calibrations,
    demanded_judges,
    earlier_calibrations,
    floors,
    judges,
    rules_of,
)
from pipelines.settings import Cleaning, Release, Settings
from schemas.calibrations import Calibrations
from schemas.reviews import Agreements, JudgeTests

FLOOR = Settings(release=Release(floors={"risk.any.recall": 0.9}))
DEMANDED = Settings(release=Release(judges={"cer.preference": "m"}))
TESTED = {
    **{"kind": "cer", "question": "preference", "model": "m", "people": "experts", "epsilon": 0.2, "omega": 1.0},
    **{"rho": 0.9, "n_people": 3, "n_items": 40, "kappa": 0.7, "kappa_of_people": None, "answers": "m.jsonl"},
    **{"answers_sha256": "0" * 64, "measured_at": dt.datetime(2026, 11, 1, tzinfo=dt.UTC)},
}


def rows(*changes: dict) -> pl.DataFrame:
    figures = {"precision": 0.96, "precision_low": 0.92, "precision_high": 0.98, "recall": 0.93, "recall_low": 0.88}
    row = dict.fromkeys(Calibrations.column_names()) | figures | {"recall_high": 0.96, "posts": 1097, "readers": 2}
    row |= {"stage": "risk", "kind": "any", "gold": "gold.jsonl", "gold_sha256": "0" * 64, "kappa": 0.91}
    row |= {"labelled": 100, "found": 96, "right": 92, "missed": 7, "measured_at": dt.datetime.now(dt.UTC)}
    made = [row | rules_of(change.get("stage", "risk"), Settings()) | change for change in changes]
    return Calibrations.validate(pl.DataFrame(made, schema=Calibrations.polars_schema()))


def released(*changes: dict, settings: Settings = FLOOR):
    told = post(1, "我最近睡不好，总是想工作上的事情。")
    return few_rows(told, split_of={"g1": "train"}, settings=settings, calibrations=rows(*changes))


def test_the_rules_are_their_code_and_the_settings_that_decide_what_they_find():
    wide = Settings(cleaning=Cleaning(names="wide"), seed=7)
    assert rules_of("personal_data", wide) != rules_of("personal_data", Settings())
    assert rules_of("personal_data", wide)["settings"] == '{"cleaning.names": "wide", "cleaning.ner": null}'
    assert rules_of("risk", wide) == rules_of("risk", Settings())


def test_without_calibrations_and_floors_there_is_nothing_to_say():
    nothing = released(settings=Settings())
    assert [*floors(nothing), *earlier_calibrations(nothing), *calibrations(nothing)] == []


@pytest.mark.parametrize(
    ("changes", "problem", "hint"),
    [
        ([], "risk.any.recall was not measured", "gongqing calibrate risk --gold FILE"),
        ([{"kind": "abuse"}], "was not measured", "calibrate risk --gold FILE"),
        ([{"code": "older"}], "was measured of other rules than today's", "calibrate risk --gold gold.jsonl"),
        ([{"settings": '{"a": 1}'}], "was measured of other rules", "calibrate risk --gold gold.jsonl"),
        ([{"recall": 0.899}], "is 0.899 by gold.jsonl (1,097 posts), and a floor demands 0.9", "--show 20"),
        ([{"recall": None}], "is undefined by gold.jsonl", "--show 20"),
        ([{}, {"gold": "other.jsonl", "recall": 0.5}], "is 0.500 by other.jsonl", "lower the floor"),
    ],
)
def test_a_floor_refuses_what_was_not_measured_of_these_rules_or_is_lower(changes, problem, hint):
    (found,) = floors(released(*changes))
    assert (found.check, found.severity, found.examples) == ("floor", "refuse", ["risk.any.recall"])
    assert problem in found.what
    assert hint in found.hint


def test_a_figure_that_is_as_high_passes_whatever_an_older_file_said():
    assert list(floors(released({"recall": 0.9}))) == []
    assert list(floors(released({}, {"gold": "old.jsonl", "code": "older", "recall": 0.1}))) == []


def test_figures_of_earlier_rules_are_not_said_but_warned_of():
    both = released({}, {"stage": "minors", "kind": "under_18", "code": "older"})
    assert [(one.stage, one.kind) for one in calibrations(both)] == [("risk", "any")]
    (found,) = earlier_calibrations(both)
    assert (found.severity, found.examples) == ("warn", ["minors"])
    assert "gongqing calibrate minors --gold gold.jsonl" in found.hint
    assert list(earlier_calibrations(released({}, {"gold": "old.jsonl", "code": "older"}))) == []


def test_a_release_lists_them_in_the_order_of_stages_and_kinds():
    said = calibrations(released({}, {"kind": "self_harm"}, {"stage": "personal_data", "kind": "name"}))
    assert [(one.stage, one.kind) for one in said] == [
        *(("personal_data", "name"), ("risk", "self_harm"), ("risk", "any")),
    ]
    assert (said[0].precision, said[0].posts, said[0].kappa) == ((0.96, 0.92, 0.98), 1097, 0.91)
    assert calibrations(released({"precision": None}))[0].precision is None


def labelled(settings: Settings = DEMANDED, **tables: pl.DataFrame) -> Any:
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
    (one,) = agreement(labelled(agreements=table))
    assert (one.kind, one.question, one.items, one.people) == ("cer", "step1", 40, 3)
    assert one.figures == {"raw": (0.9, 0.8, 1.0), "alpha": None}


def test_a_judge_that_was_not_tested_or_is_not_fit_refuses():
    for rows, problem in (
        (judged(), "was not held against people"),
        (judged({"model": "other"}), "was not held against people"),
        (judged({"question": "step1"}), "was not held against people"),
        (judged({"omega": 0.49}), "ω is 0.49"),
    ):
        (found,) = demanded_judges(labelled(judge_tests=rows))
        assert (found.check, found.severity, found.examples) == ("floor", "refuse", ["cer.preference"])
        assert problem in found.what
        assert "gongqing calibrate cer --judge FILE" in found.hint
    assert list(demanded_judges(labelled(judge_tests=judged({"omega": 0.5})))) == []
    assert list(demanded_judges(labelled(Settings()))) == []


def test_every_model_that_was_tested_is_listed():
    listed = judges(labelled(judge_tests=judged({}, {"question": "step1", "omega": 0.0})))
    assert [(one.question, one.omega, one.people, one.items) for one in listed] == [
        ("preference", 1.0, 3, 40),
        ("step1", 0.0, 3, 40),
    ]
