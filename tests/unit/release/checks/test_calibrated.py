"""What a release says of its rules, and the floors that it demands of them."""

import datetime as dt

import polars as pl
import pytest
from released_rows import few_rows
from unique_rows import post

from pipelines.release.checks.calibrated import calibrations, earlier_calibrations, floors, rules_of
from pipelines.settings import Cleaning, Release, Settings
from schemas.calibrations import Calibrations

FLOOR = Settings(release=Release(floors={"risk.any.recall": 0.9}))


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
