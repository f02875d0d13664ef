"""What people judge, and in which order each of them sees it."""

from collections import Counter

import pytest
from labelled_rows import REFERENCE, RESPONSE, TURN, candidate
from reviewed import KEY, WHEN, cer_item, coe_item, rank_item, tasks_of
from table_rows import frame, row_of
from unique_rows import RISK, answer, post, posts, rounds, splits

from pipelines.operations.review.judged import candidate_hash
from pipelines.review.assigning import Assigned, assign, assign_all
from pipelines.review.contract import hash_of
from pipelines.review.items import ModelQuestion, cer_items, chain_hash, coe_items, drawn, question_items
from pipelines.review.tasks import order_of, task_id
from pipelines.rewrite.scripts import of_label
from schemas.annotations import CerCandidates, CoeChains, Topics

LEVELS = {"L1": "委屈", "L2": "都怪自己", "L3": "想被认可", "L4": "先倾听", "answer": "抱抱你。"}
PLACE = {"post_id": "s:1", "answer_id": "s:1/0", "author_role": "unknown"}
POST = post(1, "我和室友吵架了", answer("s:1/0", "抱抱你。"))


def chains(**more):
    return frame(CoeChains, row_of(CoeChains, **PLACE | LEVELS | more))


def test_a_chain_goes_out_with_its_question_and_the_human_answer():
    [item], lost = coe_items(chains(), posts(POST), splits(g1="train"), None)
    assert item.content == {"question": "我和室友吵架了", **LEVELS}
    assert (item.item_id, item.answer_id, lost) == ("s:1", "s:1/0", [])
    assert item.hash == chain_hash(chains().row(0, named=True), "我和室友吵架了")
    changed = [chains(L2="另一种"), chains(answer="别的")]
    assert len({item.hash, *(chain_hash(one.row(0, named=True), POST["text"]) for one in changed)}) == 3


def test_a_chain_that_may_not_teach_goes_to_nobody():
    doubt = frame(Topics, row_of(Topics, row_id="s:1", relevant=False, why="广告"))
    for row, split, topics, reason in (
        (POST, "test", None, "not_train"),
        (POST | {"under_18": True}, "train", None, "under_18"),
        (POST | {"risk": RISK}, "train", None, "risk"),
        (POST, "train", doubt, "not_relevant"),
        (POST | {"answers": []}, "train", None, "no_answer"),
        (post(2, "另一件事"), "train", None, "no_question"),
    ):
        items, lost = coe_items(chains(), posts(row), splits(g1=split), topics)
        assert (items, [(one.row_id, one.reason) for one in lost]) == ([], [("s:1", reason)])


def test_a_candidate_goes_out_with_its_dialogue_and_both_replies_whatever_its_split():
    one = candidate()
    for split in ("train", "validation", "test"):
        [item], lost = cer_items(frame(CerCandidates, one), rounds(TURN), splits(g1=split), candidate_hash)
        assert (item.item_id, item.hash, lost) == ("s:1#2/1", of_label(one, TURN).hash, [])
        assert item.content["history"][-1] == {"role": "seeker", "text": "一个月"}
        assert item.content["replies"] == [REFERENCE, RESPONSE]
        assert item.content["steps"] == [
            "阶段：探索\n他睡不好",
            "情感：消极；情绪：疲惫；强度：3\n说了一个月",
            "策略：情感反映\n先被听见",
        ]


def test_steps_of_an_english_dialogue_are_english():
    english = candidate(lang="en", emotion="tired")
    [item], _ = cer_items(frame(CerCandidates, english), rounds(TURN), splits(g1="train"), candidate_hash)
    assert [step.partition("\n")[0] for step in item.content["steps"]] == [
        "Stage: exploration",
        "Sentiment: negative; Emotion: tired; Intensity: 3",
        "Strategy: Reflection of feelings",
    ]


def test_a_candidate_of_somebody_at_risk_or_under_18_goes_to_nobody():
    for turn, reason in ((TURN | {"risk": RISK}, "risk"), (TURN | {"under_18": True}, "under_18"), (None, "no_round")):
        found = rounds(*([turn] if turn else []))
        items, lost = cer_items(frame(CerCandidates, candidate()), found, splits(g1="train"), candidate_hash)
        assert (items, [(one.row_id, one.reason) for one in lost]) == ([], [("s:1#2/1", reason)])


def test_a_greater_draw_keeps_what_a_smaller_one_has():
    items = [coe_item(f"s:{number}") for number in range(50)]
    assert drawn(items, 10, seed=1) == drawn(reversed(items), 20, seed=1)[:10]
    assert drawn(items, 10, seed=1) != drawn(items, 10, seed=2)
    assert len(drawn(items, None, seed=1)) == 50


