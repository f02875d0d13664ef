"""How far people agree, and how each of them works, over the labels of a home."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.core.home import Home
from pipelines.operations.review.judged import known_answers, require_kind
from pipelines.review.agreement import measure_agreement, pace, right_on_known
from pipelines.review.importing import TABLE_NAME, TABLE_OF
from pipelines.store.store import Store


class Agreement(NamedTuple):
    """Rows of `review.agreement.AGREEMENT`; and of each person those of `review.agreement.pace`, with how many items
    with a known answer they had (`known`), and which share of them right (`right`), both null for none.
    """

    figures: pl.DataFrame
    work: pl.DataFrame


def agreement_of(home: Path, name: str) -> Agreement:
    """The agreement on a kind. Both are empty where nobody has labelled anything. Raises UnknownName for the kind."""
    kind, store = require_kind(name), Store(Home(home).data)
    table = TABLE_NAME[kind]
    rows = store.read(table).collect() if store.current(table) else TABLE_OF[kind].create_empty()
    of_kind = rows.filter(kind=kind) if "kind" in rows.columns else rows
    known = {one.item_id: one.answers for one in known_answers(home, kind)}
    right = right_on_known(kind, of_kind, known).rename({"items": "known"})
    return Agreement(measure_agreement(kind, of_kind), pace(of_kind).join(right, on="annotator", how="left"))
