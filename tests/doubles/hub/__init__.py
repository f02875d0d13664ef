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
    """The stub in a process of its own. The content of files lies in `folder`, by its SHA-256."""

    token = "hf_invented_token_of_the_loopback_hub"

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self._scratch.name)
        super().__init__("tests.doubles.hub", [f"--folder={self.folder}", "--port=0"])

    def stop(self) -> None:
        super().stop()
        self._scratch.cleanup()

    def requests(self) -> list[dict[str, Any]]:
        """Every request since the start: method, path, status, and whether it brought the token."""
        return self._answer("_hub/requests")

    def state(self, repo: str) -> dict[str, Any]:
        """A repository: the trees of its commits, refs, tags, private, gated."""
        return self._answer(f"_hub/state/{repo}")

    def trouble(self, **script: object) -> None:
        """Makes trouble (`tests.doubles.hub.server.Trouble` says what there is)."""
        self._answer("_hub/trouble", json.dumps(script).encode())

    def anew(self) -> None:
        """As if it had just been started, and sooner: no repositories, no files, no requests, no trouble."""
        self._answer("_hub/anew", b"")
