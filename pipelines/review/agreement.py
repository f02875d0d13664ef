"""How far people agree, by question and by person: the figures of `pipelines.core.agreement` over votes; how each of
them answers items with a known answer, and how long they take.

What counts for agreement is what people say independently: no label of an item with a known answer, none beside a
model's suggestion, and none of an adjudicator, who is asked only where two differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.agreement import MEASURES, MISSING, against_others, estimate_agreement
from pipelines.core.estimates import DRAWS, Estimate
from pipelines.core.stage import stage
from pipelines.errors import UnknownName
from pipelines.review.answers import columns_of
from pipelines.review.assigning import COUNTING
from pipelines.review.consensus import KEY, STEPS
from pipelines.review.contract import Kind
from schemas.dropped import Row
from schemas.ids import candidate_id
from schemas.labels import PREFERENCES
from schemas.reviews import Agreements
from schemas.table import Dropped

# A line of the report: a question, of all people (annotator: null) or of one against the others. `n_items`: items with
# two ratings or more. Null figures are undefined, and `undefined` names them; null bounds are those of no interval.
AGREEMENT = pl.Schema(
    {"question": pl.String, "annotator": pl.String, "n_items": pl.Int64, "n_raters": pl.Int64}
    | {f"{measure}{bound}": pl.Float64 for measure in MEASURES for bound in ("", "_low", "_high")}
    | {"undefined": pl.List(pl.String)}
)
_DIGITS = 9  # the last ones depend on the processor
_VERDICTS = ("accept", "mend", "reject")
ALL = "all"  # in place of a pseudonym
FAST = 2.0  # seconds: nobody reads a dialogue, three steps and two replies in less


class Rating(NamedTuple):
    """What one person says to one question: `unit` is what is rated, `item` what it is a part of."""

    question: str
    item: str
    unit: str
    annotator: str
    label: int


def measure_agreement(kind: str, rows: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """The agreement of people on each question of a kind, and of each person with the others.

    * cer: rows of `cer_votes`; the three steps and the preference.
    * coe: rows of `coe_reviews`; the verdict, where two professionals read one chain.
    * rank, compare: rows of `rankings`; of each two answers to a question which is better, or (compare) neither. The
      pairs of a question are drawn together.

    Of one person each figure is over pairs of a rating of theirs and another's of the same thing: kappa as well, which
    of all people is the mean over pairs of people.

    Returns rows of AGREEMENT: of each question all people, then each, by pseudonym. Empty where nothing was rated.

    Raises UnknownName for another kind.
    """
    if kind not in _KINDS:
        raise UnknownName("kind of review", kind, _KINDS)
    given = list(ratings_of(kind, independent(kind, rows)))
    lines = []
    for question, n_labels in questions_of(kind).items():
        of_question = [one for one in given if one.question == question]
        people = sorted({one.annotator for one in of_question})
        if not people:
            continue
        table, items = table_of(of_question, people)
        clusters = None if len(np.unique(items)) == len(items) else items
        estimates = estimate_agreement(table, n_labels, clusters=clusters, draws=draws, seed=seed)
        paired = (table != MISSING).sum(axis=1) > 1
        raters = (table[paired] != MISSING).any(axis=0)
        lines.append(_line(question, None, items[paired], int(raters.sum()), estimates))
        for number, person in enumerate(people):
            pairs, rows_of = against_others(table, number)
            estimates = estimate_agreement(pairs, n_labels, clusters=items[rows_of], draws=draws, seed=seed)
            others = np.delete(table[np.unique(rows_of)] != MISSING, number, axis=1).any(axis=0)
            lines.append(_line(question, person, items[rows_of], int(others.sum()), estimates))
    return pl.DataFrame(lines, schema=AGREEMENT, orient="row")


def present(agreement: pl.DataFrame) -> pl.DataFrame:
    """Rows of AGREEMENT as they are shown: `0.58 (0.29–0.78)`, or "undefined", in a column for each figure."""
    lines = [
        {
            "question": row["question"],
            "annotator": row["annotator"] or "all",
            "items": str(row["n_items"]),
            "raters": str(row["n_raters"]),
            **{measure: _shown(*(row[f"{measure}{bound}"] for bound in ("", "_low", "_high"))) for measure in MEASURES},
        }
        for row in agreement.iter_rows(named=True)
    ]
    columns = ("question", "annotator", "items", "raters", *MEASURES)
    return pl.DataFrame(lines, schema=dict.fromkeys(columns, pl.String))


def _shown(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "undefined"
    return f"{value:.2f}" if low is None or high is None else f"{value:.2f} ({low:.2f}–{high:.2f})"


def _line(
    question: str, person: str | None, items: NDArray[np.int64], n_raters: int, estimates: dict[Any, Estimate]
) -> tuple[Any, ...]:
    figures = [None if one is None else round(one, _DIGITS) for measure in MEASURES for one in estimates[measure]]
    undefined = [measure for measure in MEASURES if estimates[measure].value is None]
    return question, person, len(np.unique(items)), n_raters, *figures, undefined


def independent(kind: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The labels of a kind, out of its table, that somebody gave who knew nobody else's."""
    of_kind = rows.filter(kind=kind) if "kind" in rows.columns else rows
    return of_kind.filter(pl.col("role") == "annotator", ~pl.col("suggested"))


