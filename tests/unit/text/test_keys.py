"""What several stages do to a string: the key, the length, the share of Chinese."""

import re
import unicodedata

import polars as pl
import pytest
from columns import over
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.core.arrow import column
from pipelines.errors import RequestError
from pipelines.text import keys

LAW = settings(deadline=None, max_examples=60)  # how long one example takes says nothing on a busy machine

# Characters as people type them, and those that break naive code.
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from("我难过ＡＢab１2，,。？! \n\t\u3000\u200b\u200d\ufeff\u00ad\u2066\u0301é😀❤\ufe0f⼀⺀〇々ㄅアß"),
)
TEXTS = st.text(CHARACTERS, max_size=25)


def measured(*texts: str | None) -> list[tuple[str, int, float]]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    column = pl.col("text")
    return frame.select(keys.key(column), n=keys.n_chars(column), ratio=keys.han_ratio(column)).rows()


def test_what_a_reader_does_not_see_does_not_make_another_text():
    edited = [
        "我 很 难过,怎么办? ABC123",
        "我很难过，怎么办？ＡＢＣ１２３",
        "我很\u3000难过，\n怎么办？\tabc123",
        "\ufeff我很\u200b难过，怎么\u200d办？abc\u00ad123",
        "\u2066我很难过\u2069，怎么办？abc123",
        "\u3164我很难过，怎么办？abc123\u2800",
        "我很难过，怎么办？\x00abc123\ufe0f",
    ]
    assert {key for key, *_ in measured(*edited)} == {"我很难过,怎么办?abc123"}
    others = ("我很难过", "我很难过怎么办?abc123", "我很難過，怎么办？abc123", "", "我很难过，怎么办？abc124")
    assert "我很难过,怎么办?abc123" not in {key for key, *_ in measured(*others)}
    accents = measured("caf\u00e9", "cafe\u0301", "cafe\u200b\u0301")
    assert len({key for key, *_ in accents}) == 1, "an accent is one text however it is typed"


def test_each_level_of_a_strings_key_leaves_out_more():
    text = "ＡＢ, ①那\u3000ß…"
    assert keys.key_of(text, "form") == "ab, 1那 ss..."
    assert keys.key_of(text, "space") == "ab,1那ss..."
    assert keys.key_of(text, "marks") == "ab1那ss"
    for text, plain in {"總是睡不着覺，真的。": "总是睡不着觉真的", "OK，But…": "okbut", "好😊了\0": "好了"}.items():
        assert keys.key_of(text, "script") == keys.key_of(plain, "script") == plain


@LAW
@given(TEXTS)
@example("e\u200b\u0301")
@example("a¨")
def test_a_key_is_its_own_key_is_normal_and_holds_nothing_invisible(one: str):
    made = measured(one)[0][0]
    assert measured(made)[0][0] == made
    assert unicodedata.is_normalized("NFKC", made)
    assert not re.search(r"\s", made)
    assert [character for character in made if unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp"}] == []


def test_length_is_what_a_reader_sees_and_the_share_is_of_letters_and_digits():
    lengths = {" 我 很\u200b难过\n。": 5, "ＡＢ１２": 4, "😀😀": 2, " \n\u3000\u200b": 0}
    assert {text: measured(text)[0][1] for text in lengths} == lengths
    whole = ["我很难过！！！😀😀😀……", "⼀⼆⼈", "〇"]  # radicals, as PDF readers copy them
    parts = {"我ab": 1 / 3, "我1": 1 / 2, "ひらがな": 0, "😀……": 0, "⺀⺀a": 2 / 3, **dict.fromkeys(whole, 1)}
    assert {text: measured(text)[0][2] for text in parts} == pytest.approx(parts)


def test_every_character_is_measured_as_defined():
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    rows = ["".join(every[begin : begin + 16]) for begin in range(0, len(every), 16)]
    assert over(keys.n_chars, *rows) == over(keys.visible, *rows)
    assert over(keys.n_chars, None, "我a", None, "") == [None, 2, None, 0]
    assert over(keys.han_ratio, *rows) == over(keys.share, *rows)


def test_a_key_is_as_defined_whatever_stands_beside_a_character():
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    basic = [one for one in every if ord(one) < 0x10000]
    rows = [*every, *(f"{before}{one}" for before in "eαかᄒ" for one in basic)]
    rows += [f"{one}{after}" for after in "\u0301\u0338\u1161\u11a8ΣA" for one in basic]
    assert over(keys.key, *rows) == over(keys.normalised, *rows)
    assert over(keys.key, None, "我 A", None, "e\u0301", "") == [None, "我a", None, "é", ""]


@LAW
@given(st.lists(st.one_of(TEXTS, st.none())))
def test_keys_are_as_defined(texts: list[str | None]):
    assert over(keys.key, *texts) == over(keys.normalised, *texts)


def test_no_text_has_no_key_and_no_length():
    assert measured(None) == [(None, None, 0.0)]
    assert measured("") == [("", 0, 0.0)]
    assert measured() == []


def test_a_column_is_made_of_whatever_texts_came_as():
    for texts, expected in (
        (["难\ud800过"], ["难\ufffd过"]),  # a lone surrogate: what a broken export leaves of an emoji
        (["\ud83d\ude00"], ["😀"]),  # two that belong together
        (["难过".encode(), b"\xe9\x9a"], ["难过", "\ufffd"]),
        (pl.Series([None, None]), [None, None]),
        ((one for one in "甲乙"), ["甲", "乙"]),
    ):
        made = column(texts)
        assert (made.dtype, made.to_list()) == (pl.String, expected)


def test_what_is_no_column_of_texts_is_refused():
    """The characters of a single text would be read as texts, each too short to hold anything."""
    for other, message in (([1], "text 0"), (pl.Series([1.5]), "text 0"), ("我失眠", "no column"), (b"x", "no column")):
        with pytest.raises(RequestError, match=message):
            column(other)


@LAW
@given(st.lists(st.sampled_from(["我", "难过", "abc", "，", "😀"])), st.data())
def test_white_space_anywhere_changes_nothing(words: list[str], data: st.DataObject):
    gaps = [data.draw(st.text(" \n\t\r\u3000\u00a0\u200b\ufeff", max_size=3)) for _ in words]
    spaced = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    assert measured(spaced) == measured("".join(words))


@LAW
@given(st.lists(st.text(st.one_of(CHARACTERS, st.characters()), max_size=25), max_size=6))
@example(["e", "\u0301", "각\u11a8", "ｶ", "ﾞ", "ß\U000e0100", "", "國\n国", "\U0010fffd的", "\ud800"])
def test_keys_of_many_texts_are_those_of_each(texts):
    assert keys.keys_of(texts) == [keys.key_of(text, "script") for text in texts]
