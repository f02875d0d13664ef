"""What Potato has stored becomes labels, or is refused with its reason. Potato stores whatever it is sent."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from potato_people import pairs, store, stored
from potato_tasks import GOOD, label, task

from pipelines.errors import GongqingError
from pipelines.review.contract import Kind, Label, Task
from pipelines.review.potato import Refusal, folder_of, prepare, pull, push
from pipelines.review.potato_page import item_id, project_of


def pulled(home: Path, of: Task, annotations: Any, **more: Any) -> tuple[list[Label], list[Refusal]]:
    push(home, [of])
    store(home, of.annotator, {item_id(of): annotations}, project_of(of), **more)
    return pull(home)


@pytest.mark.parametrize("kind", ["coe", "cer", "rank", "compare"])
def test_an_answer_comes_back_as_it_was_given(tmp_path: Path, kind: Kind) -> None:
    assert pulled(tmp_path, task(kind), pairs(stored(GOOD[kind]))) == ([label(task(kind))], [])


def test_it_comes_back_again_and_again(tmp_path: Path) -> None:
    first = pulled(tmp_path, task("cer"), pairs(stored(GOOD["cer"])))
    assert pull(tmp_path) == first
    assert len(first[0]) == 1


def test_nothing_is_pulled_where_nothing_was_pushed_or_said(tmp_path: Path) -> None:
    assert pull(tmp_path) == ([], [])
    push(tmp_path, [task("cer")])
    assert pull(tmp_path) == ([], [])
    store(tmp_path, "p1", {item_id(task("cer")): []})  # an answer that was taken back
    assert pull(tmp_path) == ([], [])


STEPS = {"step1:true": "true", "step2:false": "false", "step3:true": "true"}
WHOLE = STEPS | {"preference:both": "both"}
SECRET = "不可说出来的话"
BAD: dict[str, tuple[Kind, Any, str]] = {
    "undefined choice": ("cer", pairs(STEPS | {"preference:third": "third"}), "preference: an undefined choice"),
    "choice and value differ": ("cer", pairs(STEPS | {"preference:both": "first"}), "preference: an undefined choice"),
    "a text for a choice": ("cer", pairs(STEPS | {"preference:both": SECRET}), "preference: an undefined choice"),
    "two choices": ("cer", pairs(WHOLE | {"step1:false": "false"}), "step1: two choices"),
    "missing step": (
        "cer",
        pairs({key: value for key, value in WHOLE.items() if key != "step2:false"}),
        "unfinished: step2 without an answer",
    ),
    "only a comment": (
        "cer",
        pairs({"comment:text_box": SECRET}),
        "unfinished: step1, step2, step3, preference without an answer",
    ),
    "an answer that was not asked": (
        "cer",
        pairs(WHOLE | {"verdict:accept": "accept"}),
        "an answer to what was not asked",
    ),
    "no text": ("cer", pairs(WHOLE | {"comment:text_box": 5}), "comment: it is no text"),
    "two texts": ("cer", pairs(WHOLE | {"comment:a": "一", "comment:b": SECRET}), "comment: it is no text"),
    "not in pairs": ("cer", {"step1": SECRET}, "it is not in the form that Potato stores"),
    "mended without an edit": ("coe", pairs({"verdict:mend": "mend"}), "a chain that is mended has edits"),
    "accepted with an edit": (
        "coe",
        pairs({"verdict:accept": "accept", "edit_L1:text_box": SECRET}),
        "a chain that is mended has edits",
    ),
    "a place twice": (
        "rank",
        pairs({"place1:1": "1", "place2:1": "1", "place3:3": "3"}),
        "places are a ranking of all, 1 to 3, each once",
    ),
    "a place that there is not": (
        "rank",
        pairs({"place1:4": "4", "place2:1": "1", "place3:2": "2"}),
        "undefined choice",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_label_is_refused_with_its_reason(tmp_path: Path, name: str) -> None:
    kind, annotations, reason = BAD[name]
    labels, [refusal] = pulled(tmp_path, task(kind), annotations)
    assert not labels
    assert reason in refusal.reason
    assert (refusal.annotator, refusal.task_id) == ("p1", task(kind).task_id)
    assert SECRET not in str(refusal)


def test_one_that_is_refused_keeps_no_other_back(tmp_path: Path) -> None:
    good, bad = task("cer", 1), task("cer", 2)
    push(tmp_path, [good, bad])
    store(tmp_path, "p1", {item_id(bad): pairs(STEPS), item_id(good): pairs(stored(GOOD["cer"]))})
    labels, refusals = pull(tmp_path)
    assert ([one.task_id for one in labels], [one.task_id for one in refusals]) == ([good.task_id], [bad.task_id])


def test_a_label_of_what_was_never_pushed_or_of_anothers_task_is_refused(tmp_path: Path) -> None:
    push(tmp_path, [task("cer", 1, "p1"), task("cer", 1, "p2")])
    given = pairs(stored(GOOD["cer"]))
    store(tmp_path, "p2", {"0123456789abcdef": given, item_id(task("cer", 1, "p1")): given})
    labels, refusals = pull(tmp_path)
    assert not labels
    assert [one.reason for one in refusals] == [
        "it is of no task that was pushed",
        "it was given by another person than was asked",
    ]


def test_a_label_of_an_older_text_has_the_hash_of_what_was_shown(tmp_path: Path) -> None:
    older, newer = task("coe"), task("coe", L1="他很难过。")
    push(tmp_path, [older])
    push(tmp_path, [newer])
    store(tmp_path, "p1", {item_id(older): pairs(stored(GOOD["coe"]))}, "coe")
    [one], _ = pull(tmp_path)
    assert (one.task_id, one.shown) == (newer.task_id, older.shown)
    assert one.shown != newer.shown


def test_spaces_and_what_was_copied_from_the_page_are_no_part_of_a_text(tmp_path: Path) -> None:
    given = {
        "verdict:mend": "mend",
        "edit_L1:text_box": "他说<\u2060b>累",
        "edit_L2:text_box": " \n",
        "comment:text_box": " 好 ",
    }
    [one], _ = pulled(tmp_path, task("coe"), pairs(given))
    assert one.answers == {"verdict": "mend", "edits": {"L1": "他说<b>累"}, "comment": "好"}


@pytest.mark.parametrize(
    ("stored_time", "seconds"),
    [(5_585, 5.585), (0, None), (-4, None), ("5", None), (True, None), (float("nan"), None), (float("inf"), None)],
)
def test_seconds_are_read_where_they_are_some(tmp_path: Path, stored_time: Any, seconds: float | None) -> None:
    times = {item_id(task("cer")): {"total_time_ms": stored_time}}
    given = pairs(stored(GOOD["cer"]))
    [one], _ = pulled(tmp_path, task("cer"), given, instance_id_to_behavioral_data=times)
    assert one.seconds == seconds


def test_the_time_is_that_of_the_last_choice(tmp_path: Path) -> None:
    asked = task("cer")
    push(tmp_path, [asked])
    path = store(tmp_path, "p1", {item_id(asked): pairs(stored(GOOD["cer"]))})
    actions = [
        {"instance_id": item_id(asked), "timestamp": f"2026-01-02T03:04:0{n}.5", "new_value": SECRET} for n in (1, 7)
    ]
    other = {"instance_id": "another", "timestamp": "2026-01-02T03:05:00"}
    lines = [*map(json.dumps, [*actions, other]), '{"instance_id": "cut sho']
    path.with_name("annotation_history.jsonl").write_text("\n".join(lines), encoding="utf-8")
    [one], _ = pull(tmp_path)
    assert one.at == dt.datetime(2026, 1, 2, 3, 4, 7, 500_000, tzinfo=dt.UTC)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"instance_id_to_label_to_value": 5}'])
def test_a_file_that_is_damaged_stops_the_pull(tmp_path: Path, content: str) -> None:
    push(tmp_path, [task("cer", 1, "p1"), task("cer", 1, "p2")])
    store(tmp_path, "p2", {item_id(task("cer", 1, "p2")): pairs(stored(GOOD["cer"]))})
    store(tmp_path, "p1", {}).write_text(content, encoding="utf-8")
    with pytest.raises(GongqingError, match="cannot be read"):
        pull(tmp_path)


def phase_after(home: Path, who: str = "p1") -> tuple[str, list[str]]:
    prepare(folder_of(home) / "cer")
    state = json.loads((folder_of(home) / "cer" / "output" / who / "user_state.json").read_text(encoding="utf-8"))
    return state["current_phase_and_page"][0], list(state["instance_id_to_label_to_value"])


def test_who_is_through_is_asked_again_where_there_is_something_to_ask(tmp_path: Path) -> None:
    done, half, wrong = (item_id(task("cer", n)) for n in (1, 2, 3))
    push(tmp_path, [task("cer", 1), task("cer", 1, "p2")])
    whole = {done: pairs(stored(GOOD["cer"]))}
    through = {"current_phase_and_page": ["done", None]}
    store(tmp_path, "p1", whole, **through)
    assert phase_after(tmp_path) == ("done", [done])  # nothing new
    push(tmp_path, [task("cer", 2), task("cer", 3)])
    assert phase_after(tmp_path) == ("annotation", [done])
    bad = {wrong: pairs(STEPS | {"preference:third": "third"})}
    store(tmp_path, "p1", whole | {half: pairs(STEPS)} | bad, **through)
    assert phase_after(tmp_path) == ("annotation", [done, wrong])  # what is wrong stays, to be seen
    store(tmp_path, "p1", whole | {half: pairs(STEPS)} | bad)
    assert phase_after(tmp_path) == ("annotation", [done, half, wrong])  # still at it: nothing is taken from them
