"""Gaussian turn sampling (C eq. 1): the law, drawn without replacement, the same for ever."""

from collections import Counter
from itertools import permutations
from math import exp, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.split.gaussian import round_probabilities, sample_rounds

LAW = settings(deadline=None)  # how long one example takes says nothing on a busy machine

ROUNDS = st.integers(1, 60)
DRAWS = 40_000


def subsets(n_rounds: int, n_samples: int) -> dict[tuple[int, ...], float]:
    """How likely each set of rounds is: successive draws, renormalised, over all orders in which it can be drawn."""
    law = dict(enumerate(round_probabilities(n_rounds), 1))
    exact: dict[tuple[int, ...], float] = {}
    for order in permutations(law, n_samples):
        left = [1 - sum(law[drawn] for drawn in order[:n]) for n in range(n_samples)]
        chosen = tuple(sorted(order))
        exact[chosen] = exact.get(chosen, 0) + prod(law[one] / rest for one, rest in zip(order, left, strict=True))
    return exact


def test_worked_values():
    """papers.md §3: half a round early, as printed."""
    for law in ([1], [0.8808, 0.1192], [0.4610, 0.4610, 0.0779], [0.1155, 0.2250, 0.2810, 0.2250, 0.1155, 0.0380]):
        assert round_probabilities(len(law)) == pytest.approx(law, abs=5e-5)


@LAW
@given(ROUNDS, st.booleans())
def test_it_is_the_formula(n_rounds: int, centred: bool):
    mean, deviation = (n_rounds + 1) / 2 if centred else n_rounds / 2, n_rounds / 4
    weights = [exp(-((i - mean) ** 2) / (2 * deviation**2)) for i in range(1, n_rounds + 1)]
    law = round_probabilities(n_rounds, centred=centred)
    assert law == pytest.approx([weight / sum(weights) for weight in weights])


def test_no_rounds_and_no_samples_are_refused():
    for number in (0, -1):
        for refused in (round_probabilities, lambda n: sample_rounds(5, n, "d")):
            with pytest.raises(ValueError, match="at least one round"):
                refused(number)


@LAW
@given(ROUNDS, st.integers(1, 70), st.text(max_size=10), st.integers(), st.booleans())
def test_different_rounds_in_their_order(n_rounds: int, n_samples: int, key: str, seed: int, centred: bool):
    drawn = sample_rounds(n_rounds, n_samples, key, seed, centred=centred)
    assert drawn == sorted(set(drawn))
    assert set(drawn) <= set(range(1, n_rounds + 1))
    assert len(drawn) == min(n_samples, n_rounds)
    assert drawn == sample_rounds(n_rounds, n_samples, key, seed, centred=centred)


@LAW
@given(st.integers(1, 6), st.text(max_size=5))
def test_wanting_more_keeps_what_was_drawn(n_samples: int, key: str):
    assert set(sample_rounds(8, n_samples, key)) <= set(sample_rounds(8, n_samples + 1, key))


def test_another_seed_and_another_dialogue_draw_differently():
    keys = [f"d{n}" for n in range(200)]
    first = [tuple(sample_rounds(12, 3, key)) for key in keys]
    assert len(set(first)) > 60
    other_seed = [tuple(sample_rounds(12, 3, key, 1)) for key in keys]
    assert sum(one == other for one, other in zip(first, other_seed, strict=True)) < 20


def test_the_draws_of_published_samples_never_change():
    """Written down once: a change here moves every sampled round of every corpus."""
    drawn = [sample_rounds(10, 3, key) for key in ("smile:1", "smile:2", "esconv:7")]
    assert drawn == [[1, 5, 8], [6, 7, 10], [2, 4, 6]]


def test_draws_of_three_follow_the_law():
    """N_r = 6, N_s = 3: every one of the twenty sets, and every round by itself."""
    drawn = Counter(tuple(sample_rounds(6, 3, f"d{n}")) for n in range(DRAWS))
    exact = subsets(6, 3)
    assert len(exact) == 20
    assert chisquare([drawn[chosen] for chosen in exact], [p * DRAWS for p in exact.values()]).pvalue > 0.001
    inclusion = [sum(p for chosen, p in exact.items() if number in chosen) for number in range(1, 7)]
    assert inclusion == pytest.approx([0.40, 0.66, 0.74, 0.66, 0.40, 0.15], abs=0.005), "those of the spec"
    for number, probability in enumerate(inclusion, 1):
        held = sum(count for chosen, count in drawn.items() if number in chosen)
        assert chisquare([held, DRAWS - held], [probability * DRAWS, (1 - probability) * DRAWS]).pvalue > 0.001
