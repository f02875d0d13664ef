"""The score of emotional context: its weights, and how it orders invented and real texts."""

import json
from collections import Counter
from itertools import pairwise
from math import exp, log

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.settings import ROOT
from pipelines.text.emotional_context import WEIGHTS, emotional_context, scores

MODEL = json.loads(WEIGHTS.read_text(encoding="utf-8"))
LABELS = [json.loads(line) for line in (ROOT / "tools/labels/emotional_context.jsonl").read_text().splitlines()]


def score(*texts: str | None) -> list[float]:
    return emotional_context(pl.Series(texts, dtype=pl.String)).to_list()


def test_every_weight_is_shared_by_five_posts_or_more():
    """No wording of one person is kept of the real posts: characters and pairs that many wrote."""
    assert min(posts for _, posts in MODEL["grams"].values()) >= 5
    assert max(posts for _, posts in MODEL["grams"].values()) <= MODEL["labelled"] == len(LABELS)
    assert {len(gram) for gram in MODEL["grams"]} == {1, 2}
    assert WEIGHTS.stat().st_size <= 60_000


def test_the_labels_hold_no_text():
    assert {tuple(one) for one in LABELS} == {("id", "label", "genre")}
    assert len({one["id"] for one in LABELS}) == len(LABELS)
    assert {one["label"] for one in LABELS} == {0, 1, 2}
    genres = {"trouble", "knowledge", "career_exam", "debate", "chat", "advert", "notice", "other"}
    assert {one["genre"] for one in LABELS} <= genres


def test_a_story_scores_more_than_a_question_of_knowledge_an_exam_the_news_or_chat():
    stories = (
        "和她分开一个季度了，夜里总要哭一场，做什么都像做错，出口在哪里也看不见",
        "室友们都不理我，我一个人吃饭，很想回家，可是不敢跟妈妈说",
        "升职以后我总是失眠，害怕别人发现我其实什么都不会",
    )
    others = (
        "想自学心理学，零基础应该从哪本书开始看，请大家推荐",
        "心理咨询师考试的报名条件有哪些，需要什么学历",
        "什么是巴纳姆效应，有哪些应用",
        "近日，某高校规定毕业生须通过体能测试，如何看待这一规定",
        "话题：你们最想去哪座城市旅行",
    )
    assert min(score(*stories)) > max(score(*others))


def test_what_says_nothing_scores_a_half():
    assert score(None, "", " \n", "[姓名][电话2]") == [0.5] * 4
    assert score() == []


def test_placeholders_do_not_count():
    assert score("[姓名]让我很难过") == score("让我很难过")


def test_the_score_is_the_documented_sum():
    weights = {"我": 2.0, "难": -1.0, "很难": 0.5, "过": 3.0}
    counts = {"我": 2, "难": 1, "很难": 1}
    x = {gram: 1 + log(count) for gram, count in counts.items()}
    scaled = sum(weights[gram] * one for gram, one in x.items()) / sum(one * one for one in x.values()) ** 0.5
    (found,) = scores(pl.Series(["我很难，我"]), weights)
    assert found == pytest.approx(1 / (1 + exp(-scaled)))


@settings(max_examples=30)
@given(st.lists(st.text(max_size=30) | st.text("我很难过不想", max_size=8), max_size=5))
def test_it_does_what_a_plain_loop_does_and_a_text_is_scored_by_itself(texts: list[str]):
    weights = {gram: weight for gram, (weight, _) in MODEL["grams"].items()}
    found = score(*texts)
    assert found == [one for text in texts for one in score(text)]
    for text, one in zip(texts, found, strict=True):
        x = {gram: 1 + log(n) for gram, n in Counter([*text, *map("".join, pairwise(text))]).items() if gram in weights}
        length = sum(value * value for value in x.values()) ** 0.5 or 1
        assert one == pytest.approx(1 / (1 + exp(-sum(weights[gram] * value for gram, value in x.items()) / length)))