def ratings_of(kind: str, rows: pl.DataFrame) -> Iterator[Rating]:
    """What labels of a kind say to each question."""
    return _KINDS[kind][0](rows)


def questions_of(kind: str) -> dict[str, int]:
    """The questions of a kind, each with the number of labels to choose from."""
    return _KINDS[kind][1]


def table_of(ratings: Sequence[Rating], people: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ratings as a table, units x people, and the number of the item of each unit."""
    item_of = {one.unit: one.item for one in ratings}
    row_of = {unit: row for row, unit in enumerate(sorted(item_of))}
    column_of = {person: column for column, person in enumerate(people)}
    table = np.full((len(row_of), len(people)), MISSING, np.int64)
    for one in ratings:
        table[row_of[one.unit], column_of[one.annotator]] = one.label
    items = np.unique([item_of[unit] for unit in row_of], return_inverse=True)[1]
    return table, items.astype(np.int64)


def _of_votes(votes: pl.DataFrame) -> Iterator[Rating]:
    for vote in votes.iter_rows(named=True):
        item = f"{candidate_id(vote['dialogue_id'], vote['round'], vote['candidate'])} {vote['labelled']}"
        for step in STEPS:
            yield Rating(step, item, item, vote["annotator"], int(vote[step]))
        yield Rating("preference", item, item, vote["annotator"], PREFERENCES.index(vote["preference"]))


def _of_reviews(reviews: pl.DataFrame) -> Iterator[Rating]:
    for review in reviews.iter_rows(named=True):
        item = f"{review['post_id']} {review['labelled']}"
        yield Rating("verdict", item, item, review["annotator"], _VERDICTS.index(review["verdict"]))


def _of_rankings(rankings: pl.DataFrame) -> Iterator[Rating]:
    for ranking in rankings.iter_rows(named=True):
        item = f"{ranking['item_id']} {ranking['labelled']}"
        places = ranking["places"]
        # In the order of the models' names, so that a label means the same for every question.
        by_name = sorted(range(len(places)), key=ranking["models"].__getitem__)
        for one, other in combinations(by_name, 2):
            label = 2 if places[one] == places[other] else int(places[other] < places[one])
            yield Rating("better", item, f"{item} {one} {other}", ranking["annotator"], label)


# Of each kind: how its rows are read, and its questions, each with the number of labels to choose from.
_KINDS: dict[str, tuple[Callable[[pl.DataFrame], Iterator[Rating]], dict[str, int]]] = {
    "cer": (_of_votes, {**dict.fromkeys(STEPS, 2), "preference": len(PREFERENCES)}),
    "coe": (_of_reviews, {"verdict": len(_VERDICTS)}),
    "rank": (_of_rankings, {"better": 2}),
    "compare": (_of_rankings, {"better": 3}),
}


@stage("agreements", group="review", optional_parents=("cer_votes", "coe_reviews", "rankings"))
def make_agreements(
    cer_votes: pl.DataFrame, coe_reviews: pl.DataFrame, rankings: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """How far people agree, by kind, question and person."""
    given = {"cer": cer_votes, "coe": coe_reviews, "rank": rankings, "compare": rankings}
    lines = [
        {
            **{name: row[name] for name in ("question", "n_items", "n_raters")},
            "kind": kind,
            "annotator": row["annotator"] or ALL,
            "measure": measure,
            **{name: row[measure + end] for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))},
        }
        for kind, rows in given.items()
        for row in measure_agreement(kind, rows).iter_rows(named=True)
        for measure in MEASURES
    ]
    return pl.DataFrame(lines, schema=Agreements.polars_schema()), Dropped.create_empty()


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
