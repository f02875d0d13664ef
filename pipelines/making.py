"""Making the tables of a stage from its parents' current versions, and telling whether they are up to date."""

import hashlib
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.accounts import Account, require_balance, settle
from pipelines.askers import Askers
from pipelines.errors import DamagedVersion, NoHost, NoVersion, UnknownPrice
from pipelines.llm.asking import Asker, Estimate
from pipelines.llm.profiles import profile, profiles, shapes
from pipelines.llm.questions import NO_ANSWER
from pipelines.settings import Settings
from pipelines.stage import Inputs, Made, Stage
from pipelines.store.manifest import Run
from pipelines.store.store import Store, Version
from schemas.tables import TABLES


def is_stale(stage: Stage, store: Store, settings: Settings, askers: Askers | None = None) -> bool:
    """Whether a run of the stage could change anything: a parent, the code, or a setting is another, a file is
    damaged, or a question got no answer the last time.
    """
    parents = parents_of(stage, store)
    try:
        inputs = run_of(stage, parents, settings, provider_of(stage, store, settings, askers)).inputs
    except DamagedVersion:
        return True
    for table in stage.tables:
        try:
            pointer = store.pointer(table)
            if pointer is None or pointer.inputs != inputs:
                return True
            if pointer.promoted and table in stage.standing:  # what is built upon it has to follow
                return True
            store.read(table)
            if stage.asks and store.version(table).manifest.dropped_for(NO_ANSWER):
                return True
        except DamagedVersion:
            return True
    return False


def provider_of(stage: Stage, store: Store, settings: Settings, askers: Askers | None = None) -> str | None:
    """Who answers the questions of a stage; None for one that asks none.

    Raises DamagedVersion where nobody said who, and the table that would tell cannot be read.
    """
    if not stage.asks:
        return None
    askers = askers or Askers(None, settings.llm)
    (table,) = stage.tables
    return askers.provider(None if askers.said else _stands_by(store, table))


def _stands_by(store: Store, table: str) -> str | None:
    """The provider that made a table; where its current version is damaged, the one of the newest that is whole."""
    try:
        run = None if store.pointer(table) is None else store.version(table).manifest.runs[-1]
    except DamagedVersion as error:
        whole = [version.manifest.runs[-1] for version in store.versions(table)]
        if not whole:
            raise DamagedVersion(
                f"{error.what}; it alone could tell who answered the questions of {table}",
                where=error.where,
                remedy="say who: gongqing refresh --provider NAME",
            ) from error
        run = max(whole, key=lambda one: one.at)
    return None if run is None else run.settings.get("provider")


def run_stage(
    stage: Stage, store: Store, settings: Settings, cache: Path | None = None, askers: Askers | None = None
) -> list[Version]:
    """Make the tables of a stage from its parents' current versions.

    Args:
        stage: What to run.
        store: Where its parents are, and its tables go.
        settings: All settings.
        cache: A folder that stages may remember work in, the home's `index/`; without it all work is done anew.
        askers: Who answers questions; without it the rules alone.

    Raises Unaccounted where rows vanish, RequestError where answers would cost and there is no budget, and what `Store`
    and askers raise.
    """
    parents = parents_of(stage, store)
    given = _given(stage, parents, store, settings, cache)
    provider = provider_of(stage, store, settings, askers)
    if provider is None:
        assert stage.run is not None
        made = stage.run(given)
    else:
        made = _asked(stage, given, (askers or Askers(None, settings.llm)).of(provider))
    for table, units in stage.units.items():
        require_balance(
            table, [settle(unit, [given.rows[name] for name in names], *made[table]) for unit, names in units.items()]
        )
    run = run_of(stage, parents, settings, provider)
    return [
        store.write(table, *made[table], parents=parents, code=run.code, settings=run.settings)
        for table in stage.tables
    ]


def estimate(stage: Stage, store: Store, settings: Settings, askers: Askers) -> Estimate:
    """What the questions of a stage would take, as its parents stand now. Nothing is sent."""
    provider = provider_of(stage, store, settings, askers)
    assert stage.plan is not None
    assert provider is not None
    asker = askers.of(provider)
    given = _given(stage, parents_of(stage, store), store, settings, None)
    return asker.estimate(stage.name, stage.plan(given, asker.models(stage.models(settings))).questions)


