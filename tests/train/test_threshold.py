"""T of E eq. 6: where it stands between positives and negatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.train.threshold import auc, threshold

scores = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 0.9]), min_size=1, max_size=8).map(np.array)


def accuracy(value, positives, kinds):
    right = [1 - (one > value).mean() for one in kinds.values()]
    return ((positives > value).mean() + sum(right) / len(right)) / 2


def test_it_stands_in_the_middle_of_what_it_parts():
    found = threshold(np.array([0.6, 0.8]), {"generic": np.array([0.1, 0.2]), "other_answer": np.array([0.0])})
    assert found.value == pytest.approx(0.4)
    assert (found.balanced_accuracy, found.positives) == (1, 1)
    assert found.passes == {"generic": 0, "other_answer": 0}
    assert found.auc == {"generic": 1, "other_answer": 1}


def test_of_equally_good_places_the_widest_and_then_the_higher_is_taken():
    narrow_then_wide = threshold(np.array([0.3, 0.9]), {"generic": np.array([0.2, 0.4])})
    assert narrow_then_wide.value == pytest.approx(0.65)
    twice_as_wide = threshold(np.array([0.3, 0.5]), {"generic": np.array([0.2, 0.4])})
    assert twice_as_wide.value == pytest.approx(0.45)


def test_kinds_weigh_the_same_however_many_there_are():
    """By their number, the hundred easy ones would outvote the two that stand among the positives."""
    found = threshold(np.array([0.3, 0.6, 0.6]), {"easy": np.zeros(100), "hard": np.array([0.5, 0.5])})
    assert found.value == pytest.approx(0.55)
    assert found.balanced_accuracy == pytest.approx(5 / 6)


@given(scores, st.dictionaries(st.sampled_from("abc"), scores, min_size=1))
def test_no_other_place_is_better(positives, kinds):
    found = threshold(positives, kinds)
    assert -1 <= found.value <= 1
    assert found.balanced_accuracy == pytest.approx(accuracy(found.value, positives, kinds))
    everywhere = np.linspace(-1, 1, 81)
    assert found.balanced_accuracy >= max(accuracy(one, positives, kinds) for one in everywhere) - 1e-9
    assert found.positives == (positives > found.value).mean()


@given(scores, scores)
def test_the_area_is_the_share_of_pairs_in_order(positives, negatives):
    pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positives for n in negatives]
    assert auc(positives, negatives) == pytest.approx(sum(pairs) / len(pairs))


def test_without_positives_or_negatives_there_is_none():
    with pytest.raises(ValueError, match="there are none"):
        threshold(np.array([]), {"generic": np.array([0.1])})
    with pytest.raises(ValueError, match="there are none"):
        threshold(np.array([0.1]), {"generic": np.array([])})
