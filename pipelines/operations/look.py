"""Rows of a table to look at: the first, a sample, those of an id or a condition; dropped ones with their text."""

from collections.abc import Sequence
from itertools import chain

import polars as pl

from pipelines.errors import RequestError
from pipelines.operations.replaced import rows_by_id
from pipelines.store.derived import RowIds
from pipelines.store.store import Store

_SOURCES = {"post_id": ("raw_posts", "imported_posts"), "dialogue_id": ("imported_dialogues",)}
_SEED = 0


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
) -> pl.DataFrame:
    """`n` rows of a table, or of those it dropped, which then have their `text`, null where it is not at home.

    Args:
        ids: Only rows that one of these names, or a part of what it names: the answers of a post, the rounds of a
            dialogue.
        where: Only rows that meet it: a condition of SQL over the columns.
        sample: Drawn, the same ones each time, and not the first.

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
        rows = frame.sample(min(n, frame.height), seed=_SEED).lazy()
    shown = rows.head(n).collect()
    return _with_texts(store, shown) if dropped else shown


def _with_texts(store: Store, dropped: pl.DataFrame) -> pl.DataFrame:
    """The dropped rows with their text: a post's or an answer's; a dialogue's turns, a line each."""
    ids = dropped["row_id"].to_list()
    owners = sorted({name for row_id in ids for name in _owners(row_id)})
    texts: dict[str, str] = {}
    sources = (rows_by_id(store, table, key, owners) for key, tables in _SOURCES.items() for table in tables)
    for row in chain.from_iterable(sources):
        if "post_id" in row:
            texts[row["post_id"]] = "\n".join(filter(None, (row["title"], row["description"])))
            texts |= {answer["answer_id"]: answer["text"] for answer in row["answers"] or []}
        else:
            texts[row["dialogue_id"]] = "\n".join(f"{turn['role']}: {turn['text']}" for turn in row["turns"])
    found = [next((texts[name] for name in _owners(row_id) if name in texts), None) for row_id in ids]
    return dropped.with_columns(text=pl.Series(found, dtype=pl.String))


def _owners(row_id: str) -> list[str]:
    """The ids under which the text of a dropped row may stand: its own, and those of what it is a part of."""
    whole = row_id.partition("#")[0]
    return list(dict.fromkeys((row_id, whole, whole.rpartition("/")[0])))
