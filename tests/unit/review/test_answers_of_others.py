"""What a model suggests is shown as such, in the order of the task, and is part of what was shown."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import review_tasks
from pydantic import ValidationError

from pipelines.review.answers import as_shown
from pipelines.review.contract import Choice, Kind
from pipelines.review.importing import turned_back
from pipelines.review.questions import screen_of
from pipelines.review.sheets import read_sheet, write_sheet

SUGGESTED: dict[Kind, dict[str, Any]] = {
    "coe": {"verdict": "mend", "edits": {"L2": "改过的一层。"}},
    "cer": {"step1": True, "step2": False, "step3": True, "preference": "second"},
    "rank": {"places": [2, 3, 1]},
    "compare": {"preference": "both"},
}
LINES: dict[Kind, list[str]] = {
    "coe": ["修改", "L2：改过的一层。"],
    "cer": ["第一步对不对？对", "第二步对不对？错", "哪个回应更好？第二个更好"],
    "rank": ["第2名", "第3名", "第1名"],
    "compare": ["两个都好"],
}


@pytest.mark.parametrize("kind", SUGGESTED)
def test_a_suggestion_stands_below_all_texts_marked_as_a_models(kind: Kind) -> None:
    [plain] = review_tasks.batch(kind, 1)
    task = review_tasks.suggested(plain, SUGGESTED[kind])
    *others, last = screen_of(task).passages
    assert tuple(others) == screen_of(plain).passages
    assert (last.field, last.title) == ("suggestion", "模型的建议")
    assert "可能有错" in last.text
    assert [line for line in LINES[kind] if line not in last.text] == []
    assert screen_of(task).questions == screen_of(plain).questions


def test_the_hash_of_what_is_shown_covers_it() -> None:
    [plain] = review_tasks.batch("cer", 1)
    one, other = (
        review_tasks.suggested(plain, {**SUGGESTED["cer"], "preference": choice}) for choice in ("first", "both")
    )
    assert len({plain.shown, one.shown, other.shown}) == 3


def test_what_is_no_answer_of_the_kind_is_no_suggestion() -> None:
    [plain] = review_tasks.batch("cer", 1)
    for answers in ({}, {"verdict": "accept"}, {**SUGGESTED["cer"], "preference": "A"}):
        with pytest.raises(ValidationError):
            review_tasks.suggested(plain, answers)


def test_it_is_turned_to_the_order_of_showing() -> None:
    choices: tuple[Choice, ...] = ("first", "second", "both", "neither")
    for order in ([0, 1], [1, 0]):
        for choice in choices:
            assert turned_back(as_shown("cer", {"preference": choice}, order)["preference"], order) == choice
    places = [3, 1, 2]
    for order in permutations(range(3)):
        shown = as_shown("rank", {"places": places}, order)["places"]
        assert {text: shown[at] for at, text in enumerate(order)} == dict(enumerate(places))


@pytest.mark.parametrize("kind", SUGGESTED)
def test_a_sheet_with_suggestions_is_read_again_and_one_that_was_changed_is_refused(kind: Kind, tmp_path: Path) -> None:
    tasks = [review_tasks.suggested(one, SUGGESTED[kind]) for one in review_tasks.batch(kind, 2)]
    path = tmp_path / "sheet.xlsx"
    write_sheet(tasks, path)
    assert read_sheet(path, tasks) == ([], [])
    assert {refusal.reason for refusal in read_sheet(path, review_tasks.batch(kind, 2))[1]} == {"another_text"}
