"""Reading the ledger: answers by key, spend, what is open."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from sqlite3 import Connection
from typing import Any

from pipelines.llm.ledger.packing import unpacked
from pipelines.llm.ledger.records import Budget, Exchange, OpenAttempt, Recorded, Spend
from pipelines.llm.money import Usage, amount

_ANSWER = (
    "answer.key, answer.body, attempt.served, answer.finish_reason, attempt.prompt, attempt.cached,"
    " attempt.completion, attempt.cost, attempt.currency, attempt.alias, attempt.ended"
)
_RECORDED = (
    f"SELECT {_ANSWER} FROM json_each(?) AS wanted CROSS JOIN answer ON answer.key = wanted.value"  # noqa: S608 - ours
    " CROSS JOIN attempt ON attempt.id = answer.attempt"
)
_EXCHANGES = (
    f"SELECT {_ANSWER}, attempt.stage, attempt.model, attempt.sample, request.payload"  # noqa: S608 - ours
    " FROM answer CROSS JOIN attempt ON attempt.id = answer.attempt CROSS JOIN request ON request.key = answer.key"
    " WHERE answer.key > ?1 AND (?2 IS NULL OR attempt.stage IN (SELECT value FROM json_each(?2)))"
    " ORDER BY answer.key LIMIT ?3"
)


def recorded(db: Connection, keys: str) -> dict[str, Recorded]:
    """The answers to a JSON list of keys."""
    found = db.execute(_RECORDED, (keys,))
    return {row[0]: _recorded(row) for row in found}


def known(db: Connection, keys: str) -> set[str]:
    """Those of a JSON list of keys that have an answer."""
    found = db.execute(
        "SELECT answer.key FROM json_each(?) AS wanted CROSS JOIN answer ON answer.key = wanted.value", (keys,)
    )
    return {key for (key,) in found}


def exchanges(db: Connection, stages: Sequence[str] | None, after: str, most: int) -> list[Exchange]:
    """Requests and answers in order of their keys, `most` of them after a key."""
    named = None if stages is None else json.dumps(list(stages))
    found = db.execute(_EXCHANGES, (after, named, most))
    return [
        Exchange(stage, model, sample, unpacked(payload), _recorded(row))
        for *row, stage, model, sample, payload in found
    ]


def bodies(db: Connection, after: str, most: int) -> list[tuple[str, bytes, bytes]]:
    """Key, request and answer (empty where there is none) in order of their keys, `most` of them after a key."""
    rows = db.execute(
        "SELECT request.key, request.payload, answer.body FROM request LEFT JOIN answer ON answer.key = request.key"
        " WHERE request.key > ? ORDER BY request.key LIMIT ?",
        (after, most),
    )
    return [(key, unpacked(payload), b"" if body is None else unpacked(body)) for key, payload, body in rows]


def spend(db: Connection) -> list[Spend]:
    """Money and tokens by stage, model, day (of the end; of the beginning where there is none) and currency."""
    # In the order of Spend's fields.
    rows = db.execute(
        "SELECT stage, alias, model, served, date(coalesce(ended, started), 'unixepoch') AS day, currency,"
        " sum(status = 'answered'), sum(ended IS NOT NULL AND status NOT IN ('answered', 'lost')),"
        " sum(ended IS NULL OR status = 'lost'), coalesce(sum(prompt), 0), coalesce(sum(cached), 0),"
        " coalesce(sum(completion), 0), sum(cost), sum(held)"
        " FROM attempt GROUP BY stage, alias, model, served, day, currency"
        " ORDER BY stage, alias, model, day, served, currency"
    )
    return [Spend(*row[:-2], *map(amount, row[-2:])) for row in rows]


def open_attempts(db: Connection) -> list[tuple[OpenAttempt, str]]:
    """Attempts without an end, each with the name of its session."""
    rows = db.execute(
        "SELECT attempt.id, key, stage, alias, model, attempt.started, held, currency, status = 'lost', batch,"
        " session.name FROM attempt JOIN session ON session.id = attempt.session"
        " WHERE attempt.ended IS NULL OR status = 'lost' ORDER BY attempt.id"
    )
    return [
        (OpenAttempt(number, key, stage, alias, model, utc(at), amount(held), currency, bool(lost), batch), name)
        for number, key, stage, alias, model, at, held, currency, lost, batch, name in rows
    ]


def open_budgets(db: Connection, of: str | None = None) -> list[Budget]:
    """The budgets that are open, oldest first; of a name, or all."""
    rows = db.execute(
        "SELECT id, of, cap, currency, spent, held, opened FROM budget"
        " WHERE closed IS NULL AND (?1 IS NULL OR of = ?1) ORDER BY id",
        (of,),
    )
    return [
        Budget(number, name, cap, currency, spent, held, utc(opened))
        for number, name, cap, currency, spent, held, opened in rows
    ]


def taken(db: Connection, of: str) -> Decimal:
    """What was spent from the budgets of a name, open and closed, with what is still held of them."""
    (sum_,) = db.execute("SELECT coalesce(sum(spent + held), 0) FROM budget WHERE of = ?", (of,)).fetchone()
    return amount(sum_)


def utc(seconds: float) -> datetime:
    """Seconds since 1970 as a point in time."""
    return datetime.fromtimestamp(seconds, UTC)


def _recorded(row: Sequence[Any]) -> Recorded:
    key, body, served, finish_reason, prompt, cached, completion, cost, currency, alias, ended = row
    return Recorded(
        key=key,
        body=unpacked(body),
        served=served,
        finish_reason=finish_reason,
        usage=Usage(prompt, cached, completion),
        cost=cost,
        currency=currency,
        alias=alias,
        at=utc(ended),
    )
