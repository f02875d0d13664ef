"""What assets are given: the home, with its store and settings, and whoever answers questions."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg

from pipelines import settings
from pipelines.askers import Askers
from pipelines.store import Store


class HomeResource(dg.ConfigurableResource[None]):
    """The home of a corpus. Empty: what GONGQING_HOME says, or the repository."""

    path: str = ""

    @property
    def folder(self) -> Path:
        """The folder of the home."""
        return Path(self.path).expanduser().resolve() if self.path else settings.home()

    def store(self) -> Store:
        """The store of the home."""
        return Store(self.folder / "data")

    def settings(self) -> settings.Settings:
        """The settings of the home, read anew for each run."""
        return settings.load(self.folder)


@dg.resource(
    description="Who answers questions in a run, and what that may cost. Without a budget nothing that costs is asked.",
    config_schema={
        "provider": dg.Field(str, is_required=False, description="rules, openai or replay; else as the settings say"),
        "budget": dg.Field(float, is_required=False, description="the most that the run may spend"),
        "batch": dg.Field(bool, default_value=False, description="ask through batch interfaces: half the price, slow"),
    },
    required_resource_keys={"home"},
)
def askers_resource(context: dg.InitResourceContext) -> Iterator[Askers]:
    """The askers of one run: they share its budget."""
    home: HomeResource = context.resources.home
    said = context.resource_config
    assert context.run is not None
    with Askers(
        home.folder,
        home.settings().llm,
        provider=said.get("provider"),
        budget=Decimal(str(said["budget"])) if "budget" in said else None,
        budget_of=f"run {context.run.run_id}",
        batch=said["batch"],
    ) as askers:
        yield askers
