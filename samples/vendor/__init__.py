"""A vendor of models on loopback, OpenAI-compatible, with a book of what it billed. Everything it says is invented.

with Vendor(latency=0.05, faults={"429": 0.1, "malformed": 0.05}) as vendor:
    ...  # base_url=vendor.base_url
    vendor.stats()["billed"]
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60
_STOP_SECONDS = 10


class Vendor:
    """The stub in a process of its own, on a free port of 127.0.0.1, in a session of its own.

    It ends with `stop`, with the `with` block, or when this process dies, however that happens. The options are those
    of `python -m samples.vendor --help`; money is in nano-units of the currency (10⁻⁹).
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
        self._options = [f"--{name}={value}" for name, value in options.items() if value is not None]
        self._options += ["--greedy"] * greedy + ["--models", *models] * bool(models)
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    @property
    def base_url(self) -> str:
        """What a client of OpenAI's kind is given."""
        return f"{self.url}/v1"

    def start(self) -> Self:
        """Starts the server and waits until it answers. Raises RuntimeError with its words when it does not."""
        if self._process is not None:
            return self
        command = [sys.executable, "-m", "samples.vendor", "--with-parent", *self._options]
        # A file, not a pipe: nobody reads it while the server runs, and a full pipe would stop it.
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server ends
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,
            bufsize=0,
        )
        self._process = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        self.url = process.stdout.readline().decode().strip() if ready else ""
        if not self.url:
            said = self._end()
            raise RuntimeError(f"the vendor did not start ({' '.join(command)}): {said or 'no answer in time'}")
        return self

    def stop(self) -> None:
        """Ends the server. Stopping twice does nothing."""
        if self._process is not None:
            self._end()

    def _end(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        # The leader is not waited for yet, so its process group is still its own.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        with self._words:
            self._words.seek(0)
            return self._words.read().decode(errors="replace").strip()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

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

    def _ask(self, switch: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{self.url}/_vendor/{switch}", data=body)  # noqa: S310 - always loopback
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)
