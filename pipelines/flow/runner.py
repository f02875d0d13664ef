"""Making the tables of a stage from its parents' current versions, and telling whether they are up to date."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.cluster import mapped_on_ray
from pipelines.core.code_version import code_version
from pipelines.core.files import sha256_of
from pipelines.core.spill import spilled
from pipelines.core.stage import Stage
from pipelines.errors import (
    BudgetSpent,
    DamagedVersion,
    NoHost,
    NoVersion,
    OlderSchema,
    RequestError,
    Shrunk,
    UnknownPrice,
)
from pipelines.flow.chunks import Piece, pieces
from pipelines.flow.clients import ClientPool
from pipelines.flow.stages import MAKERS
from pipelines.llm.failures import InvalidReplies
from pipelines.llm.interface import Estimate
from pipelines.llm.profiles import profile, profiles, shapes
from pipelines.llm.providers.written import FOLDER
from pipelines.llm.questions import ASKED_AGAIN, NOT_ASKED_YET, REASONS
from pipelines.llm.tasks import Plan, sampled
from pipelines.settings import Settings, engine
from pipelines.store.chunks import Rows, of_part
from pipelines.store.manifest import Run
from pipelines.store.parquet import content_of
from pipelines.store.reconciliation import Reconciliation, reconcile, require_balance
from pipelines.store.store import Store, Version
from schemas.ids import digest
from schemas.tables import PARTITIONED, TABLES

Made = dict[str, Rows]

# A table of so many rows that other answers alone would halve is not made again unasked: ours.
LEAST_TO_SHRINK = 30
# Where a model's provider stands in the settings of a run of a stage that did without.
STRUCTURAL = "structural"
_NAME_ONE = "--provider openai, or a local one (docs/asking.md)"


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a stage before anything is done about it: whether a run could change anything, what it waits for
    ("for a budget: …"), and so is left as it is all the same, and what is wrong with the tables that it would make.
    """

    stale: bool
    waits: str | None = None
    damaged: tuple[str, ...] = ()

    @property
    def due(self) -> bool:
        """Whether it is to be run."""
        return self.stale and self.waits is None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a refresh did about one stage. `waits` says what one waits for that was left as it is or, where it `ran`,
    made in part; `damaged` what was wrong with the tables that it has made again.
    """

    stage: Stage
    ran: bool
    seconds: float
    versions: list[Version]
    waits: str | None = None
    damaged: tuple[str, ...] = ()


Report = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a run of a stage takes; `plan` holds the questions."""

    parents: list[Version]
    rows: dict[str, pl.DataFrame]
    arguments: dict[str, Any]
    provider: str | None
    plan: Plan | None


