"""Where a home's dagster.yaml keeps Dagster's state: what starts Dagster and `doctor` ask the same question."""

from pathlib import Path
from typing import Any

import yaml

from pipelines.core.home import Home
from pipelines.errors import SettingsError

_PARTS = ("storage", "local_artifact_storage", "compute_logs")


def require_state_in(home: Home) -> None:
    """Raises SettingsError where dagster.yaml cannot be read, or keeps a part of the state nowhere, or in the
    `.dagster` of another home: it was cut, or the home was copied or moved.
    """
    try:
        config = yaml.safe_load(home.dagster_yaml.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        config = None
    if not isinstance(config, dict) or any(_strays(config.get(part), home) for part in _PARTS):
        raise SettingsError(
            f"dagster.yaml does not say that Dagster's state is kept in {home.dagster}, or in a database",
            where=home.dagster_yaml,
            hint="remove the file: the next command writes it again (what you changed in it, change again)",
        )


def _strays(place: Any, home: Home) -> bool:
    if not isinstance(place, dict) or not place:
        return True
    inner = next((value for value in place.values() if isinstance(value, dict)), {})
    state = Path(str(inner.get("config", inner).get("base_dir", ""))).parent
    return state.name == ".dagster" and state != home.dagster
