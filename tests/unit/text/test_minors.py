"""Who says to be a minor: sentences written for this test, of writers who do and of those who only look like it."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.importing import read
from pipelines.text.minors import _near, _signs, minors, under_18

SENTENCES = tomllib.loads(Path(__file__).with_name("minors.toml").read_text(encoding="utf-8"))


def limits(texts: list[str | None]) -> list[str]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(minors(pl.col("text")).struct.unnest())
    return ["under_14" if young else "under_18" if minor else "neither" for young, minor in frame.iter_rows()]


@pytest.mark.parametrize("expected", SENTENCES)
def test_writers_are_taken_at_their_word(expected: str):
    texts = SENTENCES[expected]
    assert {text: limit for text, limit in zip(texts, limits(texts), strict=True) if limit != expected} == {}


def test_it_is_found_in_a_later_paragraph():
    for expected in ("under_14", "under_18"):
        framed = [f"怎么办\n{text}\n谢谢大家" for text in SENTENCES[expected]]
        assert [text for text, limit in zip(framed, limits(framed), strict=True) if limit != expected] == []
    assert pl.DataFrame({"text": SENTENCES["under_14"]}).select(under_18(pl.col("text"))).to_series().all()


def test_a_school_year_in_an_answer_is_of_the_one_who_is_answered():
    texts = ["关门少话，在初三并不少见", "高三，正是最累的一年", "我是高二学生，我也这样"]
    frame = pl.DataFrame({"text": texts})
    assert frame.select(under_18(pl.col("text"), answers=True)).to_series().to_list() == [False, False, True]
    assert frame.select(under_18(pl.col("text"))).to_series().to_list() == [True, True, True]


def test_a_placeholder_says_nothing():
    """[学校] may stand for a university; 学校 would be the fourth word of a pupil's days. A name is somebody else's."""
    days = "老师布置的作业写不完，考试又没考好"
    assert limits([f"在学校，{days}", f"在[学校]，{days}", f"在[学校2]，{days}"]) == ["under_18", "neither", "neither"]
    assert limits(["[姓名]今年15岁了，总是不听话", "我叫[姓名]，今年15岁"]) == ["neither", "under_18"]


def test_no_text_says_nothing():
    assert limits([None, "", "😀", "岁"]) == ["neither"] * 4
    assert limits([]) == []


def test_a_year_of_birth_counts_where_the_day_of_the_post_is_known():
    cases = [
        ("我是2009年的，今天很难过", 2024, (False, True)),
        ("我是一名09年的女生", 2024, (False, True)),
        ("我是12年出生的", 2024, (True, True)),
        ("我是03年的，刚上班", 2024, (False, False)),
        ("我是95年的", 2024, (False, False)),
        ("我是09年的", None, (False, False)),
        ("我是09年的老员工", 2010, (False, False)),
    ]
    posts = {text: year and datetime(year, 6, 1, tzinfo=UTC) for text, year, _ in cases}
    frame = pl.DataFrame({"text": list(posts), "posted_at": list(posts.values())})
    found = frame.select(minors(pl.col("text"), pl.col("posted_at")).struct.unnest()).rows()
    assert dict(zip(posts, found, strict=True)) == {text: expected for text, _, expected in cases}


def test_what_any_pattern_finds_is_near_enough_to_be_looked_at(shared: Path):
    turns = pl.read_ndjson(shared / "near_dup" / "smile_first_turns.jsonl")["text"].to_list()
    texts = pl.Series([*(one for texts in SENTENCES.values() for one in texts), *turns])
    counts = _near().counted(texts)
    patterns = [(kind, name, pattern) for kind, name, patterns in _signs() for pattern in patterns]
    assert patterns
    for kind, name, pattern in patterns:
        assert not (texts.str.contains(pattern) & (counts[kind] == 0)).any(), name


@settings(max_examples=12)
@given(st.lists(st.text(max_size=30) | st.none(), max_size=5))
def test_every_text_gets_an_answer_and_the_same_one_beside_others(texts: list[str | None]):
    assert limits(texts) == [limits([text])[0] for text in texts]


def test_an_age_in_figures_decides_by_the_age():
    for sentence in ("我今年{}岁", "我今年{}岁，很难过", "I am {} years old"):
        wanted = [
            "neither" if age >= 18 or age < 6 else "under_14" if age < 14 else "under_18" for age in range(1, 100)
        ]
        assert limits([sentence.format(age) for age in range(1, 100)]) == wanted


def test_adults_of_real_posts_are_left_alone(shared: Path):
    """Of 100 real posts, four writers say to be minors, or to leave school this year."""
    posts = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    text = pl.concat_str("title", "description", separator="\n")
    told = posts.select(minors(text).struct.unnest())
    assert told.sum().row(0) == (0, 3)


@pytest.mark.parametrize(
    ("name", "limit", "precision", "recall"),
    [
        ("sentences", "under_18", 0.95, 0.90),
        ("sentences", "under_14", 0.95, 0.90),
        ("apart", "under_18", 0.95, 0.80),
        ("apart", "under_14", 0.95, 0.75),
        ("beside", "under_18", 0.90, 0.95),
        ("beside", "under_14", 0.95, 0.95),
    ],
)
def test_the_rules_reach_their_figures(name: str, limit: str, precision: float, recall: float):
    """Who is under 14 is under 18 as well."""
    sentences = tomllib.loads(Path(__file__).with_name("ages.toml").read_text(encoding="utf-8"))[name]
    frame = pl.DataFrame(sentences).with_columns(minors(pl.col("text")).struct.unnest())
    true, flagged = frame["limit"].is_in(["under_14", limit]), frame[limit]
    wrong = frame.filter(flagged != true)["text"].to_list()
    assert (true & flagged).sum() >= precision * flagged.sum(), wrong
    assert (true & flagged).sum() >= recall * true.sum(), wrong
