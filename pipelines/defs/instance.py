"""Where Dagster keeps its state: `.dagster/` of the home, from whatever folder it is started.

A relative `base_dir` in dagster.yaml would be taken from the folder of the process, and an absolute one cannot be
committed; so dagster.yaml names these classes, which ask the home.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import dagster as dg
import yaml
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

from pipelines.core.home import Home
from pipelines.core.modes import keep_private
from pipelines.errors import SettingsError
from pipelines.settings import ROOT, home

_STATE = ("storage", "local_artifact_storage", "compute_logs")


def _at(part: str, folder: Path | None = None) -> str:
    return str(Home(folder or home()).dagster / part)


class _OfHome:
    """A part of Dagster's state that is configured by nothing: its place follows from the home."""

    part: ClassVar[str]

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Called by Dagster."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Called by Dagster: in its daemon and web server as well, which load no code of ours but this."""
        keep_private()
        return cls(base_dir=_at(cls.part), inst_data=inst_data)  # type: ignore[call-arg]  # the storages take both


class HomeStorage(_OfHome, DagsterSqliteStorage):
    """Runs, events and schedules, in SQLite."""

    part = "storage"


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
    try:
        config = yaml.safe_load(target.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict) or any(_strays(config.get(part), folder) for part in _STATE):
        raise SettingsError(
            f"dagster.yaml does not say that Dagster's state is kept in {folder / '.dagster'}, or in a database",
            where=target,
            hint="remove the file: the next command writes it again (what you changed in it, change again)",
        )


def _strays(place: Any, folder: Path) -> bool:
    """Whether a part of the state is configured nowhere, or in the `.dagster` of another home."""
    if not isinstance(place, dict) or not place:
        return True
    inner = next((value for value in place.values() if isinstance(value, dict)), {})
    state = Path(str(inner.get("base_dir", ""))).parent
    return state.name == ".dagster" and state != Home(folder).dagster


def _configuration(folder: Path) -> dict[str, Any]:
    """The committed dagster.yaml, with the places of this home in it."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    config["storage"] = {"sqlite": {"base_dir": _at("storage", folder)}}
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
