"""Where Dagster keeps its state: `.dagster/` of the home, from whatever folder it is started.

A relative `base_dir` in dagster.yaml would be taken from the folder of the process, and an absolute one cannot be
committed; so dagster.yaml names these classes, which ask the home.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import dagster as dg
import yaml
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

from pipelines.errors import SettingsError
from pipelines.locks import held
from pipelines.settings import ROOT, home


def _at(part: str, folder: Path | None = None) -> str:
    return str((folder or home()) / ".dagster" / part)


class HomeStorage(DagsterSqliteStorage):
    """Runs, events and schedules, in SQLite."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Called by Dagster."""
        return cls(base_dir=_at("storage"), inst_data=inst_data)


class HomeArtifacts(LocalArtifactStorage):
    """Files that runs leave."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Called by Dagster."""
        return cls(base_dir=_at("artifacts"), inst_data=inst_data)


class HomeComputeLogs(LocalComputeLogManager):
    """What runs print."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:  # noqa: ARG003
        """Called by Dagster."""
        return cls(base_dir=_at("compute"), inst_data=inst_data)


def ensure_configured(folder: Path) -> None:
    """Give a home other than the repository a dagster.yaml of its own, with absolute paths, if it has none.

    Raises SettingsError where one is there that keeps Dagster's state elsewhere: of a home that was moved, or cut.
    """
    target = folder / "dagster.yaml"
    if folder == ROOT:
        return
    if not target.exists():
        fresh = target.with_name(f"dagster.yaml.{os.getpid()}")
        fresh.write_text(yaml.safe_dump(_configuration(folder), sort_keys=False), encoding="utf-8")
        fresh.replace(target)
    found = yaml.safe_load(target.read_text(encoding="utf-8")) or {}
    wanted = _configuration(folder)
    if any(found.get(part) != wanted[part] for part in _STATE):
        raise SettingsError(
            f"dagster.yaml does not keep Dagster's state in {folder / '.dagster'}",
            where=target,
            remedy="remove the file: the next command writes it anew (what you changed in it, change again)",
        )


_STATE = ("storage", "local_artifact_storage", "compute_logs")


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
    """The standing Dagster instance of a home. One process at a time opens it: the first one makes its tables."""
    with held(folder / ".locks" / "instance"):
        ensure_configured(folder)
        standing = dg.DagsterInstance.from_config(str(folder))
        standing.get_runs(limit=1)
        standing.get_dynamic_partitions("data_set")
        return standing
