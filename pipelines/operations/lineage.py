"""The life of one row through every stage: where it was kept, where it was dropped, and why."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from pipelines.errors import RequestError
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import PaidCall
from pipelines.operations.row_texts import text_of, written_of
from pipelines.store.store import Store, Version
from schemas.posts import has_answers
from schemas.tables import TABLES

# What stands between a row's id and a part of it: a round, an answer or a speaker, a rewriting.
_MARKS = ("#", "/", "~")
_SHOWN = (
    *("cluster_id", "cluster_name", "variant", "persona_id", "split", "verdict", "preference"),
    *("annotator", "annotators", "provider", "model_served"),
)


class Event(NamedTuple):
    """What became of a row, or of a part of it, in one table."""

    table: str
    partition: str | None
    version: str
    row_id: str
    what: str  # kept or dropped
    reason: str | None
    detail: str | None
    made: dt.datetime | None = None  # when the version was made
    posted: dt.datetime | None = None  # of a post where it came from
    crawled: dt.datetime | None = None
    text: str | None = None  # as `show` prints it
    calls: tuple[PaidCall, ...] = ()  # to models, for this row


def why(store: Store, row_id: str, ledger: Ledger | None = None) -> list[Event]:
    """Every event of a post, an answer, a dialogue, a round or a speaker, in the order of the stages.

    With a dialogue come its rounds, its speakers and what was rewritten from it, with a post its answers, and with a
    part the row that it is part of. The `ledger` knows what the calls cost; of a row that no reply could be used for
    no call is known.

    Raises RequestError where no table ever saw the row.
    """
    keyed = [event for table in TABLES for version in store.current(table) for event in _of(store, version, row_id)]
    events = [event for event, _ in keyed]
    if not any(
        event.row_id == row_id or event.row_id.startswith(tuple(row_id + mark for mark in _MARKS)) for event in events
    ):
        raise RequestError(
            f"no table holds or dropped a row {row_id!r}",
            where=store.storage.uri(""),
            hint="ids begin with the name of their set, as in psyqa:4394, psyqa:4394/1c9f0a2b, smile:10071#3",
        )
    calls: dict[str, list[PaidCall]] = {}
    for call in ledger.calls({key for _, key in keyed if key}) if ledger is not None else ():
        calls.setdefault(call.key, []).append(call)
    return [event._replace(calls=tuple(calls.get(key or "", ()))) for event, key in keyed]


def _of(store: Store, version: Version, row_id: str) -> Iterator[tuple[Event, str | None]]:
    """The events of a version, each with the key of the request that its row was made by."""
    where = (version.table, version.version, version.partition)
    place = (version.table, version.partition, version.version)
    made = version.manifest.runs[-1].at
    key = TABLES[version.table].key()
    for ids, marks in _ids(version.table):
        named = store.read(*where).select(*key, _id=ids, _detail=marks).explode("_id", empty_as_null=False)
        found = named.filter(_concerns(pl.col("_id"), row_id)).collect()
        if found.is_empty():
            continue
        whole = store.read(*where).filter(pl.col(key[0]).is_in(found[key[0]].unique().implode())).collect()
        for row in found.join(whole, on=key, how="left", maintain_order="left").iter_rows(named=True):
            of_post = row["_id"] == row.get("post_id")
            event = Event(*place, row["_id"], "kept", None, row["_detail"], made)
            yield (
                event._replace(
                    posted=row.get("posted_at") if of_post else None,
                    crawled=row.get("fetched_at") if of_post else None,
                    text=text_of(row, row["_id"]) or written_of(version.table, row),
                ),
                row.get("request_key"),
            )
    dropped = store.read_dropped(*where).filter(_concerns(pl.col("row_id"), row_id)).collect()
    for row in dropped.iter_rows(named=True):
        yield Event(*place, row["row_id"], "dropped", row["reason"], row["detail"], made), None


def _ids(table: str) -> Iterator[tuple[pl.Expr, pl.Expr]]:
    """The ids of a table's rows as lists, and a detail of each row."""
    columns = TABLES[table].column_names()
    people = pl.col("annotators").list.join(" and ")
    shown = [
        pl.format(f"{name} {{}}", people if name == "annotators" else pl.col(name))
        for name in _SHOWN
        if name in columns
    ]
    marks = pl.concat_str(shown, separator=", ", ignore_nulls=True) if shown else pl.lit(None, dtype=pl.String)
    if {"dialogue_id", "round"} <= set(columns):
        form, parts = ("{}#{}/{}", ["candidate"]) if "candidate" in columns else ("{}#{}", [])
        yield pl.concat_list(pl.format(form, "dialogue_id", "round", *parts)), marks
    elif {"dialogue_id", "role"} <= set(columns):
        yield pl.concat_list(pl.format("{}/{}", "dialogue_id", "role")), marks
    else:
        by_people = TABLES[table].key() == ["task_id"]  # such a row is about the one that was judged
        for name in ("post_id", "dialogue_id", "row_id", "persona_id", "item_id"):
            if name in columns and (by_people or name in TABLES[table].key()):
                yield pl.concat_list(pl.col(name)), marks
    if has_answers(TABLES[table].polars_schema()):
        yield pl.col("answers").list.eval(pl.element().struct.field("answer_id")), pl.format("of {}", pl.col("post_id"))


def _concerns(ids: pl.Expr, row_id: str) -> pl.Expr:
    """Whether an id is the row, a part of it, or what it is a part of."""
    wholes = [row_id[: mark.start()] for mark in re.finditer(f"[{''.join(_MARKS)}]", row_id)]
    return pl.any_horizontal(ids.is_in([row_id, *wholes]), *(ids.str.starts_with(row_id + mark) for mark in _MARKS))
