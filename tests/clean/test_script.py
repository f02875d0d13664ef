"""Simplified or Traditional: told by the characters that only one of them has."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from pipelines.clean.script import as_simplified, script
from pipelines.ingest.importing import read


def scripts(texts: list[str]) -> list[str]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    return frame.select(script=script(pl.col("text")))["script"].to_list()


def simplified(texts: list[str]) -> list[str]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    return frame.select(made=as_simplified(pl.col("text")))["made"].to_list()


@pytest.fixture(scope="module")
def traditional_texts(shared: Path) -> list[str]:
    """413 paragraphs of Taiwanese encyclopaedia articles."""
    articles = json.loads((shared / "zh_hant" / "DRCD_dev_part.json").read_text(encoding="utf-8"))["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


@pytest.fixture(scope="module")
def simplified_texts(shared: Path) -> list[str]:
    """100 questions of a site on the mainland."""
    return read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept["description"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("这个问题", "simplified"),
        ("這個問題", "traditional"),
        ("我很好", "neutral"),
        ("这个問題", "mixed"),
        ("", "neutral"),
        ("😀😀", "neutral"),
        ("hello", "neutral"),
        ("她說，從這裡到皇后的宮殿還有幾個時辰，請隨我們來", "traditional"),  # 后 stands in both scripts
        ("这个问题说来话长，让我们谈谈爱，谈谈时间" + "愛", "simplified"),  # a name quoted once
    ],
)
def test_it_goes_by_telling_characters(text: str, expected: str):
    assert scripts([text]) == [expected]


def test_real_traditional_text_is_traditional(traditional_texts: list[str]):
    counted = Counter(scripts(traditional_texts))
    assert counted.total() == 413
    assert counted["traditional"] >= 0.99 * 413
    assert counted["simplified"] == 0


def test_real_simplified_text_is_simplified(simplified_texts: list[str]):
    told = [one for text, one in zip(simplified_texts, scripts(simplified_texts), strict=True) if text]
    assert set(told) == {"simplified"}


def test_what_is_converted_changes_sides(traditional_texts: list[str], simplified_texts: list[str]):
    to_simplified, to_traditional = OpenCC("t2s"), OpenCC("s2t")
    assert set(scripts([to_simplified.convert(text) for text in traditional_texts])) == {"simplified"}
    turned = scripts([to_traditional.convert(text) for text in simplified_texts if text])
    assert Counter(turned)["traditional"] >= 0.99 * len(turned)


# --- comparing over scripts


def test_a_simplified_text_stays(simplified_texts: list[str]):
    assert simplified(simplified_texts) == simplified_texts


def test_a_traditional_text_becomes_simplified_character_by_character(traditional_texts: list[str]):
    made = simplified(traditional_texts)
    assert set(scripts(made)) <= {"simplified", "neutral"}
    assert [len(text) for text in made] == [len(text) for text in traditional_texts]


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=20))
def test_it_is_settled_at_once(text: str):
    [once] = simplified([text])
    assert simplified([once]) == [once]
    assert len(once) == len(text)
