"""Why the tables of a stage are stale, and since when: what a run would take now, beside what the last one took."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from pipelines.core.stage import Stage
from pipelines.errors import OlderSchema
from pipelines.flow.runner import Runner, parents_of, run_of
from pipelines.store.manifest import Run
from pipelines.store.store import Store, Version

_FEW = 3  # settings that are named


def stale_reasons(stage: Stage, runner: Runner) -> tuple[str, ...]:
    """Why a run of a stage could change something, in words; nothing where it is up to date.

    Raises what `Runner.status` raises.
    """
    status = runner.status(stage)
    if not status.stale:
        return ()
    if status.damaged:
        return status.damaged
    if any(runner.store.pointer(table) is None for table in stage.tables):
        return ("it was never made",)
    parents = parents_of(stage, runner.store)
    run = run_of(stage, parents, runner.settings, runner.provider(stage))
    reasons = [reason for table in stage.tables for reason in _of_table(stage, table, run, runner.store)]
    if unanswered := runner.open_questions(stage):
        reasons.append(f"{unanswered:,} row{'' if unanswered == 1 else 's'} without an answer")
    return tuple(dict.fromkeys(reasons))


def stale_since(stage: Stage, store: Store) -> dt.datetime | None:
    """When the first newer version of a parent was made; None where no parent has one, or an older one was promoted.

    Raises what `parents_of` raises.
    """
    newer = []
    for table in stage.tables:
        if (last := _last_run(store, table)) is not None:
            changed = [one for one in parents_of(stage, store) if last.parents.get(one.name) != one.version]
            newer += [at for parent in changed for at in _made(store, parent) if at > last.at]
    return min(newer, default=None)


def _made(store: Store, parent: Version) -> Iterator[dt.datetime]:
    """When each version of a parent was first made."""
    return (version.manifest.runs[0].at for version in store.versions(parent.table, parent.partition))


def _of_table(stage: Stage, table: str, run: Run, store: Store) -> Iterator[str]:
    """What distinguishes a run of the stage from that by which its table is up to date."""
    pointer, version = store.pointer(table), store.version(table)
    assert pointer is not None
    try:
        store.require_todays(version)
    except OlderSchema as error:
        yield error.what
    if pointer.promoted and table in stage.builds_upon:
        yield f"another version of {table} was promoted"
    if not pointer.inputs:
        yield "rows were erased"  # `Store.make_stale`
    elif pointer.inputs != run.inputs:
        last = _last_run(store, table)
        yield from ["what it was made from is not known"] if last is None else _differences(last, run)


def _differences(last: Run, now: Run) -> Iterator[str]:
    yield from _of_parents(last.parents, now.parents)
    if last.code != now.code:
        yield "the code changed"
    if names := list(_changed(last.settings, now.settings)):
        yield f"settings changed: {', '.join(names[:_FEW])}{', …' if len(names) > _FEW else ''}"


def _last_run(store: Store, table: str) -> Run | None:
    """The run that brought a table up to date last; of a promoted version that is another version's."""
    pointer = store.pointer(table)
    if pointer is None:
        return None
    runs = (run for version in (store.version(table), *store.versions(table)) for run in version.manifest.runs)
    return next((run for run in runs if run.inputs == pointer.inputs), None)


def _of_parents(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    """Parents of which there is another version, by table: a crawl has a partition a day."""
    changed: dict[str, list[str]] = {}
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            changed.setdefault(name.partition("/")[0], []).append(name)
    for table, names in changed.items():
        yield f"{names[0]} changed" if len(names) == 1 else f"{len(names):,} partitions of {table} changed"


def _changed(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The names of settings that differ, as `filters.max_post_chars`."""
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _changed(one, other, f"{prefix}{name}.")
        elif one != other:
            yield f"{prefix}{name}"
