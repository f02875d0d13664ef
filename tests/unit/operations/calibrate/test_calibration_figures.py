"""Shares and their intervals, agreement of readers, the area under a curve: each against somebody else's."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from pipelines.operations.calibrate.figures import Figures, auc, mean_kappa, wilson


@given(st.integers(1, 3000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_has_wilsons_interval_as_scipy_has_it(counts: tuple[int, int]):
    hits, of = counts
    bounds = binomtest(hits, of).proportion_ci(0.95, method="wilson")
    estimate = wilson(hits, of)
    assert estimate is not None
    assert estimate == pytest.approx((hits / of, bounds.low, bounds.high), abs=1e-9)
    assert 0 <= estimate.low <= estimate.value + 1e-12 <= estimate.high + 2e-12 <= 1 + 2e-12


def test_wilson_by_hand_and_of_nothing_there_is_none():
    # z² = 3.8415; 9 of 10: (.9 + .19207 ± 1.96 · √(.009 + .0096036)) / 1.38415 = (1.09207 ± .26733) / 1.38415
    assert wilson(9, 10) == pytest.approx((0.9, 0.59585, 0.98212), abs=1e-4)
    assert wilson(0, 0) is None


def test_precision_is_of_what_was_found_and_recall_of_what_is_labelled():
    figures = Figures("risk", "any", 100, labelled=20, found=10, right=9, missed=12)
    assert figures.precision == wilson(9, 10)
    assert figures.recall == wilson(8, 20)
    nothing = Figures("risk", "any", 100, labelled=0, found=0, right=0, missed=0)
    assert nothing.precision is nothing.recall is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_the_kappa_of_two_readers_is_sklearns(said: list[tuple[bool, bool]]):
    assume(len({one for pair in said for one in pair}) == 2)
    ours = mean_kappa([{"A": one, "B": other} for one, other in said])
    assert ours == pytest.approx(cohen_kappa_score(*zip(*said, strict=True)))


def test_of_more_readers_it_is_the_mean_of_all_pairs_over_the_posts_that_both_read():
    a, b, c = [True, True, False, False, True], [True, False, False, False, True], [True, True, True, False]
    readings = [{"A": one, "B": other} for one, other in zip(a, b, strict=True)]
    for reading, third in zip(readings, c, strict=False):
        reading["C"] = third
    pairs = [cohen_kappa_score(a, b), cohen_kappa_score(a[:4], c), cohen_kappa_score(b[:4], c)]
    assert mean_kappa(readings) == pytest.approx(np.mean(pairs))
    assert mean_kappa([{"A": True}, {"B": False}, {}]) is None, "no post was read by two"
    assert mean_kappa([{"A": True, "B": True}] * 3) is None, "chance alone agrees as much"


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_the_area_under_the_curve_is_sklearns(scored: list[tuple[int, bool]]):
    scores, positive = [score / 5 for score, _ in scored], {place for place, (_, one) in enumerate(scored) if one}
    if 0 < len(positive) < len(scores):
        assert auc(scores, positive) == pytest.approx(roc_auc_score([one for _, one in scored], scores))
    else:
        assert auc(scores, positive) is None
