"""A replica of the sites: their markup, our texts. `Replica` runs it in a process of its own. See README.md."""

import urllib.parse
from datetime import datetime
from pathlib import Path
from typing import Any

from samples.process import ServerProcess


class Replica(ServerProcess):
    """The replica in a process of its own. All answers of the methods are those of the switches under `/_replica/`
    (README.md).
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
        super().__init__(
            "samples.replica", [f"--{name}={value}" for name, value in options.items() if value is not None]
        )

    def ask(self, switch: str, **options: object) -> Any:
        """What `/_replica/{switch}?{options}` answers."""
        return self._answer(f"_replica/{switch}?{urllib.parse.urlencode(options)}", b"")

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
