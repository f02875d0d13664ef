"""What assets are given: the home, with its store and settings."""

from pathlib import Path

import dagster as dg

from pipelines import settings
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
