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

    def __init__(self, **script: object) -> None:
        super().__init__("tests.doubles.vendor", ["--port=0", f"--script={json.dumps(script)}"])

    @property
    def base_url(self) -> str:
        """What a client of OpenAI's kind is given."""
        return f"{self.url}/v1"

    def stats(self) -> Any:
        """Since the start: requests, billed, nano, most_in_flight, connections, faults by kind."""
        return self._answer("_vendor/stats")

    def book(self) -> Any:
        """By the SHA-256 of a payload's canonical JSON: how often it was asked, how often billed, and at what."""
        return self._answer("_vendor/book")

    def change(self, **script: object) -> None:
        """Changes the script while the server runs: `faults`, `latency`, `greedy` …"""
        self._answer("_vendor/script", json.dumps(script).encode())

    def anew(self, **script: object) -> None:
        """As if it had just been started with this script, and sooner: an empty book, no files, no batches."""
        self._answer("_vendor/anew", json.dumps(script).encode())

    def batches(self, **script: object) -> Any:
        """Changes how batches go (`vendor.batches` says what there is), and tells of files and batches."""
        return self._answer("_vendor/batches", json.dumps(script).encode())
