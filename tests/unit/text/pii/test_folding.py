import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.pii.folding import fold
from pipelines.text.pii.spans import matches, spans

WIDE = "１２３①❸⑴㊀ａＺ＠．一二a1 微信電話\u200b\u200d\ufe0f\u20e3\ufdd0\ufdd1\u3000\n😭"
AWKWARD = st.text(st.sampled_from(WIDE) | st.characters(exclude_categories=["Cs"]), max_size=30)


def folded(text: str) -> str:
    return fold(pl.Series([text])).texts.item()


def test_digits_letters_and_scripts_are_one():
    assert folded("１３８①❷⑶㊀1️⃣ⓥＸ＠．電話號碼") == "13812" + "3一1vX@.电话号码"
    assert folded("微\u200b信\u2060\ufeff") == "微信"
    assert folded("一二三，：！？") == "一二三，：！？"


def test_a_numeral_alone_counts_what_follows():
    assert folded("①13812345678②139⑴好吗㈠是的⒈不行1️⃣0") == "①13812345678②139⑴好吗㈠是的⒈不行①0"
    assert folded("1③8①2③4") == "1381234"
    assert fold(pl.Series(["a①", "②b", "x²"])).texts.to_list() == ["a①", "②b", "x2"]


@given(st.lists(AWKWARD | st.none(), max_size=20))
def test_every_span_of_the_folded_text_is_one_of_the_text(texts):
    """Each folded character leads back to what folds to it, alone or twice, and between two of them nothing is lost."""
    result = fold(pl.Series(texts, dtype=pl.String))
    assert len(result.texts) == len(texts)
    found = spans(matches(result.texts, r"(?s:.)"), "phone", pl.col("hit"))
    back = result.back(found)
    for (row, start, end, _, _), character in zip(back.iter_rows(), found["value"], strict=True):
        written = (texts[row] or "").encode()[start:end].decode()
        assert character in (folded(written), folded(written + written)[:1])
    ends = back.group_by("row", maintain_order=True).agg(pl.col("start"), pl.col("end"))
    for starts, stops in ends.select("start", "end").iter_rows():
        assert starts[1:] == stops[:-1]


def test_what_is_put_aside_at_the_start_of_a_row_is_not_of_the_row_before():
    result = fold(pl.Series(["①", "\x00a"]))
    found = spans(matches(result.texts, r"(?s:.)"), "phone", pl.col("hit"))
    assert result.back(found).select("row", "start", "end").rows() == [(0, 0, 3), (1, 1, 2)]


def test_a_frame_for_a_digit_without_any_is_read_all_the_same():
    assert fold(pl.Series(["\ufe0f\u20e3", "\u20e3"])).texts.to_list() == ["", ""]


@given(st.lists(AWKWARD, max_size=10))
def test_folding_twice_is_folding_once(texts):
    once = fold(pl.Series(texts, dtype=pl.String)).texts
    assert fold(once).texts.equals(once)
