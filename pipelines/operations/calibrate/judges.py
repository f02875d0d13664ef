"""A model held against the people who labelled: may it stand in for one of them, and how near is it?

The first is the alternative-annotator test (Calderon, Reichart and Dror, "The Alternative Annotator Test for
LLM-as-a-Judge", ACL 2025). Each person is left out in turn: does the model agree with those who are left as well as the
person does? Kappa says how near a model is to people; this says whether it may be used instead of one.
"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core import agreement
from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import NoVersion, RequestError, UnknownName
from pipelines.operations.review.judged import items_of, read_answers, require_kind
from pipelines.review.agreement import Rating, independent, questions_of, ratings_of, table_of
from pipelines.review.answers import Suggestion, about, columns_of
from pipelines.review.contract import Kind
from pipelines.review.importing import TABLE_NAME
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.labels import OMEGA
from schemas.reviews import JudgeTests

TABLE = "judge_tests"
# How much less often a model may be right than a person, for what a person costs: by who the people are.
EPSILON = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
FEWEST_PEOPLE = 3
FEWEST_ITEMS = 30  # of each: below, the t-test has no ground
_FDR = 0.05
_MISSING = -1

Labels = NDArray[np.integer[Any]]


def calibrate_judge(home: Path, name: str, answers: Path, people: str) -> pl.DataFrame:
    """Tests whether the models of a file of answers may stand in for the people who labelled items of a kind, question
    by question, and puts the figures in the place of earlier ones of these models.

    Args:
        home: The home.
        name: The kind: coe, cer or compare. The pairs of a ranking depend on each other: these are not tested.
        answers: What models answer, a line an item and model (`pipelines.review.answers.Suggestion`).
        people: Who the people are: a name of EPSILON.

    Returns rows of `judge_tests`. Raises UnknownName, UnreadableFile for the file, NoVersion where nobody has labelled,
    RequestError where fewer than 3 people have labelled 30 items that others and the model answered as well, Busy where
    another process makes tables.
    """
    kind = require_kind(name)
    if kind == "rank":
        raise RequestError("rankings are not tested: their pairs depend on each other", hint="let people compare two")
    if people not in EPSILON:
        raise UnknownName("sort of people", people, EPSILON)
    store = Store(Home(home).data)
    if not store.current(TABLE_NAME[kind]):
        raise NoVersion(f"nobody has labelled {kind} yet", hint=f"gongqing review export {kind}")
    items = {item.item_id: item for item in items_of(kind, home, store)[0]}
    theirs = list(ratings_of(kind, independent(kind, store.read(TABLE_NAME[kind]).collect())))
    by_model: dict[str, list[dict[str, Any]]] = {}
    for one in read_answers(answers, Suggestion, kind, items, "model"):
        row = about(items[one.item_id]) | columns_of(kind, one.answers) | {"annotator": one.model}
        by_model.setdefault(one.model, []).append(row)
    source = {"answers": answers.name, "answers_sha256": sha256_of(answers), "measured_at": dt.datetime.now(dt.UTC)}
    rows = [
        _measured(kind, question, theirs, model, list(ratings_of(kind, pl.DataFrame(answered))), people) | source
        for model, answered in sorted(by_model.items())
        for question in questions_of(kind)
    ]
    frame = JudgeTests.validate(pl.DataFrame(rows, schema=JudgeTests.polars_schema()))
    with alone(home):
        before = store.read(TABLE).collect() if store.current(TABLE) else frame.clear()
        mine = (pl.col("kind") == kind) & pl.col("model").is_in(list(by_model))
        stood, new = (rows.drop("measured_at").sort("model", "question") for rows in (before.filter(mine), frame))
        if not stood.equals(new):
            store.write(TABLE, pl.concat([before.filter(~mine), frame]))
    return frame


def _measured(
    kind: Kind, question: str, theirs: Sequence[Rating], model: str, answered: Sequence[Rating], people: str
) -> dict[str, Any]:
    """A row of `judge_tests`, without its source."""
    of_question = [one for one in theirs if one.question == question]
    label_of = {one.unit: one.label for one in answered if one.question == question}
    both = [one for one in of_question if one.unit in label_of]
    names = sorted({one.annotator for one in both})
    table, _ = table_of(both, names)
    own = np.array([label_of[unit] for unit in sorted({one.unit for one in both})], np.int64)
    tested = run_alternative_test(table.reshape(len(own), len(names)), own, EPSILON[people])
    with_each = [agreement.mean_kappa(np.column_stack([table[:, place], own])) for place in range(len(names))]
    known = [one for one in with_each if one is not None]
    return {
        **{"kind": kind, "question": question, "model": model, "people": people, "epsilon": tested.epsilon},
        **{"omega": tested.omega, "rho": tested.rho, "n_people": len(tested.people)},
        "n_items": int(((table != agreement.MISSING).sum(axis=1) > 1).sum()),
        "kappa": float(np.mean(known)) if known else None,
        "kappa_of_people": agreement.mean_kappa(table),
    }


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