def test_the_draw_is_uniform():
    """Chi-square over which of 20 items is among the 5 drawn: 19 degrees of freedom, p = .001 at 43.8."""
    items = [coe_item(f"s:{number}") for number in range(20)]
    counts = Counter(item.item_id for seed in range(800) for item in drawn(items, 5, seed))
    expected = 800 * 5 / 20
    # Drawn without replacement, counts vary less than those of independent draws: by the factor 15 / 19.
    assert sum((counts[item.item_id] - expected) ** 2 / expected for item in items) / (15 / 20) * (19 / 20) < 43.8


def test_every_order_is_as_likely_and_the_persons_own():
    cer, rank = cer_item(), rank_item()
    people = [f"u_{number}" for number in range(3000)]
    first = Counter(order_of(cer, one, KEY)[0] for one in people)
    assert abs(first[0] - 1500) < 3 * (3000 / 4) ** 0.5
    orders = Counter(tuple(order_of(rank, one, KEY)) for one in people)
    assert len(orders) == 6
    assert min(orders.values()) > 500 - 4 * (3000 * 5 / 36) ** 0.5
    assert order_of(coe_item(), "u_1", KEY) == []


def test_a_task_is_what_is_shown_and_its_row_says_in_which_order():
    item = cer_item()
    people = [f"u_{number}" for number in range(8)]
    tasks, rows = tasks_of([item], *(Assigned(item.item_id, one) for one in people))
    assert {tuple(task.order) for task in tasks} == {(0, 1), (1, 0)}
    for task, row in zip(tasks, rows.iter_rows(named=True), strict=True):
        assert [item.content["replies"][place] for place in task.order] == task.content["replies"]
        assert task.shown == hash_of("cer", task.content) == row["shown"]
        assert (row["order"], row["item"], row["role"], row["made"]) == (task.order, item.hash, "annotator", WHEN)
    assert len(set(rows["task_id"])) == 8


def test_an_item_that_was_made_again_is_another_task_and_its_id_tells_nothing():
    assert task_id(cer_item(), "u_1", KEY) != task_id(cer_item(hash_="made again"), "u_1", KEY)
    assert not any(part in task_id(cer_item(), "u_1", KEY) for part in ("s:1", "#2", "u_1"))


def test_neither_the_order_nor_the_id_can_be_worked_out_without_the_homes_key():
    """Whoever sees a task knows its kind, item, content and annotator: all that may be tried."""
    item, other = rank_item(), b"another key of the same"
    people = [f"u_{number}" for number in range(200)]
    same = [order_of(item, one, KEY) == order_of(item, one, other) for one in people]
    assert 10 < sum(same) < 60, "of six orders one is the same by chance"
    assert not any(task_id(item, one, KEY) == task_id(item, one, other) for one in people)
    assert [order_of(item, one, KEY) for one in people] == [order_of(item, one, KEY) for one in people]


def test_nobody_sees_which_model_answered():
    answers = [{"model": name, "text": "嗯" * size} for size, name in enumerate("ABC", 1)]
    question = ModelQuestion.model_validate({"question_id": "q1", "question": "我睡不着", "answers": answers})
    [item] = question_items("rank", [question])
    [task], _ = tasks_of([item], Assigned("q1", "u_1"))
    assert item.models == ("A", "B", "C")
    assert sorted(task.content["answers"]) == ["嗯", "嗯嗯", "嗯嗯嗯"]
    assert not any(name in task.model_dump_json() for name in ['"A"', '"B"', '"C"'])


def test_each_chain_goes_to_one_professional_and_as_many_to_each():
    ids = [f"s:{number}" for number in range(11)]
    first = assign(ids[:6], ["u_1", "u_2", "u_3"], votes=1)
    assert sorted(one.item_id for one in first) == ids[:6]
    assert set(Counter(one.annotator for one in first).values()) == {2}
    assert {one.item_id for one in assign(ids, ["u_1"], votes=1, earlier=first)} == set(ids[6:])
    both = assign(ids[:6], ["u_1", "u_2", "u_3"], votes=2, earlier=first)
    assert Counter(one.item_id for one in (*first, *both)) == dict.fromkeys(ids[:6], 2)


def test_every_rater_ranks_all_in_an_order_of_their_own():
    ids = [f"q{number}" for number in range(12)]
    first = assign_all(ids, ["u_1", "u_2"])
    shown = {person: [one.item_id for one in first if one.annotator == person] for person in ("u_1", "u_2")}
    assert set(shown["u_1"]) == set(shown["u_2"]) == set(ids)
    assert shown["u_1"] != shown["u_2"]
    more = assign_all([*ids, "q99"], ["u_1", "u_3"], earlier=first)
    assert Counter(one.annotator for one in more) == {"u_1": 1, "u_3": 13}


def test_an_item_with_an_empty_text_is_no_task():
    with pytest.raises(ValueError, match="at least 1 character"):
        tasks_of([coe_item(L3="")], Assigned("s:1", "u_1"))
