"""Figures with their intervals, and the area under a curve: each against somebody else's, or by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from pipelines.core.estimates import (
    Estimate,
    auc,
    bootstrap,
    bounded_share,
    estimate_mean,
    estimate_share,
    ratios,
    weighted_auc,
    wilson,
)

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 0.9]), max_size=8).map(
    lambda one: np.array(one, np.float64)
)


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


@given(SCORES, SCORES)
def test_the_area_under_the_curve_is_sklearns_and_the_share_of_pairs_in_order(positives, negatives):
    if not len(positives) or not len(negatives):
        assert auc(positives, negatives) is None
        return
    labels = [1] * len(positives) + [0] * len(negatives)
    assert auc(positives, negatives) == pytest.approx(roc_auc_score(labels, [*positives, *negatives]))
    pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positives for n in negatives]
    assert auc(positives, negatives) == pytest.approx(sum(pairs) / len(pairs))


@given(SCORES, SCORES, st.integers(0, 99))
def test_a_weight_is_how_often_a_score_stands_there(positives, negatives, seed):
    rng = np.random.default_rng(seed)
    of_positives, of_negatives = (rng.integers(0, 3, (4, len(one))) for one in (positives, negatives))
    areas = weighted_auc(positives, negatives, of_positives.astype(float), of_negatives.astype(float))
    for area, left, right in zip(areas, of_positives, of_negatives, strict=True):
        written_out = auc(np.repeat(positives, left), np.repeat(negatives, right))
        assert written_out is None if np.isnan(area) else area == pytest.approx(written_out)


def means(values: np.ndarray) -> list[Estimate]:
    return bootstrap(ratios(values[:, None], np.ones((len(values), 1))), len(values), seed=3)


def test_an_interval_is_the_same_for_the_same_seed_and_alike_items_may_be_counted():
    values = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    [one] = means(values)
    assert one == means(values)[0]
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.value == 0.625 < one.high
    kinds = ratios(np.array([[0.0], [1.0]]), np.ones((2, 1)))
    [counted] = bootstrap(kinds, np.array([3, 5]), seed=3)
    assert counted == pytest.approx(one, abs=0.13)  # other draws of the same: shares of 8


def test_what_is_undefined_has_no_interval():
    nothing = ratios(np.zeros((0, 1)), np.zeros((0, 1)))
    assert bootstrap(nothing, 0) == [Estimate(None, None, None)]
    assert means(np.array([0.5])) == [Estimate(0.5, None, None)], "one item says nothing of others"
    rare = np.zeros((6, 1))
    rare[0] = 1
    assert bootstrap(ratios(rare, rare), 6) == [Estimate(1.0, None, None)], "a third of the draws lacks it"


@pytest.mark.parametrize("n_items", [10, 30, 100])
def test_intervals_hold_the_mean_in_93_to_97_of_100_studies(n_items: int):
    rng = np.random.default_rng(1)
    truth, studies, held = 0.5, 1000, 0
    for _ in range(studies):
        # The mean of each item is its own, and five ratings scatter about it.
        values = rng.beta(2, 2, n_items) + rng.normal(0, 0.4, (5, n_items)).mean(axis=0)
        [mean] = bootstrap(ratios(values[:, None], np.ones((n_items, 1))), n_items, draws=500)
        held += mean.low <= truth <= mean.high
    assert 0.93 <= held / studies <= 0.97


def test_the_order_of_values_says_nothing_about_their_mean_or_its_interval():
    rng = np.random.default_rng(3)
    values, items = rng.normal(size=40), np.array([f"q{n % 9}" for n in range(40)])
    order = rng.permutation(40)
    mean = estimate_mean(values, items)
    assert estimate_mean(values[order], items[order]) == pytest.approx(mean)


def test_a_share_of_few_or_of_nearly_all_is_wilsons_by_item():
    items = [f"q{n // 2}" for n in range(20)]
    for hit in (0.0, 1.0):
        share = estimate_share(np.array([*np.full(18, hit), np.nan, np.nan]), items)
        assert share == wilson(int(hit) * 9, 9), "of nine questions something is known"
    few = np.array([1.0] * 14 + [0.0] * 6)
    assert estimate_share(few, items) == wilson(7, 10), "three have none"
    some = np.array([0.0, 1.0] * 10)
    assert estimate_share(some, items) == estimate_mean(some, items)
    assert estimate_share(np.empty(0), []) == Estimate(None, None, None)


@pytest.mark.parametrize(("n_items", "rare"), [(20, 0.05), (50, 0.026), (60, 0.06), (30, 0.9)])
def test_of_rare_shares_the_interval_holds_the_truth_at_least_as_often_as_it_says(n_items: int, rare: float):
    """Of five ratings an item, more or less alike: a bootstrap alone held the first of these in 64 of 100 studies."""
    rng, studies, held = np.random.default_rng(5), 200, 0
    for seed in range(studies):
        hits = rng.binomial(5, rng.beta(rare * 4, (1 - rare) * 4, size=n_items)).astype(float)
        counts = np.full(n_items, 5.0)
        [drawn] = bootstrap(ratios(hits[:, None], counts[:, None]), n_items, draws=200, seed=seed)
        share = bounded_share(drawn, hits, counts)
        held += share.low <= rare <= share.high
    assert held / studies >= 0.93
