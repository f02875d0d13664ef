"""The figures of judges, and their biases: by hand, and of simulated judges whose bias is planted."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from pipelines.evaluate.judge_figures import ALL_JUDGES, bias_figures, is_biased, judge_figures
from pipelines.evaluate.judges import COMPARISONS, FOLLOWS, RESPECTS, SCORES, Judged

Row = dict[str, object]


def judged(
    scores: list[tuple[str, str, str, int, float | None]] = (),  # type: ignore[assignment]
    comparisons: list[tuple[str, str, str, bool, str | None]] = (),  # type: ignore[assignment]
    follows: list[tuple[str, str, str, bool | None]] = (),  # type: ignore[assignment]
) -> Judged:
    """Verdicts; of a score all three respects are alike."""
    return Judged(
        pl.DataFrame([(*one[:4], *[one[4]] * 3) for one in scores], schema=SCORES, orient="row"),
        pl.DataFrame(list(comparisons), schema=COMPARISONS, orient="row"),
        pl.DataFrame(list(follows), schema=FOLLOWS, orient="row"),
    )


def value(rows: list[Row], **about: str) -> object:
    [row] = [row for row in rows if about.items() <= row.items()]
    return row["value"]


def test_means_are_of_answers_and_the_variance_is_that_of_an_answers_draws():
    verdicts = judged(
        [
            *(("q1", "m", "j", sample, points) for sample, points in enumerate([3.0, 5.0, None])),
            *(("q2", "m", "j", sample, 2.0) for sample in range(3)),
            *(("q1", "m", "k", sample, 1.0) for sample in range(3)),
            *(("q2", "m", "k", sample, 1.0) for sample in range(3)),
        ]
    )
    rows = judge_figures(verdicts, draws=50)
    assert value(rows, judge="j", metric="overall") == pytest.approx(3.0), "4 and 2"
    assert value(rows, judge="j", metric="variance", mode="") == pytest.approx(1.0), "2 and 0"
    assert value(rows, judge="j", metric="variance", mode="between draws") == pytest.approx(7 / 12), "2.5, 3.5 and 2"
    assert value(rows, judge="k", metric="variance", mode="between draws") == 0
    assert value(rows, judge=ALL_JUDGES, metric=RESPECTS[0]) == pytest.approx(2.0)
    assert value(rows, judge="j", metric="no_verdict") == pytest.approx(1 / 6)


def test_a_win_is_of_both_orders_a_tie_counts_half_and_what_does_not_follow_is_counted():
    verdicts = judged(
        comparisons=[("q1", "m", "j", True, "second"), ("q1", "m", "j", False, "both"), ("q2", "m", "j", True, None)],
        follows=[("q1", "m", "j", True), ("q2", "m", "j", False), ("q3", "m", "j", None)],
    )
    rows = judge_figures(verdicts, draws=50)
    assert value(rows, metric="win_rate_beside_a_person") == pytest.approx(0.75)
    assert value(rows, metric="does_not_follow") == pytest.approx(0.5)


def simulate(points: Callable[[np.random.Generator, str, float, str], float], seed: int, n: int = 60) -> list[Row]:
    """The biases of two judges who score three models' answers, whose quality does not hang on their length."""
    rng = np.random.default_rng(seed)
    scores, lengths = [], []
    for question in (f"q{number}" for number in range(n)):
        ease = rng.normal()
        for model in ("own", "other", "third"):
            length = int(np.exp(rng.normal(5, 0.6)))
            lengths.append((question, model, length))
            quality = 3 + 0.5 * ease + 0.6 * rng.normal()
            for judge in ("j", "k"):
                more = points(rng, judge, float(np.log2(length)), model)
                scores += [(question, model, judge, sample, quality + more + 0.4 * rng.normal()) for sample in range(3)]
    frame = pl.DataFrame(lengths, schema=["row_id", "model", "n_chars"], orient="row")
    return bias_figures(judged(scores), frame, {"j": ["own"]}, draws=400, seed=seed)


def flags(rows: list[Row], metric: str) -> dict[object, bool]:
    return {row["judge"]: is_biased(row) for row in rows if row["metric"] == metric and row["mode"] != ""}


def test_a_judge_that_likes_long_answers_is_caught_and_the_other_is_not():
    studies = [
        flags(simulate(lambda _, judge, log, __: 0.3 * log if judge == "j" else 0.0, seed), "length")
        for seed in range(40)
    ]
    assert sum(study["j"] for study in studies) >= 38
    assert sum(study["k"] for study in studies) <= 6, "one in twenty, by chance"


def test_a_judge_that_likes_its_own_answers_is_caught_and_one_without_any_has_no_figure():
    rows = simulate(lambda _, judge, __, model: 0.5 * (judge == "j" and model == "own"), 1)
    assert flags(rows, "self_preference") == {"j": True, "k": False}
    assert value(rows, metric="self_preference", judge="j") == pytest.approx(0.5, abs=0.15)
    assert value(rows, metric="self_preference", judge="k") is None
    unbiased = [flags(simulate(lambda *_: 0.0, seed), "self_preference")["j"] for seed in range(40)]
    assert sum(unbiased) <= 6


def test_a_judge_that_looks_at_places_is_caught_and_one_that_looks_at_answers_is_not():
    comparisons: list[tuple[str, str, str, bool, str | None]] = []
    for number in range(40):
        better = "second" if number % 2 else "first"
        for first in (True, False):
            comparisons.append((f"q{number}", "m", "places", first, "first" if first else "second"))
            comparisons.append((f"q{number}", "m", "answers", first, better))
    lengths = pl.DataFrame(schema={"row_id": pl.String, "model": pl.String, "n_chars": pl.Int64})
    scores = [("q0", "m", judge, 0, 3.0) for judge in ("places", "answers")]
    rows = bias_figures(judged(scores, comparisons), lengths, {}, draws=200)
    of_places = {
        (row["judge"], row["mode"]): (row["value"], is_biased(row)) for row in rows if row["metric"] == "position"
    }
    assert of_places == {
        ("places", "changes with places"): (1.0, True),
        ("places", "first in place wins, less half"): (0.5, True),
        ("answers", "changes with places"): (0.0, False),
        ("answers", "first in place wins, less half"): (0.0, False),
    }
    assert value(rows, metric="length", judge="answers") is None, "of one answer a question there is no slope"
