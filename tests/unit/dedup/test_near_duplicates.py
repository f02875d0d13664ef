"""The clusters: right on every input, the same in every order, with the survivor that the rule says."""

from datetime import date
from pathlib import Path
from random import Random
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import edited, jaccard, linked, partition, random_text, series, smile

from pipelines.dedup import find_duplicates
from pipelines.errors import RequestError, UnknownName

ALL = (64, 2)  # bands that miss a pair of 0.5 once in 10^8, and one of 0.8 never
NEAR = st.text("ab我", min_size=6, max_size=14)
MODES = pytest.mark.parametrize("mode", ["exact", "fast"])


def clusters(texts: object, **settings: object) -> set[frozenset[int]]:
    return partition(find_duplicates(texts, **settings)["cluster_id"].to_list())


@MODES
def test_short_texts_are_one_only_where_they_are_equal_a_null_is_none_and_what_is_no_unicode_counts(mode: str) -> None:
    surrogate, truncated = "我真的睡不着\ud800了怎么办", "我真的睡不着".encode() + b"\xe6\x80" + "了怎么办".encode()
    offsets = pa.py_buffer(np.array([0, len(truncated), len(truncated) + 1], np.int64))
    for texts, names in (
        (["我失眠", "好累啊", "我", "你", "我失", "失眠", "我失眠了", "我失眠了吗"], range(8)),
        (["我", "你", "我", "我失眠", "我失眠"], [0, 1, 0, 3, 3]),
        ([None, "", None, "", "我", None], [0, 1, 2, 1, 4, 5]),
        (["😭😭😭", "😭😭", "👨‍👩‍👧‍👦", "👨‍👩‍👦‍👦", "1️⃣", "😭😭😭", "🇨🇳", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"], [0, 1, 2, 3, 4, 0, 6, 7]),
        (["😭" * 300, "😭" * 299], [0, 0]),  # they have the same shingle, and no other
        ([surrogate, truncated, "我真的睡不着\ufffd了怎么办"], [0, 0, 0]),
        (pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(truncated + b"\xf0")), [0, 1]),
    ):
        assert clusters(texts, mode=mode) == partition(names)


@MODES
def test_a_post_of_45_characters_with_one_changed_is_found(mode: str) -> None:
    one = "最近两个月几乎每天都失眠，白天没有精神，晚上又不敢睡，已经影响到工作了，很想知道该怎么办呢"
    assert len(one) == 45
    other = one[:2] + "三" + one[3:]
    assert jaccard(one, other) > 0.8
    assert clusters([one, other], mode=mode) == {frozenset([0, 1])}


@MODES
def test_nothing_is_a_table_without_rows(mode: str) -> None:
    found = find_duplicates([], mode=mode)
    assert found.is_empty()
    kinds = {"keep": pl.Boolean, "similarity": pl.Float64}
    assert found.schema == dict.fromkeys(("row", "cluster_id", "keep", "cluster_size", "similarity"), pl.UInt32) | kinds
    assert find_duplicates(["我们都是好孩子"] * 2, mode=mode).schema == found.schema


@MODES
def test_ten_megabytes_in_one_text(mode: str) -> None:
    long = random_text(3_500_000, seed=1)
    assert len(long.encode()) > 10_000_000
    near = long[:1_000_000] + "。" + long[1_000_001:]
    texts = [long[:200], near, random_text(3_500_000, seed=2), "短", long]
    found = find_duplicates(texts, mode=mode)
    assert found["cluster_id"].to_list() == [0, 1, 2, 3, 1]
    n = len(long) - 4
    assert found["similarity"].to_list() == [1.0, 1.0, 1.0, 1.0, (n - 5) / (n + 5)]


@MODES
def test_the_same_text_a_million_times(mode: str) -> None:
    text = "今天也没有睡着，明天还要上班，真的不知道怎么办才好"
    found = find_duplicates(pl.Series([text]).new_from_index(0, 1_000_000), mode=mode)
    assert found["cluster_id"].unique().to_list() == [0]
    assert found["keep"].sum() == 1
    assert found["cluster_size"].unique().to_list() == [1_000_000]
    assert found["similarity"].unique().to_list() == [1.0]


def test_impossible_arguments_are_refused() -> None:
    for threshold in (0, -0.1, 1.01, float("nan")):
        with pytest.raises(RequestError, match="threshold"):
            find_duplicates(["我"], threshold)
    with pytest.raises(UnknownName, match="quick"):
        find_duplicates(["我"], mode="quick")
    with pytest.raises(RequestError, match="2 texts cannot be ordered by a series of 1"):
        find_duplicates(["我", "你"], ids=pl.Series(["a"]))
    with pytest.raises(RequestError, match="int"):
        find_duplicates([1, 2])


@settings(max_examples=50)
@given(st.lists(NEAR | st.none(), max_size=20), st.sampled_from([0.5, 0.8, 1.0]), st.sampled_from(["exact", "fast"]))
def test_clusters_are_those_of_all_pairs(texts: list[str | None], threshold: float, mode: str) -> None:
    with mock.patch("pipelines.dedup.duplicates.BANDS", ALL):
        assert clusters(series(texts), threshold=threshold, mode=mode) == linked(texts, threshold)


@settings(max_examples=50)
@given(st.lists(NEAR | st.none(), max_size=16), st.randoms(use_true_random=False))
def test_the_order_of_the_texts_does_not_matter(texts: list[str | None], random: Random) -> None:
    frame = pl.DataFrame({"id": pl.Series([f"{row:02}" for row in range(len(texts))]), "text": series(texts)})

    def survivors(rows: pl.DataFrame) -> list[tuple[str, str, float]]:
        found = find_duplicates(rows["text"], 0.5, ids=rows["id"])
        return sorted(zip(rows["id"], rows["id"].gather(found["cluster_id"]), found["similarity"], strict=True))

    order = list(range(len(texts)))
    random.shuffle(order)
    assert survivors(frame) == survivors(frame[order])


@MODES
def test_threads_share_the_work_and_change_nothing(mode: str) -> None:
    random = Random(1)
    texts = [random_text(120, seed) for seed in range(700)]
    texts += [edited(text, random, 0.02) for text in texts for _ in range(2)]
    alone = find_duplicates(texts, mode=mode)
    assert alone.height - alone["keep"].sum() > 1000
    for threads in (2, 3):
        with mock.patch("polars.thread_pool_size", return_value=threads):
            assert find_duplicates(texts, mode=mode).equals(alone)


LONG = "我已经三个月没有好好睡觉了，每天晚上都在想工作上的事情，白天又完全提不起精神"
LONGER = LONG + "来"
DAYS = [date(2025, 1, day) for day in (1, 2, 3)]


def test_the_earliest_survives_then_the_longest_in_characters_then_the_smallest_id() -> None:
    longer = random_text(60, seed=1)
    more_bytes = "😀😀😀😀" + longer[5:]
    assert len(more_bytes.encode()) > len(longer.encode())
    for texts, order, survivor in (
        ([LONGER, LONG, LONG], {"earliest": [DAYS[2], DAYS[1], DAYS[0]]}, 2),
        ([LONGER, LONG, LONG], {"earliest": [None, DAYS[2], None]}, 1),
        ([LONG, LONGER, LONG], {"earliest": [DAYS[0]] * 3}, 1),
        ([more_bytes, longer], {}, 1),
        ([LONG, LONGER, LONG, LONGER], {"ids": ["a", "c", "b", "b2"]}, 3),
        ([LONG, LONG], {}, 0),
    ):
        found = find_duplicates(texts, **{name: pl.Series(values) for name, values in order.items()})
        assert found["cluster_id"].unique().to_list() == [survivor]


def test_a_chain_is_one_cluster_and_says_how_far_its_ends_are() -> None:
    stem = random_text(100, seed=1)
    chain = [stem[start : start + 80] for start in (0, 8, 16)]
    found = find_duplicates(chain)
    assert found["cluster_id"].to_list() == [0, 0, 0]
    assert found["similarity"].to_list() == [1.0, jaccard(*chain[:2]), jaccard(chain[0], chain[2])]
    assert found["similarity"][1] > 0.8 > found["similarity"][2]


@MODES
def test_planted_edits_of_real_dialogues_are_found_and_nothing_else(shared: Path, mode: str) -> None:
    """The default bands miss few pairs of 0.8 or more: at most 1.5 of a hundred just there, fewer above."""
    random = Random(5)
    texts = [text[start : start + 200] for text in smile(shared) for start in (0, 200, 400) if len(text) >= start + 200]
    originals = len(texts)
    texts += [edited(text, random, random.uniform(0.003, 0.03)) for text in texts]
    found = find_duplicates(texts, mode=mode)
    similar = {(i, i + originals) for i in range(originals) if jaccard(texts[i], texts[i + originals]) >= 0.8}
    names = found["cluster_id"].to_list()
    missed = [(i, j) for i, j in similar if names[i] != names[j]]
    assert len(similar) > 400
    assert len(missed) / len(similar) < 0.01
    for row, survivor, similarity in (
        found.filter(~pl.col("keep")).select("row", "cluster_id", "similarity").iter_rows()
    ):
        assert similarity == jaccard(texts[row], texts[survivor])
