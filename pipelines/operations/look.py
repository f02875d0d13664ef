"""Rows of a table to look at: the first, a sample, those of an id or a condition; dropped ones with their text."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl

from pipelines.errors import RequestError
from pipelines.operations.row_texts import SOURCES, raw_rows, rows_by_id, text_of
from pipelines.store.derived import RowIds
from pipelines.store.store import Store


def rows_to_show(
    store: Store,
    table: str,
    n: int,
    version: str | None = None,
    partition: str | None = None,
    *,
    dropped: bool = False,
    ids: Sequence[str] = (),
    where: str | None = None,
    sample: bool = False,
    seed: int = 0,
) -> pl.DataFrame:
    """`n` rows of a table, or of those it dropped, which then have their `text`, null where it is not at home.

    Args:
        ids: Only rows that one of these names, or a part of what it names: the answers of a post, the rounds of a
            dialogue.
        where: Only rows that meet it: a condition of SQL over the columns.
        sample: Drawn, and not the first; the same ones each time for the same `seed`.

    Raises RequestError for a condition that is none, and what the store raises.
    """
    rows = (store.read_dropped if dropped else store.read)(table, version, partition)
    if where is not None:
        columns = ", ".join(rows.collect_schema().names())
        hint = f"SQL over its columns, as \"lang = 'zh'\": {columns}"
        try:
            rows = rows.filter(pl.sql_expr(where)).collect().lazy()
        except pl.exceptions.PolarsError as error:
            problem = str(error).splitlines()[0]
            raise RequestError(f"it is no condition: {problem}", where=f"--where {where!r}", hint=hint) from error
    if ids:
        frame = rows.collect()
        rows = frame.filter(RowIds(ids).rows(frame)).lazy()
    if sample:
        frame = rows.collect()
        rows = frame.sample(min(n, frame.height), seed=seed).lazy()
    shown = rows.head(n).collect()
    return _with_texts(store, shown) if dropped else shown


def dialogues_of(store: Store, rows: pl.DataFrame) -> dict[tuple[str, int], Mapping[str, Any]]:
    """The sampled rounds that rows of these are about, by dialogue and round: their history and the reference."""
    turns = ("sampled_turns", "sampled_rewrites")
    if not {"dialogue_id", "round"} <= set(rows.columns) or {"history"} <= set(rows.columns):
        return {}
    ids = rows["dialogue_id"].unique().to_list()
    found = chain.from_iterable(rows_by_id(store, table, "dialogue_id", ids) for table in turns)
    return {(row["dialogue_id"], row["round"]): row for row in found}


def _with_texts(store: Store, dropped: pl.DataFrame) -> pl.DataFrame:
    """The dropped rows with their text: a post's or an answer's; a dialogue's turns, a line each."""
    ids = dropped["row_id"].to_list()
    owners = sorted({name for row_id in ids for name in _owners(row_id)})
    texts: dict[str, str] = {}
    for name, row in chain.from_iterable(raw_rows(store, key, owners).items() for key in SOURCES):
        texts[name] = text_of(row) or ""
        texts |= {answer["answer_id"]: answer["text"] for answer in row.get("answers") or []}
    found = [next((texts[name] for name in _owners(row_id) if name in texts), None) for row_id in ids]
    return dropped.with_columns(text=pl.Series(found, dtype=pl.String))


def _owners(row_id: str) -> list[str]:
    """The ids under which the text of a dropped row may stand: its own, and those of what it is a part of."""
    whole = row_id.partition("#")[0]
    return list(dict.fromkeys((row_id, whole, whole.rpartition("/")[0])))
