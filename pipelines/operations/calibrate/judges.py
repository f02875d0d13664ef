"""A model held against the people who labelled: may it stand in for one of them, and how near is it?"""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipelines.core import agreement
from pipelines.core.files import sha256_of
from pipelines.core.home import Home
from pipelines.errors import NoVersion, RequestError, UnknownName
from pipelines.operations.calibrate.alternative import EPSILON, run_alternative_test
from pipelines.operations.review.judged import items_of, read_answers, require_kind
from pipelines.review.agreement import Rating, independent, questions_of, ratings_of, table_of
from pipelines.review.answers import Suggestion, about, columns_of
from pipelines.review.contract import Kind
from pipelines.review.importing import TABLE_NAME
from pipelines.store.store import Store
from pipelines.store.suppression import alone
from schemas.reviews import JudgeTests

TABLE = "judge_tests"


def calibrate_judge(home: Path, name: str, answers: Path, people: str) -> pl.DataFrame:
    """Tests whether the models of a file of answers may stand in for the people who labelled items of a kind, question
    by question, and puts the figures in the place of earlier ones of these models.

    Args:
        home: The home.
        name: The kind: coe, cer or compare. The pairs of a ranking depend on each other: these are not tested.
        answers: What models answer, a line an item (`pipelines.review.answers.Suggestion`).
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
    for one in read_answers(answers, Suggestion, kind, items):
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
