"""A replica of the sites: their markup, our texts. `Replica` runs it in a process of its own. See README.md."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 60
_STOP_SECONDS = 10


class Replica:
    """The replica in a process of its own, on a free port of 127.0.0.1, in a session of its own.

    It ends with `stop`, with the `with` block, or when this process dies, however that happens. All answers of the
    methods are those of the switches under `/_replica/` (README.md).
    """

    def __init__(
        self,
        posts: int | None = None,
        now: datetime | str | None = None,
        *,
        file: Path | None = None,
        days: float = 14,
        seed: int = 0,
        layout: str = "2023",
        crawl_delay: float = 0,
        arrivals: float = 0,
        port: int = 0,
    ) -> None:
        """`posts` in all (None: the samples alone); a given `now` (naive: Shanghai) stands still; no Crawl-delay."""
        options: dict[str, object] = {
            **{"posts": posts, "now": now.isoformat() if isinstance(now, datetime) else now, "file": file},
            **{"days": days, "seed": seed, "layout": layout, "crawl-delay": crawl_delay},
            **{"arrivals": arrivals, "port": port},
        }
        self._options = [f"--{name}={value}" for name, value in options.items() if value is not None]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> Self:
        """Starts the server and waits until it answers. Raises RuntimeError with its words when it does not."""
        if self._process is not None:
            return self
        command = [sys.executable, "-m", "samples.replica", "--with-parent", *self._options]
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
            raise RuntimeError(f"the replica did not start ({' '.join(command)}): {said or 'no answer in time'}")
        return self

    def stop(self) -> None:
        """Ends the server and everything it started. Stopping twice does nothing."""
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

    def ask(self, switch: str, **options: object) -> Any:
        """What `/_replica/{switch}?{options}` answers."""
        url = f"{self.url}/_replica/{switch}?{urllib.parse.urlencode(options)}"
        request = urllib.request.Request(url, method="POST")  # noqa: S310 - always http://127.0.0.1
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def posts(self) -> list[dict[str, Any]]:
        """The truth: all posts that are there now, newest first, with their ids on every site."""
        answer: list[dict[str, Any]] = self.ask("posts")
        return answer

    def requests(self, *, reset: bool = False) -> dict[str, Any]:
        """What was asked for since the start (or the last reset): count, paths, times, user_agents, …"""
        answer: dict[str, Any] = self.ask("requests", reset=int(reset))
        return answer

    def tick(self, days: float = 0, posts: int = 0, answers: int = 0) -> dict[str, Any]:
        """Moves the clock; new posts and late answers come. Gives the numbers of `new` and `changed` posts."""
        answer: dict[str, Any] = self.ask("tick", days=days, posts=posts, answers=answers)
        return answer

    def challenge(self, on: bool = True, kind: str = "arg1", *, after: int = 0, times: int = -1) -> None:
        """Every page becomes a challenge page, after `after` more pages, for `times` pages (-1: for good)."""
        self.ask("challenge", on=int(on), kind=kind, after=after, times=times)

    def slow(self, seconds: float, rate: float = 1) -> None:
        """A share `rate` of the pages comes late."""
        self.ask("slow", seconds=seconds, rate=rate)

    def broken(self, rate: float, kind: str = "500") -> None:
        """A share `rate` of the answers is broken: 500, cut, drop (the connection) or mixed."""
        self.ask("broken", rate=rate, kind=kind)

    def hostile(self, on: bool = True, mb: int = 50) -> None:
        """Links to hostile pages stand on top of Xinli001's first list page."""
        self.ask("hostile", on=int(on), mb=mb)

    def layout(self, layout: str) -> None:
        """Changes the layout of Xinli001."""
        self.ask("layout", layout=layout)

    def robots(self, crawl_delay: float = 0, disallow: str = "") -> None:
        """Changes robots.txt: a Crawl-delay in seconds, and more paths, separated by commas, not to be asked for."""
        self.ask("robots", crawl_delay=crawl_delay, disallow=disallow)

    def reset(self) -> None:
        """Switches all troubles off."""
        self.ask("reset")
