"""T of E eq. 6: where it stands between positives and negatives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.train.threshold import MOST_PASSING, auc, threshold

scores = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 0.9]), min_size=1, max_size=8).map(np.array)


def accuracy(value, positives, kinds):
    right = [1 - (one > value).mean() for one in kinds.values()]
    return ((positives > value).mean() + sum(right) / len(right)) / 2


def test_of_fewer_than_twenty_negatives_none_passes():
    found = threshold(np.array([0.15, 0.6, 0.8]), {"generic": np.array([0.1, 0.2]), "other_answer": np.zeros(19)})
    assert found.value == 0.2
    assert found.positives == pytest.approx(2 / 3)
    assert found.passes == {"generic": 0, "other_answer": 0}
    assert found.auc == {"generic": pytest.approx(5 / 6), "other_answer": 1}
    assert found.balanced_accuracy == pytest.approx(5 / 6)


@pytest.mark.parametrize(("n", "may_pass"), [(19, 0), (20, 1), (39, 1), (40, 2), (60, 3), (1000, 50)])
def test_one_in_twenty_negatives_may_pass(n, may_pass):
    ladder = np.arange(n) / n
    found = threshold(np.array([2.0]), {"in_batch": ladder})
    assert found.value == ladder[n - 1 - may_pass]
    assert found.passes["in_batch"] == may_pass / n


def test_what_scores_as_much_as_t_does_not_pass():
    """One of twenty may pass; of two that score the same there is no one."""
    found = threshold(np.array([0.5, 0.6]), {"in_batch": np.array([0.5, 0.5, *np.zeros(18)])})
    assert found.value == 0.5
    assert (found.positives, found.passes["in_batch"]) == (0.5, 0)


def test_no_kind_is_outvoted_by_another():
    """A hundred that hardly score do not make up for two that stand among the positives."""
    found = threshold(np.array([0.3, 0.6, 0.6]), {"easy": np.zeros(100), "hard": np.array([0.5, 0.1])})
    assert found.value == 0.5


def test_a_lower_t_of_better_balanced_accuracy_is_not_taken():
    positives, kinds = np.array([0.3, 0.4, 0.5]), {"generic": np.array([0.1, 0.1, 0.6])}
    found = threshold(positives, kinds)
    assert (found.value, found.balanced_accuracy) == (0.6, 0.5)
    assert accuracy(0.2, positives, kinds) > found.balanced_accuracy


many = st.lists(st.floats(-1, 1), min_size=1, max_size=60).map(np.array)


@given(scores, st.dictionaries(st.sampled_from("abc"), many | scores, min_size=1))
def test_no_more_than_one_in_twenty_of_a_kind_pass_and_at_no_lower_place_so_few(positives, kinds):
    found = threshold(positives, kinds)
    assert found.passes == {kind: (one > found.value).mean() for kind, one in kinds.items()}
    assert max(found.passes.values()) <= MOST_PASSING
    below = np.nextafter(found.value, -2)
    assert found.value == -1 or max((one > below).mean() for one in kinds.values()) > MOST_PASSING
    assert found.balanced_accuracy == pytest.approx(accuracy(found.value, positives, kinds))
    assert found.positives == (positives > found.value).mean()


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
            threshold(positives, {"generic": negatives})


def test_without_positives_or_negatives_there_is_none():
    with pytest.raises(ValueError, match="there are none"):
        threshold(np.array([]), {"generic": np.array([0.1])})
    with pytest.raises(ValueError, match="there are none"):
        threshold(np.array([0.1]), {"generic": np.array([])})
