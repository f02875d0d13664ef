"""A vendor of models on loopback, OpenAI-compatible, with a book of what it billed. Everything it says is invented.

with Vendor(latency=0.05, faults={"429": 0.1, "malformed": 0.05}) as vendor:
    ...  # base_url=vendor.base_url
    vendor.stats()["billed"]
"""

import json
from typing import Any

from tests.doubles.process import ServerProcess


class Vendor(ServerProcess):
    """The stub in a separate process; how it behaves is a `Script` of `tests.doubles.vendor.server`."""

    def __init__(self, port: int = 0, **script: object) -> None:
        super().__init__("tests.doubles.vendor", [f"--port={port}", f"--script={json.dumps(script)}"])

    @property
    def base_url(self) -> str:
        """What a client of OpenAI's kind is given."""
        return f"{self.url}/v1"

    def stats(self) -> dict[str, Any]:
        """Since the start: requests, billed, nano, payloads, most_in_flight, connections, faults by kind."""
        told: dict[str, Any] = self._ask("stats")
        return told

    def book(self) -> dict[str, list[int]]:
        """By the SHA-256 of a payload's canonical JSON: how often it was asked, how often billed, and at what."""
        told: dict[str, list[int]] = self._ask("book")
        return told

    def change(self, **script: object) -> None:
        """Changes the script while the server runs: `faults`, `latency`, `greedy` …"""
        self._ask("script", json.dumps(script).encode())

    def anew(self, **script: object) -> None:
        """As if it had just been started with this script, and sooner: an empty book, no files, no batches."""
        self._ask("anew", json.dumps(script).encode())

    def batches(self, **script: object) -> dict[str, Any]:
        """Changes how batches go (`vendor.batches` says what there is), and tells of files and batches."""
        told: dict[str, Any] = self._ask("batches", json.dumps(script).encode())
        return told

    def _ask(self, switch: str, body: bytes | None = None) -> Any:
        return self._answer(f"_vendor/{switch}", body)
