"""Where Dagster keeps its state: `.dagster/` of the home, from whatever folder it is started.

A relative `base_dir` in dagster.yaml would be taken from the folder of the process, and an absolute one cannot be
committed; so dagster.yaml names these classes, which ask the home.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import dagster as dg
import sqlalchemy
import yaml
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

from pipelines.core.dagster_state import require_state_in
from pipelines.core.home import Home
from pipelines.core.modes import keep_private
from pipelines.settings import ROOT, home

_OPEN = 4  # databases of events that stay open: the index of all, and a run's own each


def _at(part: str, folder: Path | None = None) -> str:
    return str(Home(folder or home()).dagster / part)


class _OfHome:
    """A part of Dagster's state. Its place follows from the home where the configuration names none."""

    part: ClassVar[str]

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Called by Dagster."""
        return {"base_dir": dg.Field(str, is_required=False)}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster: in its daemon and web server as well, which load no code of ours but this."""
        keep_private()
        place = config_value.get("base_dir") or _at(cls.part)
        return cls(base_dir=place, inst_data=inst_data)  # type: ignore[call-arg]  # the storages take both


class _Events(SqliteEventLogStorage):
    """Dagster's events, over connections that stay open.

    Dagster's own opens one for every step of writing an event and closes it again, and waits for the disk each time:
    half of the time of a small refresh. Here the disk is waited for when SQLite writes its log back: where the power
    fails, the last events may be gone, and nothing is damaged.
    """

    def __init__(self, base_dir: str) -> None:
        self._engines: dict[str, sqlalchemy.Engine] = {}
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sqlalchemy.Connection]:
        with self._db_lock:
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.begin() as connection:
                yield connection

    def _engine(self, shard: str) -> sqlalchemy.Engine:
        """The one used last stays longest."""
        engine = self._engines.pop(shard, None)
        if engine is None:
            waits = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
            engine = sqlalchemy.create_engine(self.conn_string_for_shard(shard), connect_args=waits)
            sqlalchemy.event.listen(engine, "connect", _sync_at_checkpoints)
        self._engines[shard] = engine
        while len(self._engines) > _OPEN:
            self._engines.pop(next(iter(self._engines))).dispose()
        return engine

    def delete_events(self, run_id: str) -> None:
        """Called by Dagster: removes the events of a run. Its own database goes with them."""
        super().delete_events(run_id)
        with self._db_lock:
            if engine := self._engines.pop(run_id, None):
                engine.dispose()
            self._initialized_dbs.discard(run_id)
            for path in Path(self.path_for_shard(run_id)).parent.glob(f"{run_id}.db*"):
                path.unlink()

    def wipe(self) -> None:
        """Called by Dagster: removes every event."""
        self._close()
        super().wipe()

    def dispose(self) -> None:
        """Called by Dagster at the end."""
        self._close()
        super().dispose()

    def _close(self) -> None:
        while self._engines:
            self._engines.popitem()[1].dispose()


def _sync_at_checkpoints(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")


class HomeStorage(_OfHome, DagsterSqliteStorage):
    """Runs, events and schedules, in SQLite."""

    part = "storage"

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data=inst_data)
        self._event_log_storage = _Events(str(Path(base_dir, "history", "runs")))


class HomeArtifacts(_OfHome, LocalArtifactStorage):
    """Files that runs leave."""

    part = "artifacts"


class HomeComputeLogs(_OfHome, LocalComputeLogManager):
    """What runs print."""

    part = "compute"


def ensure_configured(folder: Path) -> None:
    """Give a home other than the repository a dagster.yaml of its own, with absolute paths, if it has none.

    Raises SettingsError where one is there that keeps Dagster's state elsewhere: of a home that was moved, or cut.
    """
    target = Home(folder).dagster_yaml
    if folder == ROOT:
        return
    if not target.exists():
        fresh = target.with_name(f"dagster.yaml.{os.getpid()}")
        fresh.write_text(yaml.safe_dump(_configuration(folder), sort_keys=False), encoding="utf-8")
        fresh.replace(target)
    require_state_in(Home(folder))


def _configuration(folder: Path) -> dict[str, Any]:
    """The committed dagster.yaml, with the places of this home in it."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    config["storage"]["custom"]["config"] = {"base_dir": _at("storage", folder)}
    for part, module, name, place in (
        ("local_artifact_storage", "dagster._core.storage.root", "LocalArtifactStorage", "artifacts"),
        ("compute_logs", "dagster._core.storage.local_compute_log_manager", "LocalComputeLogManager", "compute"),
    ):
        config[part] = {"module": module, "class": name, "config": {"base_dir": _at(place, folder)}}
    return config


def instance(folder: Path) -> dg.DagsterInstance:
    """The persistent Dagster instance of a home. One process at a time opens it: the first one makes its tables."""
    with Home(folder).lock("instance"):
        ensure_configured(folder)
        Home(folder).dagster.mkdir(mode=0o700, exist_ok=True)
        opened = dg.DagsterInstance.from_config(str(folder))
        opened.get_runs(limit=1)
        opened.get_dynamic_partitions("data_set")
        return opened
