"""The state of each table: whether it is up to date, what it waits for, why it is empty."""

from pipelines.core.stage import Stage
from pipelines.errors import NoVersion, StoreError
from pipelines.flow.runner import Runner
from pipelines.flow.stages import MAKERS
from pipelines.settings import Settings
from pipelines.store.emptiness import why_empty
from pipelines.store.store import Store


def states(store: Store, settings: Settings) -> dict[str, str]:
    """The state of every table that a stage makes, in words; nothing is planned, asked or made.

    One that was never made has one only where it waits for a model, or for a table that does.
    """
    known: dict[str, str] = {}
    runner = Runner(store, settings)
    for table, stage in MAKERS.items():
        state = _state(table, stage, runner, known)
        if state is not None:
            known[table] = state
    return known


def _state(table: str, stage: Stage, runner: Runner, before: dict[str, str]) -> str | None:
    try:
        made = runner.store.pointer(table) is not None
        waits = runner.waits_for_model(stage)
        if waits is not None:
            return f"waits {waits.partition(':')[0]}"
        if not made:
            return next((before[one] for one in stage.parents if before.get(one, "").startswith("waits")), None)
        stale = "stale; " if runner.is_stale(stage) else ""
        empty = why_empty(runner.store, runner.store.version(table))
        return stale + (f"empty: {empty}" if empty else "" if stale else "up to date")
    except NoVersion:
        return "stale"
    except StoreError:  # `gongqing tables` itself says what is wrong with it
        return None
