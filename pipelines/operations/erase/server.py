"""Dagster's state where `dagster.yaml` of the home keeps it in Postgres (docs/operating.md)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.operations.erase.traces import Scrub, scrub_cell, text_of_cell

_LOCAL = {"sqlite", "custom"}  # files of the home (pipelines/defs/instance.py)
_AT_ONCE = 200  # rows in memory: an event may have pictures


def scrub_server(home: Path, scrub: Scrub) -> int:
    """Removes traces from every cell of the database that Dagster has in Postgres; how many had some, 0 where none is
    used.

    The tables are then rewritten, so that their files have none either. What the server has archived of its log, and
    its backups, are out of reach.

    Raises RequestError where the database cannot be reached, or is none that can be cleaned.
    """
    with _engine(home) as engine:
        if engine is None:
            return 0
        with engine.begin() as connection:
            count = sum(_scrub_table(connection, table, scrub) for table in _tables(connection))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM FULL")
        return count


def texts_of_server(home: Path) -> Iterator[str]:
    """The text of every cell of that database; nothing is changed. Raises RequestError as `scrub_server` does."""
    with _engine(home) as engine:
        if engine is not None:
            with engine.connect() as connection:
                for table in _tables(connection):
                    for row in connection.execute(table.select().execution_options(yield_per=_AT_ONCE)):
                        yield from filter(None, map(text_of_cell, map(_plain, row)))


@contextmanager
def _engine(home: Path) -> Iterator[Any]:
    storage = _storage(home)
    if not storage.keys() - _LOCAL:
        yield None
        return
    where = Home(home).dagster_yaml
    address = storage.get("postgres", {}).get("postgres_url")
    if address is None:
        raise RequestError(
            f"Dagster's state is kept in {', '.join(storage)}: an erasure does not reach it there",
            where=where,
            hint="keep it in the home, or in postgres by its postgres_url, then: gongqing erase --resume",
        )
    import sqlalchemy

    try:
        url = os.environ[address["env"]] if isinstance(address, dict) else address
        engine = sqlalchemy.create_engine(url, connect_args={"connect_timeout": 10})
        try:
            yield engine
        finally:
            engine.dispose()
    except (ImportError, KeyError, sqlalchemy.exc.SQLAlchemyError) as error:
        raise RequestError(
            f"the database of Dagster's state: {_words(error)}",
            where=where,
            hint="see docs/operating.md, then: gongqing erase --resume",
        ) from error


def _tables(connection: Any) -> list[Any]:
    import sqlalchemy

    tables = sqlalchemy.MetaData()
    tables.reflect(connection)
    return tables.sorted_tables


def _plain(cell: Any) -> Any:
    return bytes(cell) if isinstance(cell, memoryview) else cell


def _storage(home: Path) -> dict[str, Any]:
    path = Home(home).dagster_yaml
    if not path.exists():
        return {}
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("storage") or {}


def _words(error: Exception) -> str:
    """The message: no address, which has the password."""
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]} in the environment"
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def _scrub_table(connection: Any, table: Any, scrub: Scrub) -> int:
    """Dagster's tables have keys, and an update by it; one without has no texts."""
    keys = list(table.primary_key.columns)
    count = 0
    rows = connection.execute(table.select().execution_options(yield_per=_AT_ONCE)).mappings() if keys else ()
    for row in rows:
        cells = {name: _plain(cell) for name, cell in row.items()}
        changed = {name: clean for name, cell in cells.items() if (clean := scrub_cell(cell, scrub)) != cell}
        if changed:
            connection.execute(table.update().where(*(key == row[key.name] for key in keys)).values(changed))
            count += len(changed)
    return count
