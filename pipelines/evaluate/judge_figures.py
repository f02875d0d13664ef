"""The figures of judges' verdicts on answers, and the biases of the judges (M §4.2).

Position, length and self-preference are measured on the verdicts themselves, for all that a judge says rests on them:

* position: how often a comparison ends otherwise when its two answers change places, and how far from half the share of
  comparisons is, among those with a winner, that the first in place wins.
* length: by how many points a score rises with each doubling of an answer's length, between answers to one question.
  Baselines are left out, for a copied post is long and bad. Long answers may be better: a slope is a reason to look.
* self-preference: by how many points a judge likes what its own model wrote better than the other judges do, beyond
  what it likes the rest better.
"""

from collections.abc import Collection, Mapping
from typing import Any, cast

import numpy as np
import polars as pl

from pipelines.core.estimates import DRAWS, Estimate, Floats, bootstrap, estimate_mean, estimate_share, ratios
from pipelines.evaluate.judges import RESPECTS, Judged

ALL_JUDGES = "all judges"
_SHARES = ("no_verdict", "win_rate_beside_a_person", "does_not_follow")
Row = dict[str, Any]


def judge_figures(judged: Judged, *, draws: int = DRAWS, seed: int = 0) -> list[Row]:
    """Rows of `evaluations`, suite `judge`: by model and judge the mean of each respect and of all three (`overall`),
    the variance of an answer's draws in the mean over answers, and between draws that of the mean over all answers, the
    win rate beside a human answer, how often a response does not follow from its own third step, and the share of draws
    that cannot be read. Intervals are by question.
    """
    rows: list[Row] = []

    def add(model: str, judge: str, metric: str, values: pl.Series, items: pl.Series) -> None:
        numbers = values.cast(pl.Float64).to_numpy().astype(np.float64)
        estimated = estimate_share if metric in _SHARES else estimate_mean
        estimate = estimated(numbers, items.to_list(), draws=draws, seed=seed)
        n = len(values) - values.null_count()
        rows.append(_row(model, judge, metric, "", n, estimate))

    answers = _by_answer(judged.scores)
    everybody = answers.group_by("row_id", "model").agg(pl.col(*RESPECTS, "overall", "variance").mean())
    for frame in (answers, everybody.with_columns(judge=pl.lit(ALL_JUDGES))):
        for (model, judge), part in sorted(frame.group_by("model", "judge")):
            for metric in (*RESPECTS, "overall", "variance"):
                add(str(model), str(judge), metric, part[metric], part["row_id"])
    by_draw = _overall(judged.scores).group_by("model", "judge", "sample").agg(pl.col("overall").mean())
    for (model, judge), part in sorted(by_draw.group_by("model", "judge")):
        estimate = Estimate(cast("float | None", part["overall"].var()), None, None)
        rows.append(_row(str(model), str(judge), "variance", "between draws", len(part), estimate))
    drawn = judged.scores.with_columns(lost=pl.col(RESPECTS[0]).is_null())
    compared = judged.comparisons.with_columns(win=_worth())
    for frame, column, metric in (
        (drawn, "lost", "no_verdict"),
        (compared, "win", "win_rate_beside_a_person"),
        (judged.follows.with_columns(breaks=~pl.col("follows")), "breaks", "does_not_follow"),
    ):
        for (model, judge), part in sorted(frame.group_by("model", "judge")):
            add(str(model), str(judge), metric, part[column], part["row_id"])
    return rows


def bias_figures(
    judged: Judged,
    lengths: pl.DataFrame,
    own: Mapping[str, Collection[str]],
    baselines: Collection[str] = (),
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Row]:
    """Rows of `evaluations`, suite `bias`: of each judge its three biases, as `model`.

    Args:
        judged: What the judges say.
        lengths: `row_id`, `model`, and how many characters the answer has, `n_chars`.
        own: Of each judge the models among those evaluated that are its own.
        baselines: The models that no model is.
        draws: Of the intervals; `seed`: of the draws.

    A figure is null where it cannot be told: of one answer a question, of one judge, or where its own model wrote none.
    """
    rows = []
    of_models = _by_answer(judged.scores).filter(~pl.col("model").is_in(list(baselines)))
    for judge in sorted(set(judged.scores["judge"])):
        rows += _position(judged.comparisons.filter(judge=judge), judge, draws, seed)
        mine = of_models.filter(judge=judge).drop_nulls("overall")
        n, estimate = _length_slope(mine.join(lengths, on=["row_id", "model"]), draws, seed)
        rows.append(_row(judge, judge, "length", "points a doubling", n, estimate))
        n, estimate = _self_preference(of_models, judge, own.get(judge, ()), draws, seed)
        rows.append(_row(judge, judge, "self_preference", "points", n, estimate))
    return [row | {"suite": "bias"} for row in rows]


def is_biased(row: Mapping[str, Any]) -> bool:
    """Whether the interval of a row of `bias_figures` excludes that there is no bias. How often a comparison ends
    otherwise is never nothing: it counts from one in ten on, which is ours.
    """
    if row["low"] is None:
        return False
    if row["mode"] == "changes with places":
        return bool(row["low"] > 0.1)
    return bool(row["low"] > 0 or row["high"] < 0)


