"""Labels that come back: what becomes a row, and what is refused, with its line, task and reason."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviewed import WHEN, cer_item, coe_item, label, lines, rank_item, tasks_of

from pipelines.review.assigning import Assigned
from pipelines.review.importing import TABLE_OF, differ, entries_of, read_labels, turned_back
from pipelines.review.refusals import REASONS
from schemas.reviews import CerVotes

ITEM = cer_item()
ITEMS = {ITEM.item_id: ITEM}
TASKS, ROWS = tasks_of([ITEM], *(Assigned(ITEM.item_id, one) for one in ("u_1", "u_2", "u_3", "u_4")))
FIRST, SECOND, THIRD, _ = TASKS


def read(text, *, kind="cer", rows=ROWS, items=ITEMS, before=None):
    files = text if isinstance(text, dict) else {"f": text}
    entries = [entry for name, one in files.items() for entry in entries_of(name, one)]
    return read_labels(kind, entries, rows, items, TABLE_OF[kind].create_empty() if before is None else before)


def refusals(text, **more):
    read_ = read(text, **more)
    return [(one.line, one.task_id, one.reason) for one in read_.refusals]


def test_a_vote_is_turned_back_into_reference_and_candidate():
    tasks, rows = tasks_of([ITEM], *(Assigned(ITEM.item_id, f"u_{number}") for number in range(12)))
    assert {tuple(task.order) for task in tasks} == {(0, 1), (1, 0)}
    for task in tasks:
        shown_first = ("first", "second")[task.order[0]]
        for choice, meant in (("first", shown_first), ("both", "both"), ("neither", "neither")):
            [row] = read(lines(label(task, preference=choice, comment="好")), rows=rows).rows.to_dicts()
            assert row["preference"] == meant == turned_back(choice, task.order)
            assert (row["dialogue_id"], row["round"], row["candidate"]) == ("s:1", 2, 1)
            assert (row["step1"], row["step2"], row["step3"], row["comment"]) == (True, True, False, "好")
            assert (row["role"], row["labelled"], row["seconds"], row["at"]) == ("annotator", ITEM.hash, 31.5, WHEN)


def test_a_review_keeps_the_edits_and_leaves_the_rest_empty():
    item = coe_item()
    [task], rows = tasks_of([item], Assigned("s:1", "u_1"))
    text = lines(label(task, verdict="mend", edits={"L2": "别的看法"}))
    [row] = read(text, kind="coe", rows=rows, items={"s:1": item}).rows.to_dicts()
    assert (row["post_id"], row["answer_id"], row["verdict"]) == ("s:1", "s:1/0", "mend")
    assert [row[level] for level in ("L1", "L2", "L3", "L4")] == [None, "别的看法", None, None]


def test_places_are_those_of_the_models():
    item = rank_item()
    tasks, rows = tasks_of([item], *(Assigned("q1", f"u_{number}") for number in range(8)))
    assert len({tuple(task.order) for task in tasks}) > 2
    for task in tasks:
        [row] = read(lines(label(task, places=[3, 1, 2])), kind="rank", rows=rows, items={"q1": item}).rows.to_dicts()
        place_of = dict(zip(row["models"], row["places"], strict=True))
        assert [place_of[answer.removesuffix(" 说")] for answer in task.content["answers"]] == [3, 1, 2]


def test_of_two_answers_neither_and_both_are_ties_and_not_the_same():
    item = rank_item("compare", "m1", "m2")
    [task], rows = tasks_of([item], Assigned("q1", "u_1"))
    places = {}
    for choice in ("first", "second", "both", "neither"):
        made = read(lines(label(task, preference=choice)), kind="compare", rows=rows, items={"q1": item})
        places[choice] = made.rows["places"].to_list()[0]
    assert (places["both"], places["neither"]) == ([1, 1], [2, 2])
    assert places["first"] == places["second"][::-1]
    assert places["first"][task.order[0]] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task_id": "cer-0"}, "unknown_task"),
        ({"annotator": "u_2"}, "another_person"),
        ({"shown": "0" * 16}, "another_text"),
        ({"shown": "hash"}, "wrong_form"),
        ({"kind": "coe"}, "another_kind"),
        ({"kind": "poll"}, "wrong_form"),
        ({"kind": []}, "wrong_form"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "wrong_form"),
        ({"version": 2}, "wrong_form"),
        ({"note": "x"}, "wrong_form"),
        ({"answers": None}, "wrong_form"),
        ({"seconds": -1}, "wrong_form"),
        ({"seconds": float("inf")}, "wrong_form"),
        ({"at": "2026-11-01T08:00:00"}, "wrong_form"),
    ],
    ids=str,
)
def test_a_label_of_something_else_is_refused(change, reason):
    text = lines(label(SECOND), label(FIRST) | change)
    named = None if "task_id" in change else FIRST.task_id  # an id that is none of ours may be anything
    assert refusals(text) == [(2, named, reason)]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"preference": "A"}, "undefined_choice"),
        ({"step2": None}, "undefined_choice"),
        ({"step2": "True"}, "undefined_choice"),
        ({"step4": True}, "wrong_form"),
        ({"comment": 3}, "wrong_form"),
    ],
    ids=str,
)
def test_an_answer_that_is_no_choice_is_refused(answers, reason):
    assert refusals(lines(label(FIRST, **answers))) == [(1, FIRST.task_id, reason)]


@pytest.mark.parametrize("name", ["step1", "step2", "step3", "preference"])
def test_a_question_that_is_not_answered_is_named(name):
    one = label(FIRST)
    del one["answers"][name]
    [refusal] = read(lines(one)).refusals
    assert (refusal.reason, refusal.detail) == ("missing_answer", name)
    assert str(refusal) == f"f, line 1, task {FIRST.task_id}: a question is not answered ({name})"


def test_reviews_and_rankings_are_checked_as_well():
    chain, ranked = coe_item(), rank_item()
    for item, changes in (
        (chain, {"verdict": "perhaps"}),
        (chain, {"verdict": "mend"}),
        (chain, {"edits": {"L1": "新"}}),
        (chain, {"verdict": "mend", "edits": {"L5": "新"}}),
        (chain, {"verdict": "mend", "edits": {"L1": " \u200b"}}),
        (chain, {"verdict": "mend", "edits": {"L1": "好</L1><L2>"}}),
        (ranked, {"places": [1, 1, 2]}),
        (ranked, {"places": [1, 2]}),
        (ranked, {"places": [1, 2, 3, 4]}),
    ):
        [task], rows = tasks_of([item], Assigned(item.item_id, "u_1"))
        found = refusals(lines(label(task, **changes)), kind=item.kind, rows=rows, items={item.item_id: item})
        assert [(line, named) for line, named, _ in found] == [(1, task.task_id)], changes


def test_what_is_no_json_object_is_named_by_its_line():
    text = "\n{\n[1]\n\ufffd\n" + lines(label(FIRST))
    assert refusals(text) == [(2, None, "not_json"), (3, None, "not_json"), (4, None, "not_json")]


def test_an_item_that_was_made_again_or_is_gone_is_refused():
    for items in ({ITEM.item_id: cer_item(hash_="made again")}, {}):
        assert refusals(lines(label(FIRST)), items=items) == [(1, FIRST.task_id, "item_changed")]


def test_the_same_task_twice_is_refused_whatever_the_files():
    twice = {"a": lines(label(FIRST)), "b": lines(label(SECOND), label(FIRST))}
    [refusal] = read(twice).refusals
    assert (refusal.file, refusal.line, refusal.reason) == ("b", 2, "twice")


def test_the_same_again_is_known_whatever_became_of_the_item():
    before = read(lines(label(FIRST))).rows
    again = read(lines(label(FIRST) | {"seconds": 4.0, "at": None}, label(SECOND)), before=before)
    assert (again.known, again.rows["annotator"].to_list(), again.refusals) == (1, ["u_2"], [])
    for items in ({}, {ITEM.item_id: cer_item(hash_="made again")}):
        assert read(lines(label(FIRST)), before=before, items=items)[1:] == (0, 1, [])


def test_a_later_label_takes_the_place_of_an_earlier_one_and_no_other_does():
    before = read(lines(label(FIRST))).rows
    later = {"at": "2026-11-01T08:00:01Z"}
    for change in ({"step1": False}, {"preference": "both"}, {"comment": "再想想"}):
        assert refusals(lines(label(FIRST, **change)), before=before) == [(1, FIRST.task_id, "answered_otherwise")]
        assert refusals(lines(label(FIRST, **change) | {"at": None}), before=before)[0][2] == "answered_otherwise"
        made = read(lines(label(FIRST, **change) | later), before=before)
        assert (made.rows.height, made.replaced, made.known, made.refusals) == (1, 1, 0, [])


def test_a_corrected_vote_asks_for_no_third_one():
    two = read(lines(label(FIRST), label(SECOND))).rows
    made = read(lines(label(FIRST, step1=False) | {"at": "2026-11-02T08:00:00Z"}), before=two)
    assert (made.replaced, made.refusals) == (1, [])


def test_a_third_vote_needs_to_be_asked_for():
    two = lines(label(FIRST), label(SECOND))
    assert refusals(two + lines(label(THIRD))) == [(3, THIRD.task_id, "third_not_asked")]
    assert refusals(lines(label(THIRD)), before=read(two).rows) == [(1, THIRD.task_id, "third_not_asked")]


def test_an_adjudicator_decides_where_two_differ_and_nowhere_else():
    assigned = [
        Assigned(ITEM.item_id, "u_1"),
        Assigned(ITEM.item_id, "u_2"),
        Assigned(ITEM.item_id, "u_9", "adjudicator"),
    ]
    (one, two, third), rows = tasks_of([ITEM], *assigned)
    differing = read(lines(label(third), label(one), label(two, step1=False)), rows=rows)
    assert differing.refusals == []
    assert differing.rows["role"].to_list() == ["adjudicator", "annotator", "annotator"]
    for text in (lines(label(third)), lines(label(one), label(third))):
        assert [reason for *_, reason in refusals(text, rows=rows)] == ["third_not_asked"]
    # The texts stood in the same order for both, or the same choice means something else.
    same = {"preference": "both"}
    assert refusals(lines(label(one, **same), label(two, **same), label(third)), rows=rows) == [
        (3, third.task_id, "third_not_asked")
    ]


def test_two_votes_differ_by_any_answer():
    vote = {"step1": True, "step2": True, "step3": True, "preference": "both"}
    assert not differ([vote])
    assert not differ([vote, vote])
    assert all(differ([vote, vote | {name: "other"}]) for name in vote)


def test_a_refusal_repeats_nothing_that_somebody_wrote():
    secret = "王小明住在三号楼"
    wrong = [
        label(FIRST) | {"note": secret, "task_id": FIRST.task_id},
        label(SECOND, preference=secret),
        label(THIRD, comment=[secret]),
    ]
    found = read(lines(*wrong) + json.dumps(secret)).refusals
    assert len(found) == 4
    found += read(json.dumps(label(FIRST) | {"task_id": secret})).refusals
    found += read(json.dumps(label(FIRST) | {secret: 1})).refusals
    found += read(json.dumps(label(FIRST, **{secret: True}))).refusals
    assert not any(secret in str(one) for one in found)
    assert {one.reason for one in found} <= set(REASONS)


def test_rows_are_of_their_table():
    rows = read(lines(label(FIRST), label(SECOND))).rows
    assert isinstance(CerVotes.validate(rows), pl.DataFrame)
    assert rows.height == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*label(FIRST), "note"]), JSON, max_size=3), st.text(max_size=40))
def test_whatever_comes_is_taken_or_refused_with_its_line(changes, noise):
    """Nothing that a file may hold ends in anything but rows and refusals."""
    noise = noise.replace("\n", " ")
    found = read(f"{json.dumps(label(FIRST) | changes)}\n{noise}\n" + lines(label(SECOND)))
    assert "u_2" in found.rows["annotator"].to_list()
    assert {one.line for one in found.refusals} <= {1, 2}
    assert len(found.rows) + len(found.refusals) == 2 + bool(noise.strip())


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"kind": ' * 100_000, "1" * 100_000, '{"kind": "cer", "answers": ' + "[" * 90_000, "\ufeff{}"],
)
def test_what_is_nested_deeply_or_is_no_number_is_refused(text):
    assert [reason for *_, reason in refusals(text)] in (["not_json"], ["wrong_form"])


def test_a_lone_surrogate_is_refused():
    text = json.dumps(label(FIRST, comment="\ud800"))
    assert [reason for *_, reason in refusals(text)] == ["wrong_form"]