class Runner:
    """Tells the status of stages, and runs them: each is examined once, and its questions are planned once.

    Without `clients` the settings or the tables say who answers questions, and nobody does for money.
    """

    def __init__(self, store: Store, settings: Settings, clients: ClientPool | None = None) -> None:
        self.store, self.settings = store, settings
        self.clients = clients or ClientPool(None, settings.llm)
        self._statuses: dict[str, Status] = {}
        self._inputs: dict[str, _Inputs] = {}

    def status(self, stage: Stage) -> Status:
        """The status of a stage as its parents stand, until one is run.

        Raises DamagedVersion where a file of a parent is damaged that no stage makes, and what `parents_of` raises.
        """
        if stage.name not in self._statuses:
            self._statuses[stage.name] = self._status(stage)
        return self._statuses[stage.name]

    def _status(self, stage: Stage) -> Status:
        if stage.name in self.clients.left:
            return Status(stale=True, waits=self.clients.left[stage.name])
        for table in stage.parents:  # what no stage makes, none would make again
            for version in self.store.current(table) if table in PARTITIONED else ():
                self.store.check(version)
        waits = self.waits_for_model(stage) or self._waits_for_parents(stage)
        if waits is not None:
            return Status(stale=False, waits=waits)
        if not self.is_stale(stage):
            return Status(stale=False)
        waits = self._waits_for_budget(stage)
        return Status(True, waits, self._damage(stage) if waits is None else ())

    def is_stale(self, stage: Stage) -> bool:
        """Whether a run of the stage could change anything: it is outdated, or has open questions."""
        return self.is_outdated(stage) or self.open_questions(stage) > 0

    def open_questions(self, stage: Stage) -> int:
        """How many rows of the stage's current tables lack an answer that the next run would ask for: there was none
        the last time, or the budget did not reach so far. None of what waits for a model.
        """
        if not stage.asks or self.waits_for_model(stage):
            return 0
        made = [self.store.version(table) for table in stage.tables if self.store.pointer(table) is not None]
        return sum(version.manifest.dropped_for(*ASKED_AGAIN) for version in made)

    def is_outdated(self, stage: Stage) -> bool:
        """Whether a parent, the code, or a setting is another, a file is damaged, or its columns are those of an older
        gongqing. What waits for a model is as it was.
        """
        if self.waits_for_model(stage):
            return False
        parents = parents_of(stage, self.store)
        try:
            inputs = run_of(stage, parents, self.settings, self.provider(stage)).inputs
        except DamagedVersion:
            return True
        return any(self._differs(stage, table, inputs) for table in stage.tables)

    def _differs(self, stage: Stage, table: str, inputs: str) -> bool:
        """Whether a table of a stage is not what a run from these inputs would leave as it is."""
        try:
            pointer = self.store.pointer(table)
            if pointer is None or pointer.inputs != inputs:
                return True
            if pointer.promoted and table in stage.builds_upon:  # what is built upon it has to follow
                return True
            version = self.store.version(table)
            self.store.check(version)
            self.store.require_todays(version)
        except (DamagedVersion, OlderSchema):
            return True
        return False

    def _damage(self, stage: Stage) -> tuple[str, ...]:
        """What is wrong with the current versions of a stage's tables, in words; nothing where they are whole."""
        problems = []
        for table in stage.tables:
            try:
                if self.store.pointer(table) is not None:
                    self.store.check(self.store.version(table))
            except DamagedVersion as error:
                problems.append(error.what)
        return tuple(problems)

    def provider(self, stage: Stage) -> str | None:
        """Who answers the questions of a stage; None for one that asks none, and where nobody has named a model.

        Raises DamagedVersion where nobody said who, and the table that would tell cannot be read.
        """
        if not stage.asks:
            return None
        return self.clients.provider(None if self.clients.chosen else self._provider_before(stage))

    def waits_for_model(self, stage: Stage) -> str | None:
        """What a stage waits for that no model is named for, in words ("for a model: …"); None where it does not."""
        if not stage.asks or stage.structural:
            return None
        try:
            if self.provider(stage) is not None:
                return None
        except DamagedVersion:  # a model made it: which one is for somebody to say
            return None
        before = self._provider_before(stage)
        return f"for a model{f' (made by {before} before)' if before else ''}: {_NAME_ONE}"

    def _provider_before(self, stage: Stage) -> str | None:
        """The provider that made a table; where its current version is damaged, the one of the newest that is whole."""
        (table,) = stage.tables
        try:
            run = None if self.store.pointer(table) is None else self.store.version(table).manifest.runs[-1]
        except DamagedVersion as error:
            if not (whole := [version.manifest.runs[-1] for version in self.store.versions(table)]):
                raise DamagedVersion(
                    f"{error.what}; it alone could tell who answered the questions of {table}",
                    where=error.where,
                    hint="say who: gongqing refresh --provider NAME",
                ) from error
            run = max(whole, key=lambda one: one.at)
        return None if run is None else run.settings.get("provider")

    def _waits_for_parents(self, stage: Stage) -> str | None:
        """What a stage waits for that needs a table which was never made, or has a parent that is damaged, and is left
        so: its maker waits. None where there is no such one.
        """
        for table in stage.parents:
            try:
                is_there = bool(self.store.current(table)) or table not in needed(stage)
            except DamagedVersion:
                is_there = False
            if not is_there and table in MAKERS and (waits := self.status(MAKERS[table]).waits) is not None:
                return waits
        return None

    def _waits_for_budget(self, stage: Stage) -> str | None:
        """Why a stage that is stale is left: its questions cost money, and there is no budget, or nobody can tell who
        is to answer them; None where it is not left. What the ledger holds costs nothing: a stage that would only read
        there is made.
        """
        try:
            provider = self.provider(stage)
        except DamagedVersion as error:
            return f"for somebody to say who answers: {error.what} ({error.hint})"
        if provider is None or not self.clients.costs(provider):
            return None
        try:
            calls = self.estimate(stage).calls
        except (UnknownPrice, NoHost) as error:  # it could not be asked in any case
            return f"for a budget: calls to {provider} cost money; {error.what}"
        if not calls:
            return None
        del self._inputs[stage.name]  # it is not run, and its rows may be many
        return f"for a budget: {calls:,} calls to {provider} cost money"

    def estimate(self, stage: Stage) -> Estimate:
        """What the questions of a stage would take, as its parents stand now. Nothing is sent."""
        inputs = self._inputs[stage.name] = self.inputs(stage)
        assert inputs.provider is not None
        assert inputs.plan is not None
        return self.clients.of(inputs.provider).estimate(stage.name, inputs.plan.questions)

    def inputs(self, stage: Stage) -> _Inputs:
        """What a run of a stage takes, as its parents stand now.

        Raises RequestError where no model is named that the stage needs.
        """
        parents = parents_of(stage, self.store)
        rows = {} if stage.by_row else _rows(self.store, stage.parents, parents)
        arguments = {
            **rows,
            **{table: _rows_before(self.store, table) for table in stage.builds_upon},
            **self._handed_in(stage, parents),
        }
        provider = self.provider(stage)
        plan = None
        if provider is None and stage.asks:
            if not stage.structural:
                raise RequestError(f"{stage.name} waits for a model", where=stage.name, hint=_NAME_ONE)
            arguments["models"] = ()
        if provider is not None:
            models = self.clients.of(provider).models(stage.models(self.settings))
            plan = stage.function(**arguments, models=models)
            plan = sampled(plan, seed=self.settings.seed, **stage.sizes(self.settings))
        return _Inputs(parents, rows, arguments, provider, plan)

    def _handed_in(self, stage: Stage, parents: list[Version]) -> dict[str, Any]:
        handed_in = {
            "settings": self.settings,
            "versions": {one.name: one.version for one in parents},
            "scratch": self.store.storage.scratch(),
        }
        return {name: value for name, value in handed_in.items() if name in stage.parameters}

    def refresh(self, stage: Stage) -> Outcome:
        """Run a stage if it is stale and waits for nothing. The caller holds the refresh lock.

        Where the budget is used up on the way, its table is made of what is answered, and waits for the rest; it is
        left as it is where nothing is answered, or where it would have fewer rows than before.
        """
        started = time.monotonic()
        status = self.status(stage)
        ran, waits = status.due, status.waits
        try:
            made = self.run(stage) if ran else []
            if unasked := sum(version.manifest.dropped_for(NOT_ASKED_YET) for version in made):
                waits = f"for a budget: {unasked:,} rows are not asked about yet"
        except (BudgetSpent, Shrunk) as error:
            if isinstance(error, Shrunk) and not error.unasked:
                raise
            ran, waits = False, f"for a budget: {error.what}"
            self.clients.left[stage.name] = waits
        versions: list[Version] = []
        for table in stage.tables:
            with suppress(DamagedVersion):  # of a stage that waits, it may be as damaged as it was
                versions += self.store.current(table)
        return Outcome(stage, ran, time.monotonic() - started, versions, waits, status.damaged if ran else ())

    def run(self, stage: Stage) -> list[Version]:
        """Makes the tables of a stage from its parents' current versions.

        Raises Unaccounted where rows vanish, RequestError where no model is named that the stage needs, or where
        answers would cost and there is no budget, OlderSchema where a parent's columns mean something else today,
        TooManyInvalid where answers are invalid, Shrunk where they would halve the table, or want of money would take
        rows from it, and `clients` does not allow it, and what `Store` and clients raise. Then the table stays as it
        was, and what was paid for is in the ledger.
        """
        inputs = self._inputs.get(stage.name) or self.inputs(stage)
        self._statuses.clear()  # what is known of other stages may be true no longer
        self._inputs.clear()
        if stage.by_row:
            return [self._run_by_row(stage, inputs)]
        if inputs.plan is None or inputs.provider is None:
            returned = stage.function(**inputs.arguments)
            made: Made = returned if isinstance(returned, dict) else {stage.name: returned}
        else:
            replies = self.clients.of(inputs.provider).ask(stage.name, inputs.plan.questions)
            counts = InvalidReplies(stage.name, self.settings.llm.failures)
            for reply in replies:  # those of earlier runs, and of recordings, as well
                counts.count(reply)
            counts.require()
            made = {stage.name: inputs.plan.finish(replies)}
        for table, units in stage.units.items():
            reconciliations = [
                reconcile(unit, [inputs.rows[name] for name in names], *made[table]) for unit, names in units.items()
            ]
            require_balance(table, reconciliations)
        run = run_of(stage, inputs.parents, self.settings, inputs.provider)
        if inputs.provider is not None and not self.clients.allow_shrink:
            kept, dropped = made[stage.name]
            unanswered = dropped.filter(pl.col("reason").is_in(REASONS)).height
            unasked = dropped.filter(pl.col("reason") == NOT_ASKED_YET).height
            _require_size(stage.name, kept.height, unanswered, run, self.store, unasked)
        return [
            self.store.write(table, *made[table], parents=inputs.parents, code=run.code, settings=run.settings)
            for table in stage.tables
        ]

    def _run_by_row(self, stage: Stage, inputs: _Inputs) -> Version:
        """Makes the table of a stage piece by piece; what was made from the same before stays."""
        run = run_of(stage, inputs.parents, self.settings, None)
        looked_up = _rows(
            self.store, tuple(stage.looks_up), [one for one in inputs.parents if one.table in stage.looks_up]
        )
        of_rows = [parent for parent in inputs.parents if parent.table not in stage.looks_up]
        for parent in of_rows:
            self.store.require_todays(parent)
        chunks = []
        for piece in pieces(of_rows, run, stage.whole):
            known = {table: self._looked_up(piece, rows, *stage.looks_up[table]) for table, rows in looked_up.items()}
            chunks.append((digest(" ".join([piece.name, *map(content_of, known.values())])), piece, known))

        def make(numbers: Sequence[int]) -> Iterator[Rows]:
            each = mapped_on_ray if engine() == "ray" else map
            units = stage.units.get(stage.name, {})
            work = partial(_made_by_row, stage.name, stage.function, stage.parents, units, inputs.arguments)
            return each(work, (self._read(*chunks[number][1:]) for number in numbers))

        names = [name for name, _, _ in chunks]
        return self.store.write_chunks(stage.name, names, make, inputs.parents, code=run.code, settings=run.settings)

    def _looked_up(self, piece: Piece, rows: pl.DataFrame, column: str, as_column: str, *others: str) -> pl.DataFrame:
        """The rows of another table that the rows of a piece need, in the columns that they need."""
        needs = pl.concat([self.store.read_chunk(*chunk).select(column) for chunk in piece.chunks]).collect()
        return rows.select(as_column, *others).filter(pl.col(as_column).is_in(needs[column].implode()))

    def _read(self, piece: Piece, looked_up: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """The rows of a piece, and of other tables those that they need, by the table."""
        rows = pl.concat([self.store.read_chunk(*chunk) for chunk in piece.chunks]).collect()
        return {piece.table: rows, **looked_up}


def _made_by_row(
    table: str,
    function: Callable[..., Rows],
    parents: tuple[str, ...],
    units: Mapping[str, tuple[str, ...]],
    arguments: dict[str, Any],
    rows: dict[str, pl.DataFrame],
) -> Rows:
    """What the function of a stage makes of some rows of one of its parents. It may be called on another machine."""
    rows = {parent: TABLES[parent].create_empty() for parent in parents} | rows
    made = function(**rows, **arguments)
    require_balance(table, [reconcile(unit, [rows[name] for name in names], *made) for unit, names in units.items()])
    return made


def _require_size(table: str, rows: int, unanswered: int, run: Run, store: Store, unasked: int = 0) -> None:
    """Raises Shrunk where a table would lose half of its rows to answers alone: parents and settings are the same, or
    half of what it would lose was dropped for want of an answer that could be used; and where it would lose any, and
    some are `unasked`.
    """
    try:
        before = None if store.pointer(table) is None else store.version(table)
    except DamagedVersion:
        return
    if before is not None and unasked and rows < before.rows:
        raise Shrunk(table, before.rows, rows, unasked)
    if before is None or before.rows < LEAST_TO_SHRINK or 2 * rows > before.rows:
        return
    last = before.manifest.runs[-1]
    same = (last.parents, last.settings) == (run.parents, run.settings)
    if same or 2 * unanswered >= before.rows - rows:
        raise Shrunk(table, before.rows, rows)


def reconciliations(stage: Stage, table: str, store: Store) -> list[Reconciliation]:
    """The reconciliations of a table as it is stored, against the versions that it was made from."""
    kept, dropped = store.read(table).collect(), store.read_dropped(table).collect()
    parents = []
    for name, version in store.version(table).manifest.runs[-1].parents.items():
        source, _, partition = name.partition("/")
        parents.append(store.version(source, version, partition or None))
    rows = _rows(store, stage.parents, parents)
    return [
        reconcile(unit, [rows[name] for name in names], kept, dropped)
        for unit, names in stage.units.get(table, {}).items()
    ]


def parents_of(stage: Stage, store: Store) -> list[Version]:
    """The current versions of a stage's parents. Raises NoVersion where a stage before this one never ran."""
    current = {table: store.current(table) for table in stage.parents}
    for table, versions in current.items():
        if not versions and table in needed(stage):
            raise NoVersion(
                f"{' and '.join(stage.tables)} come from {table}, and that was never made",
                hint="gongqing refresh, without --select",
            )
    return [version for versions in current.values() for version in versions]


def needed(stage: Stage) -> tuple[str, ...]:
    """The parents that must have been made before: not those that are fed from outside, or that people fill."""
    return tuple(table for table in stage.parents if table not in {*PARTITIONED, *stage.optional_parents})


def code_of(stage: Stage) -> str:
    """The version of the stage's code."""
    return code_version(stage.function.__module__)


def run_of(stage: Stage, parents: list[Version], settings: Settings, provider: str | None) -> Run:
    """What a run of the stage is known by: its parents, its code, and what it reads of the settings."""
    return Run(
        parents={parent.name: parent.version for parent in parents},
        code=code_of(stage),
        settings=stage.settings(settings) | (_asking(stage, settings, provider) if stage.asks else {}),
    )


def _asking(stage: Stage, settings: Settings, provider: str | None) -> dict[str, Any]:
    """What of the settings decides what is asked, and what becomes of a reply. Hosts and prices do not."""
    if provider is None:
        return {"provider": STRUCTURAL}
    if provider == "written":
        return {"provider": provider, "replies": _sha256(FOLDER / f"{stage.name}.jsonl")}
    recorded = {"recordings": _sha256(settings.llm.recordings)} if provider == "replay" else {}
    known = profiles(settings.llm.profiles)
    shaped = {alias: shapes(profile(known, alias)) for alias in stage.models(settings)}
    return {"provider": provider, "profiles": shaped, "repairs": settings.llm.repairs, **recorded}


def _sha256(recordings: Path | None) -> str | None:
    """Of the file that decides every reply; None where there is none, which is for its client to refuse."""
    return sha256_of(recordings) if recordings is not None and recordings.is_file() else None


def _rows(store: Store, tables: tuple[str, ...], versions: list[Version]) -> dict[str, pl.DataFrame]:
    """The rows of each table in exactly these versions, left on the disk; none where no data set of its kind was
    imported.
    """
    frames: dict[str, list[Iterable[pl.DataFrame]]] = {table: [[TABLES[table].create_empty()]] for table in tables}
    for one in versions:
        store.require_todays(one)
        frames[one.table].append(_by_chunk(store, one))
    scratch = store.storage.scratch()
    return {table: spilled(chain.from_iterable(parts), scratch) for table, parts in frames.items()}


def _by_chunk(store: Store, version: Version) -> Iterator[pl.DataFrame]:
    for chunk in of_part(version.manifest.files, "rows"):
        yield store.read_chunk(version, chunk).collect()


def _rows_before(store: Store, table: str) -> pl.DataFrame:
    """The rows of a table that its stage builds upon; none where it was never made."""
    if store.pointer(table) is None:
        return TABLES[table].create_empty()
    store.require_todays(store.version(table))
    return store.read(table).collect()
