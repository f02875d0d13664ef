"""What a refresh would do, as the tables stand now; nothing is asked, made or written."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pipelines.core.home import Home
from pipelines.core.stage import Stage
from pipelines.errors import DamagedVersion
from pipelines.flow.clients import PAID, ClientPool
from pipelines.flow.refresh import chosen, require_prices, require_sources
from pipelines.flow.runner import Runner, needed
from pipelines.flow.stages import MAKERS
from pipelines.flow.staleness import stale_reasons
from pipelines.settings import Settings
from pipelines.store.store import Store

_FOR_A_BUDGET = "for a budget: answers that the ledger does not hold cost money (--estimate says how much)"


@dataclass(frozen=True, slots=True)
class Preview:
    """What a refresh would do about one stage: leave it for what it `waits` for; else run it for its `reasons`; else
    run it where one of the stages that it comes `after` makes another version; else leave it, as up to date.
    """

    stage: Stage
    reasons: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    waits: str | None = None

    @property
    def runs(self) -> bool:
        """Whether it would be run in any case."""
        return bool(self.reasons) and self.waits is None

    @property
    def may_run(self) -> bool:
        """Whether it would be run, or may be."""
        return self.waits is None and bool(self.reasons or self.after)

    @property
    def waiting(self) -> bool:
        """Whether it would be left for what it waits for."""
        return self.waits is not None


def preview(
    home: Path, settings: Settings, select: Iterable[str] = (), provider: str | None = None, *, budget: bool = False
) -> list[Preview]:
    """What a refresh would do about each stage, in order.

    Args:
        home: The home's folder; no file of it is changed, and no lock taken.
        settings: All settings.
        select: Groups, tables or stages; all of them where nothing is named.
        provider: Who answers questions, as `ClientPool` takes it.
        budget: Whether the refresh may spend anything.

    Raises what `pipelines.flow.refresh.refresh` raises before it makes anything.
    """
    store, stages = Store(Home(home).data), chosen(select)
    require_sources(home, store)
    # With a budget no status looks into the ledger, and without a home none could: to look would write there.
    runner = Runner(store, settings, ClientPool(None, settings.llm, provider=provider, budget=Decimal(0)))
    if budget:
        require_prices(stages, runner)
    previewer = _Previewer(runner, stages, budget=budget)
    return [previewer.of(stage) for stage in stages]


class _Previewer:
    """Looks at each stage once: those of a refresh, and what decides whether one of these has to wait."""

    def __init__(self, runner: Runner, stages: list[Stage], *, budget: bool) -> None:
        self._runner, self._budget = runner, budget
        self._chosen = {stage.name for stage in stages}
        self._known: dict[str, Preview] = {}

    def of(self, stage: Stage) -> Preview:
        """What would be done about a stage."""
        if stage.name not in self._known:
            self._known[stage.name] = self._look(stage)
        return self._known[stage.name]

    def _look(self, stage: Stage) -> Preview:
        missing = [self.of(MAKERS[table]) for table in needed(stage) if table in MAKERS and not self._is_there(table)]
        waits = self._runner.waits_for_model(stage) or next((one.waits for one in missing if one.waits), None)
        if waits is not None:
            return Preview(stage, waits=waits)
        makers = [MAKERS[table] for table in stage.parents if table in MAKERS and MAKERS[table].name in self._chosen]
        after = tuple(dict.fromkeys(maker.name for maker in makers if self.of(maker).may_run))
        if missing and all(
            one.stage.name in after for one in missing
        ):  # its status cannot be told before they are made
            names = dict.fromkeys(one.stage.name for one in missing)
            reasons: tuple[str, ...] = (f"{' and '.join(names)} would be made first",)
        else:
            status = self._runner.status(stage)
            if status.waits is not None:
                return Preview(stage, waits=status.waits)
            reasons = stale_reasons(stage, self._runner)
        costs = not self._budget and self._runner.provider(stage) in PAID
        return Preview(stage, reasons, after, _FOR_A_BUDGET if costs and (reasons or after) else None)

    def _is_there(self, table: str) -> bool:
        try:
            return bool(self._runner.store.current(table))
        except DamagedVersion:
            return False
