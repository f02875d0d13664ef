"""Passages: what two texts share word for word is found wherever it stands, and nothing else is."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dedup.group_keys import HASHED, LENGTH, WINDOW, passages

CHARACTERS = st.text(st.sampled_from("的一是在不了有和人这abc é😀，"), max_size=120)


def fingerprints(*texts: str | None) -> list[set[int]]:
    found = passages(pl.Series(texts, dtype=pl.String))
    return [set(found.filter(row=row)["passage"]) for row in range(len(texts))]


def shared_bytes(one: str, other: str) -> int:
    """The bytes of the longest passage that two texts have in common, by trying all."""
    a, b = one.encode(), other.encode()
    longest = 0
    for start in range(len(a)):
        while start + longest < len(a) and a[start : start + longest + 1] in b:
            longest += 1
    return longest


@given(CHARACTERS, CHARACTERS, CHARACTERS, CHARACTERS, st.text(st.sampled_from("的一是在不a"), max_size=60))
def test_a_shared_passage_of_that_length_is_always_found_and_none_that_is_shorter(
    before: str, after: str, left: str, right: str, passage: str
):
    one, other = before + passage + after, left + passage + right
    shared = shared_bytes(one, other)
    a, b = fingerprints(one, other)
    assert [a, b] == [*fingerprints(one), *fingerprints(other)], "what stands beside a text changes nothing"
    if shared >= LENGTH:
        assert a & b
    if shared < HASHED:
        assert a.isdisjoint(b)


def story(n_characters: int) -> str:
    """No 23 characters of it stand twice."""
    return "".join(chr(0x4E00 + n * n % 9973) for n in range(n_characters))


def test_a_text_without_passages_has_none():
    assert fingerprints("", None, "好累", "a" * (LENGTH - 1), "a" * LENGTH)[:4] == [set()] * 4
    assert fingerprints("a" * LENGTH) != [set()]
    empty = passages(pl.Series([], dtype=pl.String))
    assert empty.schema == {"row": pl.UInt32, "passage": pl.UInt64}
    assert empty.is_empty()


def test_a_text_that_repeats_itself_for_ever_has_few():
    """Of equal hashes side by side the last is taken: one for every step, but all of them are one passage."""
    [only] = fingerprints("好" * 100_000)
    assert len(only) <= 3


def test_there_are_about_so_many_as_winnowing_says():
    """2 in (window + 1) of random hashes."""
    found = passages(pl.Series([story(9000)]))
    expected = 2 / (WINDOW + 1) * 9000 * 3
    assert 0.9 * expected < found.height < 1.1 * expected


def test_broken_unicode_is_text_as_well():
    found = passages([b"\xff" * 100, "\ud800" * 100, None])
    assert found["row"].unique().to_list() == [0, 1]
