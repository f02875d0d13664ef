"""Agreement of raters: values that others give, what must not matter, what is undefined, what intervals cover."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from pipelines.core.agreement import MEASURES, against_others, agreement, cohen_kappa, estimate_agreement
from pipelines.core.agreement import mean_kappa as light
from pipelines.core.estimates import Estimate

# A table an item a word, "." where there is no rating; how many labels there are; the figures. Recorded once from
# krippendorff 0.9.0 (alpha), scikit-learn 1.9.1 (kappa, the mean over pairs), irrCAC 0.4.4 (the others; where none is
# missing, statsmodels 0.15.0 has the same Fleiss' kappa). The first is the worked example of Krippendorff (2011), C.
RECORDED = {
    "00.0 1121 2222 2222 1111 0123 3333 0010 1111 .444 ..00 .2..": (
        *(5, 0.818181818181818, 0.743421052631579, 0.7001626371070886, 0.761169275422411, 0.775444068126995),
    ),
    "00 11 11 11 00 00 00 11 01 00 10 00 00 11 11 00 01 11 01 01 11 11 11 11": (
        *(2, 0.791666666666667, 0.5855379188712522, 0.5833333333333333, 0.576719576719577, 0.58974358974359),
    ),
    ".0 .0 11 1. 33 1. .1 11 22 22 .2 33 .0 32 00 2. 11 .0 32 00 21 13 00": (
        *(4, 0.714285714285714, 0.6313993174061433, 0.6190476190476191, 0.610957896672182, 0.621669944573574),
    ),
    "22222 01101 00020 00000 01002 12122 12201 11001 20000 00000 20010 10101 21220 21111 02000 01100": (
        *(3, 0.53125, 0.2656172533465543, 0.26171976841813294, 0.2563212692117, 0.315537303216975),
    ),
    "22222 03203 2.023 22232 33.13 32313 .3.33 00.2. 1.1.. 22.2. 1.321 1211. 12231 3.3.3 .2.2. 00010 22222 333..": (
        *(4, 0.642592592592593, 0.43666666666666676, 0.37316940189407866, 0.493518327278912, 0.532664950244945),
    ),
}
Table = NDArray[np.int64]


def table(written: str) -> Table:
    return np.array([[-1 if one == "." else int(one) for one in item] for item in written.split()])


@st.composite
def tables(draw: st.DrawFn) -> Table:
    shape = draw(st.tuples(st.integers(1, 12), st.integers(2, 5)))
    return draw(arrays(np.int64, shape, elements=st.integers(-1, 3)))


def about(figures: dict[str, float | None]) -> dict[str, object]:
    return {name: None if value is None else pytest.approx(value, abs=1e-9) for name, value in figures.items()}


def test_figures_are_those_that_others_give():
    assert len(RECORDED) == 5
    for written, (n_labels, *values) in RECORDED.items():
        expected = about(dict(zip(MEASURES, values, strict=True)))
        assert agreement(table(written), n_labels) == expected, written


def test_by_hand():
    # 20 agree on yes, 15 on no; 5 and 10 do not. p_o = .7, p_e = (.5 x .6) + (.5 x .4) = .5: kappa .4 (Cohen's table).
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    assert cohen_kappa(*zip(*pairs, strict=True)) == pytest.approx(0.4)
    assert (cohen_kappa("ab", "ba"), cohen_kappa("ab", "ab")) == (-1, 1)
    assert cohen_kappa("aaaaa", "aaaab") == 0, "four of five agree, and it says nothing"
    # pi = .55, .45: Fleiss' p_e = .505, so (.7 - .505) / .495; AC1's 2 x .55 x .45 = .495, so (.7 - .495) / .505;
    # alpha: 55 and 45 of 100 labels: 1 - 99 x 30 / (100² - 55² - 45²).
    figures = agreement(np.array([[one == "yes", other == "yes"] for one, other in pairs]).astype(int))
    by_hand = {"raw": 0.7, "alpha": 1 - 99 * 30 / 4950, "kappa": 0.4, "fleiss": 0.195 / 0.495, "ac1": 0.205 / 0.505}
    assert figures == about(by_hand)


@given(tables(), st.randoms(use_true_random=False))
def test_who_is_who_and_what_labels_are_called_does_not_matter(ratings: Table, random):
    raters, labels, items = list(range(ratings.shape[1])), list(range(4)), list(range(len(ratings)))
    for order in (raters, labels, items):
        random.shuffle(order)
    renamed = np.where(ratings < 0, -1, np.array(labels)[ratings])
    expected = about(agreement(ratings, 4))
    assert agreement(renamed[:, raters][items], 4) == expected
    with_an_empty_item = np.concatenate([ratings, np.full((1, ratings.shape[1]), -1)])
    assert agreement(with_an_empty_item, 4) == expected


@given(tables())
def test_no_figure_is_above_one_and_full_agreement_is_one_only_where_labels_differ(ratings: Table):
    assert all(value is None or value <= 1 for value in agreement(ratings).values())
    alike = np.where(ratings < 0, -1, ratings.max(axis=1)[:, None])
    paired = alike[(alike >= 0).sum(axis=1) > 1]
    several = len(np.unique(paired[paired >= 0])) > 1
    figures = agreement(alike, 4)
    assert figures["raw"] == (1 if len(paired) else None)
    assert figures["alpha"] == (1 if several else None)
    assert figures["kappa"] in {1, None}


def test_what_is_unanimous_or_empty_is_undefined_and_never_one():
    """inspect-ai and irrCAC say 1.0 there by convention."""
    unanimous = {"raw": 1.0} | dict.fromkeys(MEASURES[1:])
    for ratings in (np.zeros((30, 3), int), np.full((60, 2), 3)):
        assert agreement(ratings, 4) == unanimous
        estimates = estimate_agreement(ratings, 4)
        assert estimates.pop("raw") == (1, 1, 1)
        assert set(estimates.values()) == {Estimate(None, None, None)}
    for ratings in (np.full((5, 3), -1), np.zeros((0, 2), int), np.array([[0, -1], [-1, 1]])):
        assert agreement(ratings) == dict.fromkeys(MEASURES)
        assert set(estimate_agreement(ratings).values()) == {Estimate(None, None, None)}
    assert cohen_kappa([], []) is cohen_kappa("aaa", "aaa") is light(np.array([[1, -1], [-1, 1]])) is None
    # Of two pairs one is unanimous: the mean is that of the other.
    assert light(np.array([[0, 0, 1], [0, 0, 0]])) == 0


def test_what_is_no_table_of_ratings_is_refused():
    for ratings in (np.zeros(3, int), np.zeros((2, 2)), np.array([[0, -2]])):
        with pytest.raises(ValueError, match="items x raters"):
            agreement(ratings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="number 2, but there are 2 labels"):
        agreement(np.array([[0, 2]]), 2)
    with pytest.raises(ValueError, match="clusters of the shape"):
        estimate_agreement(np.array([[0, 1]]), clusters=np.array([0, 0]))


def test_intervals_are_of_the_items_and_the_same_for_the_same_seed():
    rng = np.random.default_rng(5)
    ratings = _studies(rng, 1, 300)[0]
    estimates = estimate_agreement(ratings, seed=3)
    assert estimates == estimate_agreement(ratings, seed=3) != estimate_agreement(ratings, seed=4)
    value, low, high = estimates["raw"]
    assert None not in (value, low, high)
    share = agreement(ratings)["raw"]
    assert value == share is not None
    wald = 1.96 * np.sqrt(share * (1 - share) / 300)
    assert (low, high) == pytest.approx((share - wald, share + wald), abs=0.01)
    # Every item twice, as rows of one cluster: no more is known than before. As separate items they seem to tell more.
    twice, items = np.concatenate([ratings, ratings]), np.tile(np.arange(300) * 7, 2)
    clustered = estimate_agreement(twice, clusters=items)["raw"]
    assert (clustered.low, clustered.high) == pytest.approx((low, high), abs=0.01)
    naive = estimate_agreement(twice)["raw"]
    assert naive.low - clustered.low == pytest.approx((1 - 0.5**0.5) * wald, abs=0.01)


def test_a_mean_over_pairs_that_share_little_has_no_interval():
    ratings = np.full((90, 3), -1)
    ratings[:60, :2], ratings[60:, 1:] = np.arange(120).reshape(60, 2) % 7 % 2, np.arange(60).reshape(30, 2) % 5 % 2
    little = estimate_agreement(ratings)
    assert little["kappa"].value is not None
    assert little["kappa"].low is little["kappa"].high is None
    assert little["alpha"].low is not None
    assert estimate_agreement(ratings[:60, :2])["kappa"].low is not None


def test_one_rater_stands_beside_each_other():
    ratings = np.array([[0, 1, 2], [1, -1, 1], [-1, 0, 0], [2, -1, -1]])
    pairs, rows = against_others(ratings, 1)
    assert pairs.tolist() == [[1, 0], [1, 2], [0, 0]]
    assert rows.tolist() == [0, 0, 2]
    assert [one.tolist() for one in against_others(np.array([[-1, 1]]), 0)] == [[], []]


def test_two_thousand_items_and_draws_take_well_under_a_cpu_second():
    """Two of twenty people an item: the ratings of each pair for itself. Measured: .3 s."""
    rng = np.random.default_rng(0)
    ratings = np.full((2000, 20), -1)
    for item in ratings:
        item[rng.permutation(20)[:2]] = rng.integers(0, 4, 2)
    began = time.process_time()
    estimates = estimate_agreement(ratings, 4)
    assert time.process_time() - began < 3, "ten times what it takes"
    assert estimates["alpha"].low is not None


def _studies(rng: np.random.Generator, n_studies: int, n_items: int, error: float = 0.1) -> Table:
    """Two people who err independently over items of which 23 % are False (C): studies x items x 2."""
    truth = rng.random((n_studies, n_items, 1)) > 0.23
    wrong = rng.random((n_studies, n_items, 2)) < error
    return (truth ^ wrong).astype(np.int64)


def _coverage(n_studies: int, n_items: int, seed: int) -> dict[str, float]:
    """How often the interval of a study holds the figure of a study without end."""
    rng = np.random.default_rng(seed)
    limit = agreement(_studies(rng, 1, 1_000_000)[0])
    held = dict.fromkeys(MEASURES, 0)
    for number, ratings in enumerate(_studies(rng, n_studies, n_items)):
        estimates = estimate_agreement(ratings, seed=number)
        for measure, (_, low, high) in estimates.items():
            held[measure] += low <= limit[measure] <= high
    return {measure: count / n_studies for measure, count in held.items()}


def test_intervals_hold_what_they_should():
    """200 studies: within three standard errors, 1.5 %, of 93-97 %."""
    assert {measure: one for measure, one in _coverage(200, 200, seed=1).items() if not 0.9 <= one <= 0.99} == {}


@pytest.mark.slow
@pytest.mark.parametrize("n_items", [100, 300, 1000])
def test_intervals_hold_what_they_should_in_93_to_97_of_100_studies(n_items: int):
    assert {measure: one for measure, one in _coverage(2000, n_items, seed=2).items() if not 0.93 <= one <= 0.97} == {}
