"""T of E eq. 6: where it stands between positives and negatives, and how well an encoder tells them apart."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pipelines.rewards.contrastive import unquoted
from pipelines.train.contrastive import MOST_PASSING, SAME_TOPIC, Triplet, choose_threshold, measure
from pipelines.train.embedding import read_thresholds

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


class Letters:
    """An encoder of how often each of three letters stands in a text: whole numbers, so that ties are ties."""

    model = SimpleNamespace(eval=lambda: None)

    def vectors(self, texts, kind):
        return np.array([[text.count(one) for one in "甲乙丙"] for text in texts], np.float64)


def likeness(one, other):
    first, second = Letters().vectors([one, other], "")
    return first @ second


said = st.text("甲乙丙丁", min_size=1, max_size=12)
of_kinds = st.tuples(st.sampled_from(["mismatched_emotion", "generic"]), said, st.sampled_from([True, False, None]))


@given(st.lists(st.tuples(said, said, st.lists(of_kinds, min_size=1, max_size=3)), min_size=2, max_size=6))
def test_auc_by_kind_and_within_a_topic_is_that_of_sklearn(questions):
    """On whole answers as the paper reads them, and on what is left of them without what they quote."""
    triplets = [
        Triplet(f"p{n}", f"g{n}", kind, query, positive, negative, same)
        for n, (query, positive, negatives) in enumerate(questions)
        for kind, negative, same in negatives
    ]
    measured = measure(Letters(), triplets)
    for reading, read in (("paper", lambda _, answer: answer), ("guarded", unquoted)):

        def score(query, answer, read=read):
            return likeness(query, left) if (left := read(query, answer)) else -1.0

        everybody = [score(query, positive) for query, positive, _ in questions]
        sets = {
            kind: (everybody, [score(one.query, one.negative) for one in triplets if one.kind == kind])
            for kind in ("mismatched_emotion", "generic")
        }
        alike = [one for one in triplets if one.kind == "mismatched_emotion" and one.same_topic]
        sets[SAME_TOPIC] = (
            [score(one.query, one.positive) for one in alike],
            [score(one.query, one.negative) for one in alike],
        )
        expected = {
            kind: roc_auc_score([1] * len(positives) + [0] * len(negatives), [*positives, *negatives])
            for kind, (positives, negatives) in sets.items()
            if negatives
        }
        found = {kind: value for kind, value in measured[reading].auc.items() if kind != "in_batch"}
        assert found == pytest.approx(expected)


def test_an_encoder_of_before_has_one_t_for_both_readings():
    both = {"paper": 0.25, "guarded": 0.25}
    for noted, read in ((0.25, both), (both, both), (None, {}), (np.nan, {}), ({"paper": 0.25}, {}), ("0.25", {})):
        assert read_thresholds({"threshold": noted}) == read
    assert read_thresholds({}) == {}


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
