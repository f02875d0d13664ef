"""Words are counted wherever they stand: against counting them one by one."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.words import Words, spelled

_LETTERS = st.text("我们没有了ab😀", min_size=1, max_size=4)


def test_an_alternation_is_spelled_out():
    for pattern, words in {
        "死": "死",
        "难过|哭": "难过 哭",
        "没有?我": "没我 没有我",
        "[来下]世": "来世 下世",
        "[0-3]岁?": "0 0岁 1 1岁 2 2岁 3 3岁",
        "吗[?？]": "吗? 吗？",
        r"\[微信": "[微信",
    }.items():
        assert sorted(spelled(pattern)) == sorted(words.split())


def occurrences(text: str, words: list[str]) -> int:
    return sum(text.startswith(word, at) for word in words for at in range(len(text)))


@given(
    st.lists(st.lists(_LETTERS, max_size=6, unique=True), min_size=1, max_size=4),
    st.lists(st.text("我们没有了ab😀c你", max_size=20), max_size=5),
)
def test_each_list_is_counted_as_if_alone_and_word_by_word(lists: list[list[str]], texts: list[str]):
    counts = Words({str(n): words for n, words in enumerate(lists)}).counted(pl.Series(texts, dtype=pl.String))
    for n, words in enumerate(lists):
        shortest = [word for word in words if not any(other in word for other in words if other != word)]
        assert counts[str(n)].to_list() == [occurrences(text, shortest) for text in texts]


def test_no_text_no_words_and_no_list():
    assert Words({"a": ["我"]}).counted(pl.Series([None, "", "我"], dtype=pl.String))["a"].to_list() == [0, 0, 1]
    assert Words({"a": []}).counted(pl.Series(["我"]))["a"].to_list() == [0]
    assert Words({}).counted(pl.Series(["我"])) == {}


def test_the_whole_of_unicode_is_read():
    texts = pl.Series(["\U0010ffff我\U000e0001", "é我\x00我", "😀我😀😀"])
    assert Words({"a": ["我", "😀"]}).counted(texts)["a"].to_list() == [1, 2, 4]
