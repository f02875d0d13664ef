"""A vendor of models on loopback, OpenAI-compatible, with a book of what it billed. Everything it says is invented.

with Vendor(latency=0.05, faults={"429": 0.1, "malformed": 0.05}) as vendor:
    ...  # base_url=vendor.base_url
    vendor.stats()["billed"]
"""

import json
from typing import Any

from tests.doubles.process import ServerProcess


class Vendor(ServerProcess):
    """The stub in a process of its own. The options are those of `python -m tests.doubles.vendor --help`; money is in
    nano-units of the currency (10⁻⁹).
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        hang: float = 2.0,
        faults: dict[str, float] | None = None,
        retry_after: float = 0.0,
        seed: int = 0,
        key: str | None = None,
        models: tuple[str, ...] = (),
        price_input: int = 2_500,
        price_output: int = 10_000,
        greedy: bool = False,
        answers: str | None = None,
        port: int = 0,
    ) -> None:
        """A vendor that answers after `latency` seconds; a share of its answers goes wrong, by kind of `faults`."""
        options: dict[str, object] = {
            **{"latency": latency, "hang": hang, "faults": json.dumps(faults or {}), "retry-after": retry_after},
            **{"seed": seed, "key": key, "price-input": price_input, "price-output": price_output},
            **{"answers": answers, "port": port},
        }
        told = [f"--{name}={value}" for name, value in options.items() if value is not None]
        super().__init__("tests.doubles.vendor", [*told, *["--greedy"] * greedy, *["--models", *models] * bool(models)])

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
