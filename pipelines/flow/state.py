"""What is to be known of each table besides its rows: whether it is up to date, what it waits for, why it is empty."""

from pipelines.core.stage import Stage
from pipelines.errors import NoVersion, StoreError
from pipelines.flow.runner import is_stale, waits_for_model
from pipelines.flow.stages import MAKERS
from pipelines.settings import Settings
from pipelines.store.emptiness import why_empty
from pipelines.store.store import Store


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
        empty = why_empty(store, store.version(table))
        return stale + (f"empty: {empty}" if empty else "" if stale else "up to date")
    except NoVersion:
        return "stale"
    except StoreError:  # `gongqing tables` itself says what is wrong with it
        return None
