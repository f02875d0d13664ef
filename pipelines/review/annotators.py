"""How each person works: what they say of items with a known answer, and how long they take. Figures, by pseudonym."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipelines.review.answers import columns_of
from pipelines.review.assigning import COUNTING
from pipelines.review.consensus import KEY
from pipelines.review.contract import Kind
from schemas.dropped import Row
from schemas.ids import candidate_id

FAST = 2.0  # seconds: nobody reads a dialogue, three steps and two replies in less


def right_on_known(kind: Kind, labels: pl.DataFrame, known: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """How often each person gives the known answer: all that is asked of the item is right, comments and edits aside.

    Args:
        kind: What was labelled; `labels`: rows of its table, of which those of gold and calibration items count.
        known: The right answers, by item (`pipelines.review.answers.Known`).

    Returns a row for each person with such labels, by pseudonym: `annotator`, `items`, and `right`, the share of them.
    """
    rows = [
        (row["annotator"], all(row[name] == right for name, right in columns_of(kind, known[item_id]).items()))
        for row in labels.filter(~pl.col("role").is_in(COUNTING)).iter_rows(named=True)
        if (item_id := _item_id(kind, row)) in known
    ]
    frame = pl.DataFrame(rows, schema={"annotator": pl.String, "right": pl.Boolean}, orient="row")
    return (
        frame.group_by("annotator")
        .agg(pl.len().cast(pl.Int64).alias("items"), pl.col("right").mean())
        .sort("annotator")
    )


def _item_id(kind: Kind, row: Row) -> str:
    match kind:
        case "coe":
            return str(row["post_id"])
        case "cer":
            return candidate_id(*(row[name] for name in KEY))
    return str(row["item_id"])


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
