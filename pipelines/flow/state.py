"""What is to be known of each table besides its rows: whether it is up to date, what it waits for, why it is empty."""

from pipelines.core.stage import Stage
from pipelines.errors import NoVersion, StoreError
from pipelines.flow.runner import is_stale, waits_for_model
from pipelines.flow.stages import MAKERS
from pipelines.settings import Settings
from pipelines.store.manifest import Run
from pipelines.store.store import Store

_REASONS = 2  # for which most rows were dropped


def states(store: Store, settings: Settings) -> dict[str, str]:
    """The state of every table that a stage makes, in words; nothing is planned, asked or made.

    One that was never made has one only where it waits for a model, or for a table that does.
    """
    found: dict[str, str] = {}
    for table, stage in MAKERS.items():
        state = _state(table, stage, store, settings, found)
        if state is not None:
            found[table] = state
    return found


def _state(table: str, stage: Stage, store: Store, settings: Settings, before: dict[str, str]) -> str | None:
    try:
        made = store.pointer(table) is not None
        waits = waits_for_model(stage, store, settings)
        if waits is not None:
            return f"waits {waits.partition(':')[0]}"
        if not made:
            return next((before[one] for one in stage.parents if before.get(one, "").startswith("waits")), None)
        stale = "stale; " if is_stale(stage, store, settings) else ""
        return stale + (_why_empty(table, stage, store) or ("" if stale else "up to date"))
    except NoVersion:
        return "stale"
    except StoreError:  # `gongqing tables` itself says what is wrong with it
        return None


def _why_empty(table: str, stage: Stage, store: Store) -> str:
    """Why a table has no rows; nothing where it has some."""
    version = store.version(table)
    if version.rows:
        return ""
    if reasons := sorted(version.manifest.reasons.items(), key=lambda one: -one[1])[:_REASONS]:
        return "empty: " + ", ".join(f"{name} {rows:,}" for name, rows in reasons)
    run: Run = version.manifest.runs[-1]
    for parent in stage.parents:
        if parent == "cer_labels" and parent not in run.parents:
            return "empty: people have labelled nothing (docs/training-sets.md)"
        if parent in run.parents and not store.version(parent, run.parents[parent]).rows:
            return f"empty: so is {parent}"
    return "empty: there was nothing to make it from"