def _position(comparisons: pl.DataFrame, judge: str, draws: int, seed: int) -> list[Row]:
    both = comparisons.drop_nulls("preference").pivot("reference_first", index=["row_id", "model"], values="preference")
    if {"true", "false"} <= set(both.columns):
        both = both.drop_nulls()
        changes = (both["true"] != both["false"]).cast(pl.Float64)
    else:
        both, changes = both.clear(), pl.Series([], dtype=pl.Float64)
    changed = estimate_share(changes.to_numpy(), both["row_id"], draws=draws, seed=seed)
    decided = comparisons.filter(pl.col("preference").is_in(["first", "second"]))
    first = ((decided["preference"] == "first") == decided["reference_first"]).cast(pl.Float64)
    share = estimate_share(first.to_numpy(), decided["row_id"], draws=draws, seed=seed)
    leaning = Estimate(*(None if one is None else one - 0.5 for one in share))
    return [
        _row(judge, judge, "position", "changes with places", len(both), changed),
        _row(judge, judge, "position", "first in place wins, less half", len(decided), leaning),
    ]


def _length_slope(answers: pl.DataFrame, draws: int, seed: int) -> tuple[int, Estimate]:
    """Least squares of `overall` on log2 of the length, both less their means over the question's answers."""
    rows = answers.with_columns(x=pl.col("n_chars").clip(1).log(2)).with_columns(
        (pl.col(name) - pl.col(name).mean().over("row_id")).alias(name) for name in ("x", "overall")
    )
    sums = (
        rows.sort("row_id", "model")
        .group_by("row_id", maintain_order=True)
        .agg(xy=(pl.col("x") * pl.col("overall")).sum(), xx=(pl.col("x") ** 2).sum(), n=pl.len())
    )
    sums = sums.filter(pl.col("n") > 1)
    if sums.is_empty() or sums["xx"].sum() == 0:
        return int(sums["n"].sum()), Estimate(None, None, None)
    figures = ratios(sums.select("xy").to_numpy().astype(float), sums.select("xx").to_numpy().astype(float))
    [estimate] = bootstrap(figures, len(sums), draws=draws, seed=seed)
    return int(sums["n"].sum()), estimate


def _self_preference(
    answers: pl.DataFrame, judge: str, own: Collection[str], draws: int, seed: int
) -> tuple[int, Estimate]:
    """A difference of differences: this judge less the mean of the others, on its own answers less on the rest."""
    others = answers.filter(pl.col("judge") != judge).group_by("row_id", "model").agg(others=pl.col("overall").mean())
    both = answers.filter(judge=judge).join(others, on=["row_id", "model"]).drop_nulls(["overall", "others"])
    both = both.with_columns(more=pl.col("overall") - pl.col("others"), own=pl.col("model").is_in(list(own)))
    if both["own"].all() or not both["own"].any():
        return 0, Estimate(None, None, None)
    by_question = (
        both.sort("row_id", "model")
        .group_by("row_id", maintain_order=True)
        .agg(
            pl.col("more").filter("own").sum().alias("own_sum"),
            pl.col("own").sum().alias("own_n"),
            pl.col("more").filter(~pl.col("own")).sum().alias("rest_sum"),
            (~pl.col("own")).sum().alias("rest_n"),
        )
    )
    sums = by_question.select("own_sum", "rest_sum").to_numpy().astype(float)
    means = ratios(sums, by_question.select("own_n", "rest_n").to_numpy().astype(float))

    def difference(weights: Floats) -> Floats:
        of_own, of_rest = means(weights).T
        return np.stack([of_own - of_rest], axis=1)

    [estimate] = bootstrap(difference, len(by_question), draws=draws, seed=seed)
    return int(by_question["own_n"].sum()), estimate


def _by_answer(scores: pl.DataFrame) -> pl.DataFrame:
    """An answer and a judge a row: the means of its draws, and the variance of their overall scores."""
    return (
        _overall(scores)
        .group_by("row_id", "model", "judge", maintain_order=True)
        .agg(pl.col(*RESPECTS, "overall").mean(), variance=pl.col("overall").var())
    )


def _overall(scores: pl.DataFrame) -> pl.DataFrame:
    return scores.with_columns(overall=pl.mean_horizontal(*RESPECTS, ignore_nulls=False))


def _worth() -> pl.Expr:
    """What a preference is worth to the answer: a tie counts half."""
    return pl.col("preference").replace_strict(
        {"second": 1.0, "first": 0.0, "both": 0.5, "neither": 0.5}, default=None, return_dtype=pl.Float64
    )


def _row(model: str, judge: str, metric: str, mode: str, n: int, estimate: Estimate) -> Row:
    figures = {"n": n, "value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {"suite": "judge", "model": model, "judge": judge, "metric": metric, "mode": mode, "subset": "all"} | figures
