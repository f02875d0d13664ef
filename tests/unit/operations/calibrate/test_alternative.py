"""Whether a model may stand in for a person: by hand, in simulation, and against what the authors' procedure gives."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, ttest_1samp

from pipelines.errors import RequestError
from pipelines.operations.calibrate.judges import EPSILON, Alternative, run_alternative_test

Labels = NDArray[np.int64]


def noisy(rng: np.random.Generator, truth: Labels, error: float, n_labels: int = 2) -> Labels:
    """What somebody says who errs in so great a share of the items, every wrong label as often."""
    wrong = (truth + rng.integers(1, n_labels, truth.shape)) % n_labels
    return np.where(rng.random(truth.shape) < error, wrong, truth)


def test_by_hand():
    """Three people agree on all of 40 items, and a model differs on 4: the difference is 1 there, else 0. Its mean is
    .1, its variance (4 x .81 + 36 x .01) / 39 = .0923; for epsilon .2, t = -.1 / sqrt(.0923 / 40) = -2.08, p = .022.
    Of three equal p all are rejected up to .05 / (1 + 1/2 + 1/3) = .0273; for .15, t = -1.04, p = .152.
    """
    people, model = np.zeros((40, 3), np.int64), np.repeat([1, 0], [4, 36])
    result = run_alternative_test(people, model, EPSILON["experts"])
    assert (result.omega, result.rho, result.passes) == (1, pytest.approx(0.9), True)
    for person, one in enumerate(result.people):
        assert one[:4] == (person, 40, pytest.approx(0.9), 1)
        assert one.p_value == pytest.approx(0.022, abs=5e-4)
    stricter = run_alternative_test(people, model, EPSILON["skilled"])
    assert (stricter.omega, stricter.passes) == (0, False)
    assert stricter.people[0].p_value == pytest.approx(0.152, abs=5e-4)


def test_without_any_chance_the_mean_alone_decides():
    same = np.zeros((30, 3), np.int64)
    assert run_alternative_test(same, same[:, 0], 0.1).omega == 1
    assert run_alternative_test(same, same[:, 0] + 1, 0.2).omega == 0


def test_a_model_beats_those_who_err_more_and_not_the_others():
    """a, b and c never err; d and e are wrong on every other item, each on other ones; so is the model on one of 20."""
    people = np.zeros((80, 5), np.int64)
    people[::2, 3], people[1::2, 4] = 1, 1
    model = np.where(np.arange(80) % 20 == 0, 1, 0)
    result = run_alternative_test(people, model, 0.01)
    assert [one.beaten for one in result.people] == [False, False, False, True, True]
    assert (result.omega, result.passes) == (0.4, False)


def test_figures_are_those_of_the_authors_procedure():
    """Written out item by item, with scipy's t-test and its correction; labels of some are missing."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 4, 120)
        people = noisy(rng, np.repeat(truth[:, None], 4, axis=1), 0.3, 4)
        people[rng.random(people.shape) < 0.2] = -1
        model = np.where(rng.random(120) < 0.05, -1, noisy(rng, truth, 0.1 * (seed % 5), 4))
        p_values, rho = [], []
        for left_out in range(4):
            pairs = []
            for of_item, said in zip(people, model, strict=True):
                rest = [one for other, one in enumerate(of_item) if other != left_out and one >= 0]
                if rest and said >= 0 and of_item[left_out] >= 0:
                    of_person, of_model = (
                        np.mean([label == one for one in rest]) for label in (of_item[left_out], said)
                    )
                    pairs.append((of_person >= of_model, of_model >= of_person))
            own, models = np.array(pairs, int).T
            p_values.append(ttest_1samp(own - models, 0.15, alternative="less").pvalue)
            rho.append(models.mean())
        result = run_alternative_test(people, model, 0.15)
        assert [one.p_value for one in result.people] == pytest.approx(p_values, abs=1e-12)
        assert result.rho == pytest.approx(np.mean(rho))
        rejected = false_discovery_control(p_values, method="by") <= 0.05
        assert [one.beaten for one in result.people] == rejected.tolist()


def passing(error_of_model: float, *, n_studies: int = 200, error: float = 0.15, epsilon: float = 0.15) -> float:
    """The share of studies, of 4 people and 100 items, that a model passes."""
    results: list[Alternative] = []
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 100)
        people = noisy(rng, np.repeat(truth[:, None], 4, axis=1), error)
        results.append(run_alternative_test(people, noisy(rng, truth, error_of_model), epsilon))
    return float(np.mean([one.passes for one in results]))


def test_a_model_as_good_as_people_passes_and_a_random_one_does_not():
    assert passing(0.15) > 0.8
    assert passing(0.05) > 0.99
    assert passing(0.5) == 0


def test_a_model_that_is_worse_by_epsilon_passes_as_rarely_as_it_should():
    """People who never err are one test. Where 5 in a hundred pass, 200 studies have a standard error of 1.54 %."""
    assert passing(0.15, error=0, epsilon=0.15) < 0.05 + 3 * 0.0154


def test_too_few_people_or_items_are_no_ground():
    people, model = np.zeros((40, 3), np.int64), np.zeros(40, np.int64)
    with pytest.raises(RequestError, match="0 people have 30 items each"):
        run_alternative_test(people[:29], model[:29], 0.2)
    with pytest.raises(RequestError, match="2 people have 30 items each"):
        run_alternative_test(people[:, :2], model, 0.2)
    people[20:, 2] = -1  # the third has 20
    with pytest.raises(RequestError, match="2 people have 30 items each"):
        run_alternative_test(people, model, 0.2)
    alone = np.full((40, 3), -1)
    alone[:, 0] = 0
    with pytest.raises(RequestError, match="0 people"):
        run_alternative_test(alone, model, 0.2)
    with pytest.raises(ValueError, match="items x people"):
        run_alternative_test(people, model[:3], 0.2)
    # Somebody with few items still stands among the others.
    four = np.zeros((40, 4), np.int64)
    four[20:, 3] = -1
    assert [one.person for one in run_alternative_test(four, model, 0.2).people] == [0, 1, 2]
