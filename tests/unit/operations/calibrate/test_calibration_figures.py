"""Precision and recall of what was counted, and the agreement of readers."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from pipelines.core.estimates import wilson
from pipelines.operations.calibrate.measuring import Figures, mean_kappa


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
