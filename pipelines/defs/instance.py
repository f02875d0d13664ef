"""Where Dagster keeps its state: `.dagster/` of the home, from whatever folder it is started.

A relative `base_dir` in dagster.yaml would be taken from the folder of the process, and an absolute one cannot be
committed; so dagster.yaml names these classes, which ask the home.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

from pipelines.settings import home


def state_folder(home: Path) -> Path:
    """The folder of Dagster's state."""
    return home / ".dagster"


def _at(part: str) -> dict[str, Any]:
    return {"base_dir": str(state_folder(home()) / part)}


class HomeStorage(DagsterSqliteStorage):
    """Runs, events and schedules, in SQLite."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return super().from_config_value(inst_data, _at("storage"))


class HomeArtifacts(LocalArtifactStorage):
    """Files that runs leave."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return super().from_config_value(inst_data, _at("artifacts"))


class HomeComputeLogs(LocalComputeLogManager):
    """What runs print."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing is configured: the place follows from the home."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return super().from_config_value(inst_data, _at("compute"))
