"""Every table that is stale, in order; one refresh at a time."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipelines.core.home import Home
from pipelines.core.stage import Stage
from pipelines.errors import DamagedVersion, NoVersion, RequestError, StoreError, UnknownName
from pipelines.flow.clients import PAID, ClientPool
from pipelines.flow.people import waits_for_people
from pipelines.flow.runner import Outcome, Report, Runner, needed
from pipelines.flow.stages import MAKERS, STAGES
from pipelines.flow.staleness import stale_since
from pipelines.llm.interface import BUDGET, Estimate
from pipelines.llm.profiles import prices, profile, profiles
from pipelines.llm.questions import NOT_ASKED_YET
from pipelines.settings import Settings
from pipelines.store.emptiness import why_empty
from pipelines.store.store import Store
from pipelines.store.suppression import alone


def chosen(select: Iterable[str]) -> list[Stage]:
    """The stages of the named groups, tables or stages, in order; all of them where nothing is named.

    Raises UnknownName.
    """
    names = set(select)
    known = {name for stage in STAGES for name in (stage.group, stage.name, *stage.tables)}
    for name in sorted(names - known):
        raise UnknownName("group or table", name, known)
    return [stage for stage in STAGES if not names or names & {stage.group, stage.name, *stage.tables}]


def budget_name(select: Iterable[str]) -> str:
    """Whose budget a refresh of these groups, tables or stages spends: what was broken off goes on with its own, and a
    refresh of something else neither takes from it nor ends it.
    """
    asking = [stage.name for stage in chosen(select) if stage.asks]
    everything = [stage.name for stage in STAGES if stage.asks]
    return BUDGET if asking == everything else f"{BUDGET}:{','.join(asking)}"


def refresh(
    home: Path,
    settings: Settings,
    select: Iterable[str] = (),
    clients: ClientPool | None = None,
    run: Callable[[Runner, list[Stage], Report], object] | None = None,
    report: Report | None = None,
) -> list[Outcome]:
    """Make the tables of every stage that is stale, in order.

    A stage that asks is left where no model is named, or where it would cost money and there is no budget; and so is
    what needs a table that was never made for it.

    Args:
        home: The home's folder.
        settings: All settings.
        select: Groups, tables or stages; all of them where nothing is named.
        clients: Who answers questions; None: as the settings or the tables say, and nobody for money.
        run: Calls `Runner.refresh` for the stages that are stale, or come after one that is; None: one by one, here.
        report: Hears of each stage when it is done.

    Raises Busy where another refresh is at work, RequestError where nothing was ever imported; UnknownPrice before
    anything is spent, where nobody has said what a model costs that a stage may ask; DamagedVersion where a file is
    damaged that somebody has to import again.
    """
    stages = chosen(select)
    store = Store(Home(home).data)
    require_sources(home, store)
    runner = Runner(store, settings, clients or ClientPool(home, settings.llm))
    if runner.clients.may_spend:
        require_prices(stages, runner)
    outcomes: list[Outcome] = []

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if report is not None:
            report(outcome)

    with alone(home):
        due: list[Stage] = []
        for stage in stages:
            follows = any(table in stage.parents for other in due for table in other.tables)
            if follows or runner.status(stage).due:
                due.append(stage)
            else:
                done(runner.refresh(stage))
        if run is not None and due:
            run(runner, due, done)
        else:
            for stage in due:
                done(runner.refresh(stage))
    return sorted(outcomes, key=lambda outcome: stages.index(outcome.stage))


def estimates(
    home: Path, settings: Settings, clients: ClientPool, select: Iterable[str] = ()
) -> Iterator[tuple[Stage, Estimate | str]]:
    """What the questions of each stage that asks would take, as the tables stand now; or why nobody can tell, in words.

    Raises RequestError where nothing was ever imported, UnknownPrice for all models whose price is unknown.
    """
    store, stages = Store(Home(home).data), chosen(select)
    require_sources(home, store)
    runner = Runner(store, settings, clients)
    require_prices(stages, runner)
    for stage in stages:
        if stage.asks:
            if runner.provider(stage) is None:
                yield stage, "no model is named: --provider openai"
            elif not all(store.current(table) for table in needed(stage)):
                yield stage, "what it is made from was never made"
            else:
                yield stage, runner.estimate(stage)


def require_prices(stages: Iterable[Stage], runner: Runner) -> None:
    """Raises UnknownPrice where the stages may ask a paid model whose price is unknown."""
    aliases: list[str] = []
    for stage in stages:
        with contextlib.suppress(DamagedVersion):  # it waits until somebody says who answers
            aliases += stage.models(runner.settings) if runner.provider(stage) in PAID else ()
    known = profiles(runner.settings.llm.profiles) if aliases else {}
    prices(profile(known, alias) for alias in aliases)


def require_sources(home: Path, store: Store) -> None:
    """Raises RequestError where nothing was ever imported."""
    if not any(store.partitions(table) for table in ("raw_posts", "imported_posts", "imported_dialogues")):
        raise RequestError(
            "there is nothing to refresh: no data set was imported",
            where=home,
            hint="gongqing import NAME PATH, or gongqing demo",
        )


def states(store: Store, settings: Settings) -> dict[str, str]:
    """The state of every table that a stage makes, in words, and of those that wait for people; nothing is planned,
    asked or made.

    One that was never made has one only where it waits for a model, for people, or for a table that does.
    """
    known: dict[str, str] = {}
    runner = Runner(store, settings)
    for table, stage in MAKERS.items():
        if (state := _state(table, stage, runner, known)) is not None:
            known[table] = state
    with contextlib.suppress(StoreError):  # `gongqing tables` itself says what is wrong with it
        known |= waits_for_people(store)
    return known


def _state(table: str, stage: Stage, runner: Runner, before: dict[str, str]) -> str | None:
    try:
        made = runner.store.pointer(table) is not None
        waits = runner.waits_for_model(stage)
        if waits is not None:
            return f"waits {waits.partition(':')[0]}"
        if not made:
            return next((before[one] for one in stage.parents if before.get(one, "").startswith("waits")), None)
        if unasked := runner.store.version(table).manifest.dropped_for(NOT_ASKED_YET):
            return f"waits for a budget ({unasked:,} rows not asked yet)"
        stale = _stale(stage, runner) if runner.is_stale(stage) else ""
        empty = why_empty(runner.store, runner.store.version(table))
        return "; ".join(filter(None, (stale, empty and f"empty: {empty}"))) or "up to date"
    except NoVersion:
        return "stale"
    except StoreError:  # `gongqing tables` itself says what is wrong with it
        return None


def _stale(stage: Stage, runner: Runner) -> str:
    since = stale_since(stage, runner.store)
    return f"stale since {since.astimezone():%Y-%m-%d %H:%M}" if since is not None else "stale"
