"""T of E eq. 6: where it stands between positives and negatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.train.contrastive import MOST_PASSING, auc, choose_threshold

scores = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 0.9]), min_size=1, max_size=8).map(np.array)


def accuracy(value, positives, kinds):
    right = [1 - (one > value).mean() for one in kinds.values()]
    return ((positives > value).mean() + sum(right) / len(right)) / 2


def test_of_fewer_than_twenty_negatives_none_passes():
    kinds = {"generic": np.array([0.1, 0.2]), "other_answer": np.zeros(19)}
    chosen = choose_threshold(np.array([0.15, 0.6, 0.8]), kinds)
    assert chosen.value == 0.2
    assert chosen.positives == pytest.approx(2 / 3)
    assert chosen.passes == {"generic": 0, "other_answer": 0}
    assert chosen.auc == {"generic": pytest.approx(5 / 6), "other_answer": 1}
    assert chosen.balanced_accuracy == pytest.approx(5 / 6)


many = st.lists(st.floats(-1, 1), min_size=1, max_size=60).map(np.array)


@given(scores, st.dictionaries(st.sampled_from("abc"), many | scores, min_size=1))
def test_no_more_than_one_in_twenty_of_a_kind_pass_and_at_no_lower_place_so_few(positives, kinds):
    """No kind is outvoted by another, nor by the balanced accuracy."""
    assert MOST_PASSING == 1 / 20
    chosen = choose_threshold(positives, kinds)
    assert chosen.passes == {kind: (one > chosen.value).mean() for kind, one in kinds.items()}
    assert max(chosen.passes.values()) <= MOST_PASSING
    below = np.nextafter(chosen.value, -2)
    assert chosen.value == -1 or max((one > below).mean() for one in kinds.values()) > MOST_PASSING
    assert chosen.balanced_accuracy == pytest.approx(accuracy(chosen.value, positives, kinds))
    assert chosen.positives == (positives > chosen.value).mean()


@given(scores, scores)
def test_the_area_is_the_share_of_pairs_in_order(positives, negatives):
    pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positives for n in negatives]
    assert auc(positives, negatives) == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_of_what_is_no_number_there_is_none(value: float):
    """`max` would pass NaN over, and T would be −1: all passes."""
    some, lost = np.array([0.1, 0.2]), np.array([0.1, value, 0.3])
    for positives, negatives in ((lost, some), (some, lost)):
        with pytest.raises(FloatingPointError, match="of 5 cosines 1 are NaN or infinite"):
            choose_threshold(positives, {"generic": negatives})


def test_without_positives_or_negatives_there_is_none():
    some, none = np.array([0.1]), np.array([])
    for positives, negatives in ((none, some), (some, none)):
        with pytest.raises(ValueError, match="there are none"):
            choose_threshold(positives, {"generic": negatives})
