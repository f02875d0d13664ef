"""The first filters of posts: what passes, what does not and why, and that nothing vanishes."""

from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from clean_rows import post, posts
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.accounts import require_balance, settle
from pipelines.clean import clean_posts
from pipelines.ingest.importing import read
from pipelines.settings import Filters
from schemas.posts import CleanPosts, ImportedPosts, RawPosts
from schemas.table import Dropped

Cleaned = tuple[pl.DataFrame, pl.DataFrame]


def require_accounted(frame: pl.DataFrame, kept: pl.DataFrame, dropped: pl.DataFrame) -> None:
    require_balance("clean_posts", [settle(unit, [frame], kept, dropped) for unit in ("post", "answer")])
    assert CleanPosts.is_valid(kept)
    assert Dropped.is_valid(dropped)
    assert set(dropped["stage"]) <= {"clean_posts"}


def reasons(dropped: pl.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    return {(unit, row): (reason, detail) for _, unit, row, reason, detail in dropped.iter_rows()}


# --- length


@pytest.mark.parametrize(
    ("description", "stays"),
    [
        ("难" * 19, False),
        ("难" * 20, True),
        ("难" * 19 + " \n\u3000\u200b", False),  # what a reader does not see is not counted
        ("难" * 18 + "。😀", True),
        ("", False),
    ],
)
def test_a_post_has_at_least_twenty_characters(description: str, stays: bool):
    kept, dropped = clean_posts(posts(post(1, "", description)))
    assert kept.height == stays
    assert stays or reasons(dropped)["post", "s:1"][0] == "too_short"


def test_the_drop_says_how_long_the_post_was():
    _, dropped = clean_posts(posts(post(1, "", "难" * 19)))
    assert reasons(dropped) == {("post", "s:1"): ("too_short", "19 characters")}


def test_title_and_description_count_together():
    kept, _ = clean_posts(posts(post(1, "难" * 10, "过" * 10)))
    assert kept["text"].to_list() == ["难" * 10 + "\n" + "过" * 10]
    assert kept["n_chars"].to_list() == [20]


@pytest.mark.parametrize(
    ("title", "description", "text"),
    [
        ("我很难过", "", "我很难过"),
        ("", "我很难过", "我很难过"),
        ("我很难过", "我很难过", "我很难过"),
        ("我很难过", "我很难过，睡不着", "我很难过，睡不着"),  # a site that repeats the title
        (" 我很难过 ", "\n睡不着\u3000", "我很难过\n睡不着"),
    ],
)
def test_the_text_is_title_and_description_once_each(title: str, description: str, text: str):
    kept, _ = clean_posts(posts(post(1, title, description)), Filters(min_post_chars=0))
    assert kept["text"].to_list() == [text]


@pytest.mark.parametrize(("length", "stays"), [(100, False), (101, True)])
def test_an_answer_has_more_than_a_hundred_characters(length: int, stays: bool):
    kept, dropped = clean_posts(posts(post(1, "", "难" * 20, "答" * length)))
    assert kept["answers"].list.len().to_list() == [stays]
    expected = {} if stays else {("answer", "s:1/0"): ("too_short", "100 characters")}
    assert reasons(dropped) == expected


def test_a_post_left_without_answers_stays():
    kept, _ = clean_posts(posts(post(1, "", "难" * 20, "短", "短短")))
    assert kept["answers"].to_list() == [[]]


def test_the_answers_that_stay_are_whole_and_in_order():
    frame = posts(post(1, "", "难" * 20, "甲" * 101, "短", "乙" * 300))
    kept, _ = clean_posts(frame)
    before, after = frame["answers"].to_list()[0], kept["answers"].to_list()[0]
    for answer in before:
        del answer["spans"]
    assert after == [before[0], before[2]]


def test_the_answers_of_a_dropped_post_go_with_it():
    _, dropped = clean_posts(posts(post(1, "", "难" * 19, "答" * 200, "短")))
    assert reasons(dropped) == {
        ("post", "s:1"): ("too_short", "19 characters"),
        ("answer", "s:1/0"): ("post_dropped", "s:1"),
        ("answer", "s:1/1"): ("post_dropped", "s:1"),
    }


# --- language


@pytest.mark.parametrize(
    ("description", "stays"),
    [
        ("难" * 10 + "a" * 10, True),
        ("难" * 10 + "a" * 11, False),
        ("难" * 5 + "！" * 30 + "😀" * 30, True),  # neither raises nor lowers the share
        ("😀" * 30, False),
        ("……" * 30, False),
        ("ただいまつかれましたからねむりたいです", False),
        ("⼀⼆⼈" * 10, True),
    ],
)
def test_a_post_is_mostly_chinese(description: str, stays: bool):
    kept, dropped = clean_posts(posts(post(1, "", description)), Filters(min_post_chars=15))
    assert kept.height == stays
    assert stays or reasons(dropped)["post", "s:1"][0] == "not_chinese"


def test_the_drop_says_how_chinese_the_post_was():
    _, dropped = clean_posts(posts(post(1, "", "难" * 10 + "a" * 20)))
    assert reasons(dropped) == {("post", "s:1"): ("not_chinese", "Chinese share 0.33")}


# --- what is added


def test_risk_is_looked_for_in_what_the_seeker_wrote():
    frame = posts(
        post(1, "我不想活了", "难" * 20),
        post(2, "", "难" * 20 + "想要自杀"),
        post(3, "", "难" * 20, "你说过想自杀" + "答" * 100),
    )
    kept, _ = clean_posts(frame)
    assert [[sign["rule"] for sign in signs] for signs in kept["risk"].to_list()] == [["wish_to_die"], ["suicide"], []]


def test_personal_data_are_not_yet_counted():
    kept, _ = clean_posts(posts(post(1, "", "难" * 20)))
    assert kept["pii"].to_list() == [None]


# --- thresholds


def test_the_thresholds_are_settings():
    frame = posts(post(1, "", "难" * 5, "答" * 3), post(2, "", "难aaa" * 5))
    kept, dropped = clean_posts(frame, Filters(min_post_chars=5, min_answer_chars=2, min_han_ratio=0.2))
    assert kept["post_id"].to_list() == ["s:1", "s:2"]
    assert dropped.is_empty()


# --- laws

WORDS = st.lists(st.sampled_from(["难", "难过", "a", "1", "，", "😀", " ", "\u3000", "\u200b", "\n"]), max_size=14)
TEXT = WORDS.map("".join)
FEW = Filters(min_post_chars=6, min_answer_chars=4)


def naive(row: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Why a post goes (None: it stays), and the ids of the answers that stay."""
    title, body = row["title"].strip(), row["description"].strip()
    text = body if body.startswith(title) else f"{title}\n{body}".strip()
    seen = [character for character in text if character not in " \u3000\u200b\n"]
    letters = [character for character in seen if character in "难过a1"]
    if len(seen) < FEW.min_post_chars:
        return "too_short", []
    if sum(character in "难过" for character in letters) < FEW.min_han_ratio * len(letters) or not letters:
        return "not_chinese", []
    long = [sum(one not in " \u3000\u200b\n" for one in answer["text"]) > 4 for answer in row["answers"]]
    return None, [answer["answer_id"] for answer, stays in zip(row["answers"], long, strict=True) if stays]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(TEXT, TEXT, st.lists(TEXT, max_size=3)), max_size=6))
def test_it_does_what_a_plain_loop_does(drawn: list[tuple[str, str, list[str]]]):
    rows = [post(number, title, body, *answers) for number, (title, body, answers) in enumerate(drawn)]
    frame = posts(*rows)
    kept, dropped = clean_posts(frame, FEW)
    require_accounted(frame, kept, dropped)
    expected = {row["post_id"]: naive(row) for row in rows}
    stayed = {row["post_id"]: [answer["answer_id"] for answer in row["answers"]] for row in kept.iter_rows(named=True)}
    assert stayed == {row: answers for row, (reason, answers) in expected.items() if reason is None}
    said = {row: reason for (unit, row), (reason, _) in reasons(dropped).items() if unit == "post"}
    assert said == {row: reason for row, (reason, _) in expected.items() if reason is not None}


def sampled(table: type[ImportedPosts], seed: int) -> pl.DataFrame:
    """Whatever the schema allows, half of it with a body that passes; ids of answers as readers make them."""
    bodies = [("我今天很难过" * 4 if number % 2 else "x") for number in range(30)]
    frame = table.sample(30, generator=dy.random.Generator(seed), overrides={"description": bodies})
    rows = frame.to_dicts()
    for row in rows:
        for number, answer in enumerate(row["answers"]):
            answer["answer_id"] = f"{row['post_id']}/{number}"
    return table.validate(pl.DataFrame(rows, schema=table.polars_schema()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("table", [ImportedPosts, RawPosts])
def test_whatever_the_schema_allows_is_accounted_for(table: type[ImportedPosts], seed: int):
    frame = sampled(table, seed)
    before = frame.clone()
    kept, dropped = clean_posts(frame, Filters(min_answer_chars=5))
    require_accounted(frame, kept, dropped)
    assert 0 < kept.height < 30
    assert set(dropped["unit"]) == {"post", "answer"}
    assert frame.equals(before)


def test_what_passed_passes_again_and_stays_as_it_is():
    kept, _ = clean_posts(sampled(ImportedPosts, 3), Filters(min_answer_chars=5))
    again, dropped = clean_posts(kept, Filters(min_answer_chars=5))
    assert again.equals(kept)
    assert dropped.is_empty()


def test_no_posts_give_no_posts():
    kept, dropped = clean_posts(ImportedPosts.create_empty())
    assert kept.schema == CleanPosts.polars_schema()
    assert dropped.schema == Dropped.polars_schema()
    assert kept.is_empty()
    assert dropped.is_empty()


def test_a_lazy_frame_gives_the_same():
    frame = posts(post(1, "", "难" * 19, "答" * 200), post(2, "", "难" * 20, "答" * 200))
    for lazy, eager in zip(clean_posts(frame.lazy()), clean_posts(frame), strict=True):
        assert lazy.equals(eager)


# --- the real set


def test_psyqa_passes_whole(shared: Path):
    frame = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    kept, dropped = clean_posts(frame)
    require_accounted(frame, kept, dropped)
    assert kept.height == 100
    assert kept["answers"].list.len().sum() == 268
    assert kept["n_chars"].min() >= 20
    assert set(kept["script"]) == {"simplified"}


def test_medical_questions_lose_their_short_answers(shared: Path):
    frame = read("qa_csv", shared / "zh_qa" / "medical_qa_gb18030.csv").kept
    kept, dropped = clean_posts(frame)
    require_accounted(frame, kept, dropped)
    assert (frame["answers"].list.len().sum(), kept["answers"].list.len().sum()) != (0, 0)
    lengths = kept.select(pl.col("answers").explode(empty_as_null=False).struct.field("text").str.len_chars())
    assert lengths["text"].min() > 100
    assert "too_short" in set(dropped.filter(unit="answer")["reason"])