def waits_for_budget(stage: Stage, store: Store, settings: Settings, askers: Askers) -> str | None:
    """Why a stage that is stale is left: its questions cost money, and there is no budget, or nobody can tell who is to
    answer them; None where it is not left.

    What the ledger holds costs nothing: a stage that would only read there is made.
    """
    try:
        provider = provider_of(stage, store, settings, askers)
    except DamagedVersion as error:
        return f"{error.what} ({error.remedy})"
    if provider is None or not askers.costs(provider) or not is_stale(stage, store, settings, askers):
        return None
    try:
        calls = estimate(stage, store, settings, askers).calls
    except (UnknownPrice, NoHost) as error:  # it could not be asked in any case
        return f"calls to {provider} cost money, and there is no budget; {error.what}"
    return f"{calls:,} calls to {provider} cost money, and there is no budget" if calls else None


def _asked(stage: Stage, given: Inputs, asker: Asker) -> Made:
    assert stage.plan is not None
    plan = stage.plan(given, asker.models(stage.models(given.settings)))
    (table,) = stage.tables
    return {table: plan.finish(asker.ask(stage.name, plan.questions))}


def _given(stage: Stage, parents: list[Version], store: Store, settings: Settings, cache: Path | None) -> Inputs:
    return Inputs(
        rows=_rows(store, stage.parents, parents),
        versions={parent.name: parent.version for parent in parents},
        standing={table: _standing(store, table, loss) for table, loss in stage.standing.items()},
        settings=settings,
        cache=cache,
    )


def accounts(stage: Stage, table: str, store: Store) -> list[Account]:
    """The accounts of a table as it is stored, against the versions that it was made from."""
    made = store.version(table)
    kept, dropped = store.read(table).collect(), store.read_dropped(table).collect()
    parents = []
    for name, version in made.manifest.runs[-1].parents.items():
        source, _, partition = name.partition("/")
        parents.append(store.version(source, version, partition or None))
    rows = _rows(store, stage.parents, parents)
    return [
        settle(unit, [rows[name] for name in names], kept, dropped)
        for unit, names in stage.units.get(table, {}).items()
    ]


def parents_of(stage: Stage, store: Store) -> list[Version]:
    """The current versions of a stage's parents.

    Raises NoVersion where a stage before this one never ran.
    """
    found = {table: store.current(table) for table in stage.parents}
    for table, versions in found.items():
        if not versions and table in stage.needed:
            raise NoVersion(
                f"{' and '.join(stage.tables)} come from {table}, and that was never made",
                remedy="gongqing refresh, without --select",
            )
    return [version for versions in found.values() for version in versions]


def run_of(stage: Stage, parents: list[Version], settings: Settings, provider: str | None) -> Run:
    """What a run of the stage would be told apart by: its parents, its code, and what it reads of the settings."""
    return Run(
        parents={parent.name: parent.version for parent in parents},
        code=stage.code,
        settings=stage.settings(settings) | ({} if provider is None else _asking(stage, settings, provider)),
    )


def _asking(stage: Stage, settings: Settings, provider: str) -> dict[str, Any]:
    """What of the settings decides what is asked, and what becomes of a reply. Hosts and prices do not."""
    if provider == "rules":
        return {"provider": provider}
    recorded = {"recordings": _sha256(settings.llm.recordings)} if provider == "replay" else {}
    known = profiles(settings.llm.profiles)
    asked = {alias: shapes(profile(known, alias)) for alias in stage.models(settings)}
    return {"provider": provider, "profiles": asked, "repairs": settings.llm.repairs, **recorded}


def _sha256(recordings: Path | None) -> str | None:
    """Of the file that decides every reply; None where there is none, which is for its asker to refuse."""
    if recordings is None or not recordings.is_file():
        return None
    with recordings.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rows(store: Store, tables: tuple[str, ...], versions: list[Version]) -> dict[str, pl.DataFrame]:
    """The rows of each table in exactly these versions; none where no data set of its kind was imported."""
    frames: dict[str, list[pl.DataFrame]] = {table: [TABLES[table].create_empty()] for table in tables}
    for one in versions:
        frames[one.table].append(store.read(one.table, one.version, one.partition).collect())
    return {table: pl.concat(found) for table, found in frames.items()}


def _standing(store: Store, table: str, loss: str) -> pl.DataFrame:
    """The rows of a table that its stage builds upon.

    Raises DamagedVersion: what was given once cannot be made anew from anything else.
    """
    if store.pointer(table) is None:
        return TABLES[table].create_empty()
    try:
        return store.read(table).collect()
    except DamagedVersion as error:
        raise DamagedVersion(
            f"{error.what}; {table} remembers what was given once, and cannot be made anew",
            where=error.where,
            remedy=f"restore it from a backup, or go back to another version: gongqing tables promote {table} VERSION. "
            f"Without either, remove the folder of {table}: {loss}",
        ) from error
