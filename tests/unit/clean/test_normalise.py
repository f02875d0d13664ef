"""The stored form of a text: laws over all texts, both profiles, bad input, and real data that must lose nothing."""

import json
from collections import Counter
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import regex
from columns import PIECES, anything, ordinary, over, patchwork, suspicious
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.clean.normalise import normalised
from pipelines.ingest.importing import read
from pipelines.text.pii.placeholders import EMOTICON, NAMES
from pipelines.text.script import simplified

paper = partial(normalised, profile="paper")


def chain(text: pl.Expr) -> pl.Expr:
    return simplified(normalised(text))


STEPS = {"default": normalised, "paper": paper, "chain": chain, "paper chain": lambda text: simplified(paper(text))}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@settings(max_examples=50)
@given(texts=st.lists(st.one_of(anything, patchwork, patchwork), max_size=8))
def test_what_is_clean_stays_as_it_is(step, texts: list[str]):
    once = over(step, *texts)
    assert over(step, *once) == once


@settings(max_examples=50)
@given(st.lists(patchwork, max_size=8))
def test_the_paper_leaves_nothing_but_chinese(texts: list[str]):
    words = "|".join((*NAMES.values(), "表情", "電話"))  # in Traditional Chinese a placeholder as well
    allowed = regex.compile(rf"(?:[\p{{Han}}，。！？；：、（）《》〈〉【】〔〕〖〗“”‘’…—～·\n]|\[(?:{words})\d*\])*")
    assert [made for made in over(paper, *texts) if not allowed.fullmatch(made)] == []


_clause = st.tuples(suspicious | st.just(""), ordinary | st.just(""), suspicious | st.just("")).map("".join)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
@settings(max_examples=30)
@given(
    st.lists(st.one_of(ordinary, _clause), min_size=1, max_size=6), st.lists(st.sampled_from("，。！？\n"), min_size=6)
)
@example(["3#楼", "他住在那", "5#楼"], ["，"] * 6)
def test_a_clause_without_signs_stays(step, clauses: list[str], marks: list[str]):
    """What stands between marks or line ends with none of the signs is never lost to what stands beyond them."""
    text = "".join(one + mark for one, mark in zip(clauses, marks, strict=False))
    [made] = over(step, text)
    assert [one for one in clauses if regex.fullmatch(r"\p{Han}{4,}", one) and one not in made] == []


KEPT = [f"[{name}{number}]" for kind, name in NAMES.items() if kind != "url" for number in ("", 2, 12)] + [EMOTICON]


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_placeholders_stay(step):
    sentences = [f"我说{one}，{one}呢" for one in KEPT]
    assert over(step, *sentences) == sentences
    assert over(step, *KEPT) == KEPT


def test_links_and_mentions_go_with_their_placeholders():
    assert over(normalised, "看[网址3]@[账号2]好") == ["看 好"]
    assert over(paper, "看[网址3]@[账号2]好，找[账号2]") == ["看好，找[账号2]"]


SENTENCE = "我是INFP，吃了5mg，996一年，PUA、ＰＴＳＤ都有😭http://t.cn/a"


def test_the_default_keeps_what_carries_meaning_and_the_paper_chinese_alone():
    assert over(normalised, SENTENCE) == ["我是INFP，吃了5mg，996一年，PUA、PTSD都有"]
    assert over(paper, SENTENCE) == ["我是，吃了，一年，、都有"]
    assert over(paper, "我（INFP）今年25，《Friends》很好看") == ["我今年，很好看"]


def test_a_null_stays_one_and_nothing_stays_nothing():
    assert over(normalised, None, "", "   \n ", "😀😀", "\u200b", "你") == [None, "", "", "", "", "你"]
    assert over(normalised) == []


def test_ten_megabytes_in_one_row():
    long = "我好累😭，真的...[泪]http://t.cn/abc 展开全文\n" * 180_000
    assert len(long.encode()) > 10_000_000
    alone, among = over(normalised, long)[0], over(normalised, "好", long, None)
    assert among == ["好", alone, None]
    assert alone.startswith("我好累，真的……")
    assert not regex.search(r"http|泪|😭|展开全文|\.\.\.", alone)


def test_a_piece_repeated_without_end_is_settled():
    pieces = [*PIECES, "[[泪]", "&am&#112;;", "<<b>b>", "&#38;", "#a", "@a ", "(((", "？！"]
    once = over(normalised, *(piece * 2_000 for piece in pieces))
    again = over(normalised, *once)
    assert [piece for piece, a, b in zip(pieces, once, again, strict=True) if a != b] == []


def test_entities_in_entities_are_taken_apart_or_broken():
    nested = "lt;b>好"
    for _ in range(40):
        nested = "&am&#112;;" + nested
    [made] = over(normalised, nested)
    assert over(normalised, made) == [made]
    assert made.endswith("好")


def test_the_streaming_engine_gives_the_same():
    frame = pl.DataFrame({"text": [f"第{n}个😀http://t.cn/a 這是[泪]" for n in range(70_000)]})
    steps = frame.lazy().select(chain(pl.col("text")))
    whole = steps.collect()  # in slices: a column is longer than one
    assert whole["text"].to_list()[::7_000] == [f"第{n}个 这是" for n in range(0, 70_000, 7_000)]
    assert steps.collect(engine="streaming").equals(whole)


def _letters(text: str) -> Counter[str]:
    return Counter(regex.findall(r"\p{Han}", text))


def _lost(texts: list[str]) -> float:
    """Share of the Chinese characters that the step takes away."""
    made = over(normalised, *texts)
    lost = sum((_letters(text) - _letters(after)).total() for text, after in zip(texts, made, strict=True))
    return lost / sum(_letters(text).total() for text in texts)


def test_help_seeking_posts_and_traditional_articles_lose_no_word(shared: Path):
    kept = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    assert _lost(kept["title"].to_list() + kept["description"].to_list()) == 0
    answers = kept["answers"].list.eval(pl.element().struct.field("text")).explode().to_list()
    assert _lost(answers) < 0.000_5  # two headings between #, an emoticon

    articles = json.loads((shared / "zh_hant" / "DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    assert _lost([one["context"] for article in articles for one in article["paragraphs"]]) == 0
