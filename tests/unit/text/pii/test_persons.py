"""Who is taken for a private person: only who is likely one and has a witness."""

import json

import polars as pl
import pytest

from pipelines.text.pii import persons, redact
from pipelines.text.pii.redaction import find

# Sentences, and the names in them that the strict finder replaces.
NAMED = {
    "我叫王慧敏，今年大二。": ["王慧敏"],
    "我室友陈雨桐总是半夜打电话。": ["陈雨桐"],
    "班主任李老师找我谈过一次话。": ["李老师"],
    "小张和我是同桌，小张说她也不想来。": ["小张", "小张"],
    "赵阿姨对我很好，可我还是不敢说。": ["赵阿姨"],
    "孙丽娟老师对我说，再等等看。": ["孙丽娟老师"],
}
# What only looks like one, and whom everybody knows.
STAYS = [
    "爸爸刚治完严重的糖尿病。",
    "他们的爱情甜甜的，我很羡慕。",
    "他叫我先垫着，过几天还我。",
    "那几个建小群的人不理我。",
    "网上各种小贷我都还不上。",
    "心里蕴藏着巨大的东东，像多动的小马达。",
    "早上看新闻说马航有了消息。",
    "我最近在读《红楼梦》，觉得自己像个林妹妹。",
    "歌手陈奕迅的那首歌我听了一整夜。",
    "量表由张伟编制，问卷一共二十题。",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_name_with_a_witness_is_found(text):
    data = text.encode()
    spans = find(pl.Series([text])).filter(pl.col("kind") == "name")
    assert [data[start:end].decode() for start, end in spans.select("start", "end").rows()] == NAMED[text]


def test_words_that_look_like_names_and_public_persons_stay():
    assert [text for text, made in zip(STAYS, redact(STAYS).texts, strict=True) if text != made] == []


def test_a_full_name_that_nothing_announces_is_left_to_the_wide_finder():
    text = ["昨天看到程雪在门口站着，后来就走了。"]
    assert redact(text).counts.is_empty()
    assert redact(text, names="wide").counts["kind"].to_list() == ["name"]


@pytest.mark.parametrize(
    ("span", "core", "title", "shape"),
    [
        ("陈雨桐", "陈雨桐", "", "full3"),
        ("李老师", "李", "老师", "surname"),
        ("小王同学", "小王", "同学", "called"),
        ("欧阳娜娜", "欧阳娜娜", "", "compound"),
        ("淼淼", "淼淼", "", "doubled"),
        ("杨某", "杨", "某", "surname"),
        ("Lucy", "Lucy", "", "latin"),
    ],
)
def test_a_candidate_is_taken_apart(span, core, title, shape):
    assert persons.taken_apart(span) == (core, title, shape)


def test_evidence_is_whoever_says_that_it_is_a_person():
    def evidence(text: str, span: str) -> set[str]:
        start = text.index(span)
        return persons.evidence(persons.candidate(text, start, start + len(span)))

    assert "cue" in evidence("我的名字叫陈雨桐，", "陈雨桐")
    assert "person" in evidence("我闺蜜陈雨桐昨天", "陈雨桐")
    assert "titled" in evidence("后来陈雨桐医生给我开了药", "陈雨桐")
    assert "me" in evidence("陈雨桐对我说", "陈雨桐")
    assert "many" in evidence("陈雨桐来了，陈雨桐又走了", "陈雨桐")
    assert "public" in evidence("著名演员陈雨桐", "陈雨桐")
    assert "in public" in evidence("陈雨桐主演的电影", "陈雨桐")


def test_no_post_can_be_read_out_of_the_weights():
    """What fewer than five posts share is not kept, and of words beside a name only the word itself."""
    weights = json.loads(persons.WEIGHTS.read_text(encoding="utf-8"))
    assert len(weights) > 500
    assert [feature for feature, (_, posts) in weights.items() if posts < 5] == []
    assert max(len(feature) for feature in weights) < 40
    assert persons.WEIGHTS.stat().st_size < 60_000
