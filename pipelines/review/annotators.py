"""How each person works: what they say of items with a known answer, and how long they take. Figures, by pseudonym."""

import polars as pl

from pipelines.review.consensus import QUESTIONS

FAST = 2.0  # seconds: nobody reads a dialogue, three steps and two replies in less
_KEY = ["dialogue_id", "round", "candidate"]


def gold_accuracy(votes: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """How often each person gives the known answer of gold items.

    Args:
        votes: Rows of `cer_votes`; those of the role `gold` count.
        answers: The known ones: `dialogue_id`, `round`, `candidate`, and the columns of QUESTIONS.

    Returns a row for each person with such votes, by pseudonym: `annotator`, `items`, for each question the share of
    right answers, and `all`, the share of items on which every answer is right.
    """
    gold = votes.filter(role="gold").join(answers.select(*_KEY, *QUESTIONS), on=_KEY, how="inner", suffix="_known")
    right = [(pl.col(question) == pl.col(f"{question}_known")).alias(question) for question in QUESTIONS]
    return (
        gold.select("annotator", *right)
        .with_columns(all=pl.all_horizontal(QUESTIONS))
        .group_by("annotator")
        .agg(pl.len().cast(pl.Int64).alias("items"), pl.col(*QUESTIONS, "all").mean())
        .sort("annotator")
    )


def pace(votes: pl.DataFrame, fast: float = FAST) -> pl.DataFrame:
    """How long each person takes for an item.

    Takes rows of a table with `task_id`, `annotator` and `seconds`: votes, reviews, rankings.

    Returns a row for each person, by pseudonym: `annotator`, `items`, `timed` (those whose time is known), `median`
    (seconds; null where none is), and `too_fast`, the tasks that took less than `fast` seconds.
    """
    seconds = pl.col("seconds")
    return (
        votes.group_by("annotator")
        .agg(
            pl.len().cast(pl.Int64).alias("items"),
            seconds.count().cast(pl.Int64).alias("timed"),
            seconds.median().alias("median"),
            pl.col("task_id").filter(seconds < fast).sort().alias("too_fast"),
        )
        .sort("annotator")
    )
