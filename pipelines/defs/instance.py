"""Where Dagster keeps its state: `.dagster/` of the home, from whatever folder it is started.

A relative `base_dir` in dagster.yaml would be taken from the folder of the process, and an absolute one cannot be
committed; so dagster.yaml names these classes, which ask the home.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import dagster as dg
import yaml
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

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
    """Give a home other than the repository a dagster.yaml of its own, with absolute paths, if it has none."""
    target = folder / "dagster.yaml"
    if folder == ROOT or target.exists():
        return
    config = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    config["storage"] = {"sqlite": {"base_dir": _at("storage", folder)}}
    for part, module, name, place in (
        ("local_artifact_storage", "dagster._core.storage.root", "LocalArtifactStorage", "artifacts"),
        ("compute_logs", "dagster._core.storage.local_compute_log_manager", "LocalComputeLogManager", "compute"),
    ):
        config[part] = {"module": module, "class": name, "config": {"base_dir": _at(place, folder)}}
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def instance(folder: Path) -> dg.DagsterInstance:
    """The standing Dagster instance of a home."""
    ensure_configured(folder)
    return dg.DagsterInstance.from_config(str(folder))
