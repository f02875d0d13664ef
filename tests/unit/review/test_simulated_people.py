"""Twenty simulated people label 2,000 items as they are assigned: the consensus errs as often as it must.

With independent errors e and a third vote where two differ, a step is wrong in 3e² - 2e³ of the items. Of the
preference, whose wrong answers are as likely as each other, (1-e)² + 2e(1-e)² are right, e²/3 + 2e²(1-e)/3 + 4e³/9
wrong, and of the rest no two agree.
"""

from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipelines.review.agreement import measure_agreement
from pipelines.review.assigning import Assigned, assign, assign_third
from pipelines.review.consensus import QUESTIONS, STEPS, consensus
from schemas.ids import candidate_id
from schemas.labels import PREFERENCES
from schemas.reviews import CerVotes

N_ITEMS = 2000
PEOPLE = [f"p{number:02}" for number in range(20)]
KEY = ("dialogue_id", "round", "candidate")
PLACES = {candidate_id(f"s:{number}", 1, 1): (f"s:{number}", 1, 1) for number in range(N_ITEMS)}


def true_answers(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """What is right of each item: 23 % of the steps are False (C)."""
    steps, preferences = rng.random((N_ITEMS, 3)) > 0.23, rng.choice(PREFERENCES, N_ITEMS)
    return {
        item: dict(zip(STEPS, map(bool, right), strict=True)) | {"preference": str(preference)}
        for item, right, preference in zip(PLACES, steps, preferences, strict=True)
    }


def vote(rng: np.random.Generator, task: Assigned, true: dict[str, Any], error: float) -> dict[str, Any]:
    """What somebody says who errs in every question by itself."""
    wrong = rng.random(4) < error
    given: dict[str, Any] = {step: true[step] != bool(slip) for step, slip in zip(STEPS, wrong, strict=False)}
    others = [one for one in PREFERENCES if one != true["preference"]]
    given["preference"] = others[rng.integers(3)] if wrong[3] else true["preference"]
    about = {"task_id": f"{task.item_id} {task.annotator}", "annotator": task.annotator}
    about |= {"role": task.role, "suggested": False}
    return {**dict(zip(KEY, PLACES[task.item_id], strict=True)), **about, "labelled": "v1", **given}


def table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return CerVotes.validate(pl.DataFrame(rows, schema=CerVotes.polars_schema()))


def within(count: int, share: float) -> bool:
    """Within three standard errors of what is expected of 2,000 items."""
    return abs(count / N_ITEMS - share) <= 3 * sqrt(share * (1 - share) / N_ITEMS)


@pytest.mark.parametrize("e", [0.05, 0.1, 0.2, 0.3])
def test_the_consensus_errs_as_the_closed_forms_say(e: float):
    rng = np.random.default_rng(int(100 * e))
    true = true_answers(rng)
    two = assign(PLACES, PEOPLE)
    rows = [vote(rng, task, true[task.item_id], e) for task in two]
    first = consensus(table(rows))
    assert {one.vote for one in first.waiting} == {"third"}
    assert first.labels.height + len(first.waiting) == N_ITEMS
    assert within(first.labels.height, (e**2 + (1 - e) ** 2) ** 3 * ((1 - e) ** 2 + e**2 / 3))
    thirds = assign_third({one.item_id: one.voters for one in first.waiting}, PEOPLE, earlier=two)
    rows += [vote(rng, task, true[task.item_id], e) for task in thirds]
    result = consensus(table(rows))
    assert result.waiting == []
    assert result.labels.height + len(result.lost) == N_ITEMS
    labels = {candidate_id(*(row[name] for name in KEY)): row for row in result.labels.iter_rows(named=True)}
    right = {name: sum(labels[item][name] == true[item][name] for item in labels) for name in QUESTIONS}
    misses = {}
    for step in STEPS:
        # Of the items without a label the steps are not to be seen: what counts are those with one.
        share, of = 3 * e**2 - 2 * e**3, len(labels)
        wrong = (of - right[step]) / of
        if abs(wrong - share) > 3 * sqrt(share * (1 - share) / of):
            misses[step] = wrong
    is_right = (1 - e) ** 2 + 2 * e * (1 - e) ** 2
    is_wrong = e**2 / 3 + 2 * e**2 * (1 - e) / 3 + 4 * e**3 / 9
    counts = {"right": right["preference"], "wrong": len(labels) - right["preference"], "lost": len(result.lost)}
    expected = {"right": is_right, "wrong": is_wrong, "lost": 1 - is_right - is_wrong}
    misses |= {name: count for name, count in counts.items() if not within(count, expected[name])}
    assert misses == {}
    # Two people agree on a step where both are right or both wrong; on a preference also where both err alike.
    report = measure_agreement("cer", table(rows), draws=500).filter(pl.col("annotator").is_null())
    agreeing = dict(report.select("question", "raw").rows())
    alike = dict.fromkeys(STEPS, e**2 + (1 - e) ** 2) | {"preference": (1 - e) ** 2 + e**2 / 3}
    assert {name: one for name, one in agreeing.items() if not within(round(one * N_ITEMS), alike[name])} == {}
    assert report["alpha"].is_between(report["alpha_low"], report["alpha_high"]).all()
