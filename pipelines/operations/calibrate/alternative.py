"""Whether a model may stand in for a person: the alternative-annotator test.

Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge", ACL 2025. Each person is left out in
turn: does the model agree with those who are left as well as the person does? Kappa says how near a model is to people;
this says whether it may be used instead of one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import RequestError
from schemas.labels import OMEGA

# How much less often a model may be right than a person, for what a person costs: by who the people are.
EPSILON = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
FEWEST_PEOPLE = 3
FEWEST_ITEMS = 30  # of each: below, the t-test has no ground
_FDR = 0.05
_MISSING = -1

Labels = NDArray[np.integer[Any]]


class LeftOut(NamedTuple):
    """One person against the model: in which share of the items each is as near to the others as the other, or nearer.

    `beaten`: the model is no worse by more than epsilon, all people's tests corrected together.
    """

    person: int
    n_items: int
    model: float
    own: float
    p_value: float
    beaten: bool


class Alternative(NamedTuple):
    """The outcome. `omega`: the share of people whom the model beats; `rho`: how often it is as near as they are, or
    nearer, in the mean over people.
    """

    epsilon: float
    omega: float
    rho: float
    people: tuple[LeftOut, ...]

    @property
    def passes(self) -> bool:
        """Whether the model may stand in for a person."""
        return self.omega >= OMEGA


def run_alternative_test(people: Labels, model: Labels, epsilon: float) -> Alternative:
    """Tests whether `model` may stand in for one of `people`.

    Of each person h and each item that h, the model and another person labelled, the model is as near or nearer where
    at least as many of the others say what it says as say what h says. A one-sided t-test of the difference has the
    null hypothesis that h is nearer by epsilon or more; over all h the false discovery rate is 5 % (Benjamini and
    Yekutieli 2001: the tests depend on each other).

    Args:
        people: Items x people, labels as numbers from 0, -1 where there is none.
        model: The model's label of each item, -1 where there is none.
        epsilon: One of EPSILON, by who the people are.

    Raises RequestError where fewer than 3 people have 30 such items: one who has fewer is among the others alone.
    ValueError for arrays of other shapes.
    """
    if people.ndim != 2 or model.shape != people.shape[:1]:
        raise ValueError(f"labels of people, {people.shape}, and of a model, {model.shape}: items x people, items")
    tested = [
        (person, *indicators)
        for person in range(people.shape[1])
        if len((indicators := _compare(people, model, person))[0]) >= FEWEST_ITEMS
    ]
    if len(tested) < FEWEST_PEOPLE:
        raise RequestError(
            f"{len(tested)} people have {FEWEST_ITEMS} items each that another person and the model labelled as well",
            hint=f"the alternative-annotator test needs {FEWEST_PEOPLE} people",
        )
    p_values = [_p_value(own - of_model, epsilon) for _, of_model, own in tested]
    left_out = tuple(
        LeftOut(person, len(own), float(of_model.mean()), float(own.mean()), p_value, beaten)
        for (person, of_model, own), p_value, beaten in zip(tested, p_values, _rejected(p_values), strict=True)
    )
    omega, rho = (float(np.mean([getattr(one, name) for one in left_out])) for name in ("beaten", "model"))
    return Alternative(epsilon, omega, rho, left_out)


def _compare(people: Labels, model: Labels, person: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each item 1 where the model is as near to the others as the person is, or nearer; and the other way round."""
    others, own = np.delete(people, person, axis=1), people[:, person]
    items = (own != _MISSING) & (model != _MISSING) & (others != _MISSING).any(axis=1)
    others, own, model = others[items], own[items], model[items]
    # How many others say the same: of one item as many were asked for both, so that no share is needed.
    with_model, with_own = (others == model[:, None]).sum(axis=1), (others == own[:, None]).sum(axis=1)
    return (with_model >= with_own).astype(np.float64), (with_own >= with_model).astype(np.float64)


def _p_value(differences: NDArray[np.float64], epsilon: float) -> float:
    """How likely so small a mean difference is where the true one is `epsilon` (one-sided t-test)."""
    from scipy.special import stdtr  # Student's distribution function

    deviation = float(differences.std(ddof=1))
    below = float(differences.mean()) - epsilon
    if deviation == 0:  # every item alike: no chance in it
        return float(below >= 0)
    return float(stdtr(len(differences) - 1, below * np.sqrt(len(differences)) / deviation))


def _rejected(p_values: Sequence[float]) -> list[bool]:
    """Which null hypotheses are rejected (Benjamini and Yekutieli 2001)."""
    n = len(p_values)
    ordered = np.sort(p_values)
    limits = np.arange(1, n + 1) / n * _FDR / (1 / np.arange(1, n + 1)).sum()
    held = np.flatnonzero(ordered <= limits)
    limit = ordered[held[-1]] if len(held) else -1.0
    return [bool(p_value <= limit) for p_value in p_values]
