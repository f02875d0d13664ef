"""A data-set hub on loopback that the real huggingface_hub takes for the Hub. What is on it is on it alone.

with Hub() as hub:
    ...  # HF_ENDPOINT=hub.url, HF_TOKEN=hub.token, HF_HUB_DISABLE_XET=1
    hub.requests()
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.doubles.process import ServerProcess


class Hub(ServerProcess):
    """The stub in a process of its own. What was put on it stays in `folder`, where one is given."""

    token = "hf_invented_token_of_the_loopback_hub"

    def __init__(self, folder: Path | None = None, port: int = 0) -> None:
        """A hub without repositories, or with those of `folder`."""
        self._scratch = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = folder or Path(self._scratch.name)  # type: ignore[union-attr]  # one of the two is there
        super().__init__("tests.doubles.hub", [f"--folder={self.folder}", f"--port={port}", f"--token={self.token}"])

    def stop(self) -> None:
        """Ends the server; what was put on it goes where no folder was given. Stopping twice does nothing."""
        super().stop()
        if self._scratch is not None:
            self._scratch.cleanup()

    def requests(self) -> list[dict[str, Any]]:
        """Every request since the start: method, path, status, bytes received, and whether it brought the token."""
        told: list[dict[str, Any]] = self._ask("requests")
        return told

    def state(self, repo: str) -> dict[str, Any]:
        """A repository as it lies on disk: commits with their trees, refs, tags, private, gated."""
        told: dict[str, Any] = self._ask(f"state/{repo}")
        return told

    def trouble(self, **script: object) -> None:
        """Makes trouble (`tests.doubles.hub.server.Trouble` says what there is)."""
        self._ask("trouble", json.dumps(script).encode())

    def anew(self) -> None:
        """As if it had just been started, and sooner: no repositories, no files, no requests, no trouble."""
        self._ask("anew", b"")

    def _ask(self, switch: str, body: bytes | None = None) -> Any:
        return self._answer(f"_hub/{switch}", body)
