"""Reading the ledger: answers by key, spend, what is open."""

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any

import zstandard

from pipelines.llm.ledger_records import Budget, Exchange, OpenAttempt, Recorded, Spend
from pipelines.llm.money import Usage, amount

_LEVEL = 3
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


class _Zstd(threading.local):
    """Bodies compressed, each with a checksum: SQLite has none for its pages. One of each for every thread."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


def packed(body: bytes) -> bytes:
    """Compressed."""
    return _zstd.compressor.compress(body)


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
        Exchange(stage, model, sample, _zstd.decompressor.decompress(payload), _recorded(row))
        for *row, stage, model, sample, payload in found
    ]


def spend(db: Connection) -> Iterator[Spend]:
    """Money and tokens by stage, model, day (of the end; of the beginning where there is none) and currency."""
    rows = db.execute(
        "SELECT stage, alias, model, served, date(coalesce(ended, started), 'unixepoch') AS day, currency,"
        " sum(status = 'answered'), sum(ended IS NOT NULL AND status NOT IN ('answered', 'lost')),"
        " sum(ended IS NULL OR status = 'lost'), coalesce(sum(prompt), 0), coalesce(sum(cached), 0),"
        " coalesce(sum(completion), 0), sum(cost), sum(held)"
        " FROM attempt GROUP BY stage, alias, model, served, day, currency"
        " ORDER BY stage, alias, model, day, served, currency"
    )
    for stage, alias, model, served, day, currency, calls, failed, unsettled, *tokens, cost, held in rows:
        prompt, cached, completion = tokens
        yield Spend(
            stage=stage,
            alias=alias,
            model_asked=model,
            model_served=served,
            day=day,
            currency=currency,
            calls=calls,
            failed=failed,
            unsettled=unsettled,
            tokens_in=prompt,
            tokens_cached=cached,
            tokens_out=completion,
            cost=amount(cost),
            at_risk=amount(held),
        )


def open_attempts(db: Connection) -> list[tuple[OpenAttempt, str]]:
    """Attempts without an end, each with the name of its session."""
    rows = db.execute(
        "SELECT attempt.id, key, stage, alias, model, attempt.started, held, currency, status = 'lost', batch,"
        " session.name FROM attempt JOIN session ON session.id = attempt.session"
        " WHERE attempt.ended IS NULL OR status = 'lost' ORDER BY attempt.id"
    )
    return [
        (
            OpenAttempt(number, key, stage, alias, model, utc(at), amount(held), currency, bool(lost), batch),
            name,
        )
        for number, key, stage, alias, model, at, held, currency, lost, batch, name in rows
    ]


def open_budget(db: Connection, of: str) -> Budget | None:
    """The open budget of that name."""
    row = db.execute(
        "SELECT id, of, cap, currency, spent, held FROM budget WHERE of = ? AND closed IS NULL", (of,)
    ).fetchone()
    return row and Budget(*row)


def utc(seconds: float) -> datetime:
    """Seconds since 1970 as a point in time."""
    return datetime.fromtimestamp(seconds, UTC)


def _recorded(row: Sequence[Any]) -> Recorded:
    key, body, served, finish_reason, prompt, cached, completion, cost, currency, alias, ended = row
    return Recorded(
        key=key,
        body=_zstd.decompressor.decompress(body),
        served=served,
        finish_reason=finish_reason,
        usage=Usage(prompt, cached, completion),
        cost=cost,
        currency=currency,
        alias=alias,
        at=utc(ended),
    )
