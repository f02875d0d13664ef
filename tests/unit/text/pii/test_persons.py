"""Who is taken for a private person: only who is likely one and has a witness."""

import json

import polars as pl
import pytest

from pipelines.text.pii import persons, redact
from pipelines.text.pii import vocabulary as voc
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
    "她跑起来像装了小马达，停也停不下。",
    "早上看新闻说马航有了消息。",
    "我最近在读《红楼梦》，觉得自己像个林妹妹。",
    "歌手陈奕迅的那首歌我听了一整夜。",
    "量表由张伟编制，问卷一共二十题。",
]


def test_a_name_with_a_witness_is_found():
    found = {text: [] for text in NAMED}
    for row, start, end in find(pl.Series(list(NAMED))).filter(kind="name").select("row", "start", "end").iter_rows():
        text = list(NAMED)[row]
        found[text].append(text.encode()[start:end].decode())
    assert found == NAMED


def test_words_that_look_like_names_and_public_persons_stay():
    assert [text for text, made in zip(STAYS, redact(STAYS).texts, strict=True) if text != made] == []


def test_a_full_name_that_nothing_announces_is_left_to_the_wide_finder():
    text = ["昨天看到程雪在门口站着，后来就走了。"]
    assert redact(text).counts.is_empty()
    assert redact(text, names="wide").counts["kind"].to_list() == ["name"]


MINORITY = voc.lexicon("given_names")["minority"]
GIVEN = ["子涵", "欣怡", "梓涵", "雨桐", "思琪", "佳怡", "雅婷", "晓雯", "嘉怡", "诗涵", "宇轩", "浩宇"]


@pytest.mark.parametrize("said", ["我叫{}，今年二十五岁", "我女儿叫{}，今年五岁", "我闺蜜{}骗我"])
def test_who_is_introduced_is_taken_as_the_wide_reading_does(said):
    """However the name is made: of the names that are not Chinese, and of given names alone."""
    names = GIVEN if "骗" in said else [*GIVEN, *MINORITY]
    texts = [said.format(name) for name in names]
    strict, wide = (redact(texts, names=reading).texts for reading in ("strict", "wide"))
    assert strict.equals(wide)
    assert (strict != pl.Series(texts)).mean() > 0.85


INTRODUCED = {
    "我姓何，今年三十": "我姓[姓名]，今年三十",
    "我叫【周海燕】": "我叫【[姓名]】",
    "我叫 周 海 燕": "我叫 [姓名]",
    "我叫周-海-燕，周海燕很累": "我叫[姓名]，[姓名]很累",
    "我叫zhou haiyan": "我叫[姓名]",
    "我叫欧阳娜娜，娜娜说她累": "我叫[姓名]，[姓名]说她累",
    "谢谢大家。\n—— 周海燕": "谢谢大家。\n—— [姓名]",
    "—— 周海燕\n谢谢大家。": "—— 周海燕\n谢谢大家。",
    "一个姓王的人找过我": "一个姓王的人找过我",
    "他们给我叫外卖，我叫上同学一起去": "他们给我叫外卖，我叫上同学一起去",
}


def test_who_introduces_himself_or_signs_is_found_and_nobody_else():
    assert dict(zip(INTRODUCED, redact(list(INTRODUCED)).texts, strict=True)) == INTRODUCED


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
        return persons.candidate(text, start, start + len(span)).evidence

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
