"""Band keys are equal where bands are; runs are the rows of equal keys."""

from collections import defaultdict

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from near_texts import TEXTS

from pipelines.core.arrow import buffers
from pipelines.dedup import signatures
from pipelines.dedup.bands import band_keys, runs


@given(st.lists(TEXTS, min_size=1, max_size=12), st.sampled_from(["exact", "fast"]), st.sampled_from([(18, 7), (5, 1)]))
def test_keys_agree_where_the_rows_of_a_band_do(texts: list[str], mode: str, bands: tuple[int, int]) -> None:
    b, r = bands
    rows = signatures(texts, mode=mode)[:, : b * r].reshape(len(texts), b, r)
    keys = band_keys(*buffers(texts), mode, bands=bands)
    assert keys.shape == (b, len(texts))
    for i in range(len(texts)):
        np.testing.assert_array_equal(keys == keys[:, [i]], (rows == rows[i]).all(axis=2).T)


def test_the_same_band_elsewhere_has_another_key() -> None:
    keys = band_keys(*buffers([""]), bands=(18, 7))  # all bands of nothing are alike
    assert len(set(keys.ravel().tolist())) == 18


@given(st.lists(TEXTS, min_size=1, max_size=12), st.data())
def test_a_key_depends_on_its_text_alone(texts: list[str], data: st.DataObject) -> None:
    whole = band_keys(*buffers(texts), "fast")
    rows = np.array(data.draw(st.lists(st.integers(0, len(texts) - 1))), np.uint32)
    np.testing.assert_array_equal(band_keys(*buffers(texts), "fast", rows=rows), whole[:, rows])
    np.testing.assert_array_equal(band_keys(*buffers([texts[row] for row in rows]), "fast"), whole[:, rows])


KEYS = st.integers(0, 2**16).map(lambda n: n * 0x9E3779B97F4A7C15 % 2**64)  # that differ in their upper bits


@given(st.lists(KEYS, max_size=40), st.booleans())
@example([2**64 - 1] * 3, True)
def test_runs_are_the_rows_with_equal_keys(keys: list[int], numbered: bool) -> None:
    rows = np.arange(len(keys), dtype=np.uint32) * 2 + 5 if numbered else None
    found = runs(np.array(keys, np.uint64), rows)
    expected = defaultdict(list)
    for row, key in enumerate(keys):
        expected[key].append(row * 2 + 5 if numbered else row)
    groups = [group.tolist() for group in np.split(found.rows, found.starts[1:-1])] if len(found.rows) else []
    assert sorted(groups) == sorted(group for group in expected.values() if len(group) > 1)
    assert found.starts[-1] == len(found.rows)
