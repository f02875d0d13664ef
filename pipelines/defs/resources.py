"""What assets use: the home, with its store and settings, and the clients that answer questions."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg

from pipelines import settings
from pipelines.core.home import Home
from pipelines.defs.allowance import allow, record_spent
from pipelines.flow.clients import ClientPool
from pipelines.flow.runner import Report, Runner
from pipelines.store.store import Store


class HomeResource:
    """The home of a corpus. No run configuration names it: it is the home of the process.

    Code that runs assets itself gives the `path` of another, the `runner` that knows the stages already, and a `report`
    that hears of each stage when it is done.
    """

    def __init__(
        self, path: str | Path | None = None, runner: Runner | None = None, report: Report | None = None
    ) -> None:
        self._path, self._runner, self.report = path, runner, report
        self.left: set[str] = set()  # tables that a command's run has left as they stood: there is nothing to check

    @property
    def folder(self) -> Path:
        """The folder of the home."""
        return Path(self._path).expanduser().resolve() if self._path else settings.home()

    def store(self) -> Store:
        """The store of the home."""
        return Store(Home(self.folder).data)

    def settings(self) -> settings.Settings:
        """The settings of the home, read again for each run."""
        return settings.load(self.folder)

    def runner(self, clients: ClientPool | None) -> Runner:
        """What runs the stages of the home."""
        return self._runner or Runner(self.store(), self.settings(), clients)


home_resource = dg.ResourceDefinition(
    lambda _: HomeResource(),
    config_schema={},
    description="The home that this process serves; there is nothing to configure.",
)


def under_way(instance: dg.DagsterInstance | None) -> set[str]:
    """The ids of all runs that have not ended."""
    if instance is None:
        return set()
    ended = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
    return {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=list(set(dg.DagsterRunStatus) - ended)))}


@dg.resource(
    description="Who answers questions in a run, and what that may cost. Without a budget nothing that costs is asked.",
    config_schema={
        "provider": dg.Field(str, is_required=False, description="openai, replay or written; else as the settings say"),
        "budget": dg.Field(
            float,
            is_required=False,
            description="the most that the run may spend: no more than daily_budget under [llm] leaves for the day",
        ),
        "batch": dg.Field(bool, default_value=False, description="ask through batch interfaces: half the price, slow"),
        "allow_shrink": dg.Field(bool, default_value=False, description="whether answers alone may halve a table"),
    },
    required_resource_keys={"home"},
)
def clients_resource(context: dg.InitResourceContext) -> Iterator[ClientPool]:
    """The clients of one run: they share its budget, which the settings cap.

    Raises RequestError for a budget above what they allow.
    """
    home: HomeResource = context.resources.home
    config, llm = context.resource_config, home.settings().llm
    assert context.run is not None
    budget = Decimal(str(config["budget"])) if "budget" in config else None
    run = f"run {context.run.run_id}"
    if budget is not None:
        allow(home.folder, llm, run, budget, under_way(context.instance))
    try:
        with ClientPool(
            home.folder,
            llm,
            provider=config.get("provider"),
            budget=budget,
            budget_of=run,
            batch=config["batch"],
            allow_shrink=config["allow_shrink"],
        ) as clients:
            yield clients
    finally:
        if budget is not None:
            record_spent(home.folder, run, run)
