"""Similarities are those of the sets; what is linked is what the similarities of all pairs would link."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from near_texts import TEXTS, jaccard, linked, partition, random_text

from pipelines.core.arrow import buffers
from pipelines.dedup.components import Runs, roots, singletons, unite
from pipelines.dedup.jaccard import link, similarities


def measured(texts: list[str], pairs: list[tuple[int, int]]) -> list[float]:
    left, right = np.array(pairs, np.uint32).reshape(-1, 2).T.copy()
    return similarities(*buffers(texts), left, right).tolist()


@given(st.lists(st.one_of(TEXTS, st.text(max_size=12)), min_size=1, max_size=6))
@example(["", "a", "a\0", "\0", "abcd", "abcde", "abcde" * 40, "哈" * 5, "哈" * 500])  # a missing character is none
def test_similarity_is_that_of_the_sets(texts: list[str]) -> None:
    pairs = [(i, j) for i in range(len(texts)) for j in range(len(texts))]
    assert measured(texts, pairs) == [jaccard(texts[i], texts[j]) for i, j in pairs]


@settings(max_examples=60)
@given(
    st.lists(st.text("ab我", min_size=4, max_size=14), min_size=2, max_size=14),
    st.sampled_from([0.2, 0.5, 0.8, 1.0]),
    st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=3),
)
def test_a_run_is_linked_as_all_its_pairs_would_be(
    texts: list[str], threshold: float, known: list[tuple[int, int]]
) -> None:
    """Also where some rows were united before: `known` stands for what other bands found."""
    n = len(texts)
    whole = Runs(np.arange(n, dtype=np.uint32), np.array([0, n]))
    parents = singletons(n)
    link(*buffers(texts), whole, threshold, parents)
    assert partition(roots(parents).tolist()) == linked(texts, threshold)

    parents = singletons(n)
    before = [(i, j) for i, j in known if i < n and j < n and jaccard(texts[i], texts[j]) >= threshold]
    for i, j in before:
        unite(parents, i, j)
    link(*buffers(texts), whole, threshold, parents)
    assert partition(roots(parents).tolist()) == linked(texts, threshold)


def test_a_similarity_just_at_the_threshold_links() -> None:
    """4 of 5, 8 of 10, … shingles: 0.8, however it is reached."""
    for k in range(1, 40):
        one = random_text(4 * k + 4, seed=k)
        other = one + random_text(k, seed=100 + k)
        parents = singletons(2)
        link(*buffers([one, other]), Runs(np.array([0, 1], np.uint32), np.array([0, 2])), 0.8, parents)
        assert jaccard(one, other) == 0.8
        assert roots(parents).tolist() == [0, 0]


def test_a_long_run_of_like_texts_costs_no_square() -> None:
    """20,000 texts that differ in a number: 2 · 10^8 pairs, of which 20,000 need to be looked at."""
    stem = random_text(200, seed=1)
    texts = [f"{stem}{number}" for number in range(20_000)]
    parents = singletons(len(texts))
    link(*buffers(texts), Runs(singletons(len(texts)), np.array([0, len(texts)])), 0.8, parents)
    assert not roots(parents).any()
