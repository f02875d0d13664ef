"""Crawls of a replica, each in a separate process, as the tests of the spiders want them.

A reactor starts once a process, and the imports of a crawl take longer than the crawl: so a server imports them once,
and forks for each. `command` is the command line itself, for tests that kill it or start it elsewhere.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from crawlers.dates import day_of

ROOT = Path(__file__).resolve().parents[2]
NOW = "2025-05-20T12:00+08:00"
SCRAPY = Path(sys.executable).with_name("scrapy")
KEY = "a key for the tests alone"


@dataclass(frozen=True)
class Run:
    code: int
    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    log: str
    job: Path

    @property
    def by_id(self) -> dict[str, dict[str, Any]]:
        return {row["source_id"]: row for row in self.rows}


def command(job: Path, url: str, *more: str, source: str = "xinli001", now: str | None = NOW) -> list[str]:
    options = ["--base-url", url, "--job", str(job), "--delays", "off", "--log-level", "INFO"]
    clock = ["--now", now] if now else []
    return [sys.executable, "-m", "crawlers.run", source, *options, *clock, *more]


def environment(**more: str) -> dict[str, str]:
    """The developer's, with a key."""
    return {**os.environ, "GONGQING_AUTHOR_KEY": KEY, **more}


def rows_of(job: Path) -> list[dict[str, Any]]:
    """The journal of a job. A line that a killed job was in the middle of is none."""
    path = job / "items.jsonl"
    *lines, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [json.loads(line) for line in lines]


def crawl(
    job: Path, url: str, first: str = "2025-01-01", last: str = "2025-05-20", *more: str, code: int | None = 0,
    **named: Any,
) -> Run:  # fmt: skip
    window = ("--from", first, "--until", last)
    ended, out, log = fork(command(job, url, *window, *more, **named), environment())
    assert code is None or ended == code, log
    return Run(ended, json.loads(out) if out else {}, rows_of(job), log, job)


def begin(job: Path, url: str, *more: str) -> subprocess.Popen[bytes]:
    """A crawl of all days in a process of its own, for tests that stop or kill it."""
    arguments = command(job, url, "--from", "2025-01-01", "--until", "2025-05-20", *more)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(arguments, cwd=ROOT, env=environment(), **streams)


def scrapy_crawl(url: str, *more: str, source: str = "xinli001", **args: str) -> subprocess.CompletedProcess[str]:
    """`scrapy crawl` of two days, unless `args` name others."""
    strings = {"base_url": url, "now": NOW, "delays": "off", "from_date": "2025-05-19", "until_date": "2025-05-20"}
    arguments = [part for name, value in (strings | args).items() for part in ("-a", f"{name}={value}")]
    return subprocess.run(
        [SCRAPY, "crawl", source, *arguments, *more], cwd=ROOT, env=environment(), capture_output=True, text=True
    )


def fork(command: list[str], variables: Mapping[str, str]) -> tuple[int, str, str]:
    """Runs the command line of a crawl in a fork; its exit code, standard output and standard error."""
    with tempfile.TemporaryDirectory() as folder:
        server = _server()
        server.stdin.write(json.dumps([folder, command[3:], dict(variables)]) + "\n")
        server.stdin.flush()
        ended = int(server.stdout.readline())
        out, log = (Path(folder, name).read_text(encoding="utf-8") for name in ("out", "log"))
    return ended, out, log


@cache
def _server() -> subprocess.Popen[str]:
    """The server of this process; it ends with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.crawl_runs"], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def _serve() -> None:
    """Runs each crawl that standard input names, in a fork, and writes its exit code."""
    for module in ("run", "extensions.robots", "extensions.log", "cache", "pages.discourse", "pages.xinli001"):
        import_module(f"crawlers.{module}")
    for module in ("core.downloader.handlers.http11", "core.scheduler", "spidermiddlewares.start", "robotstxt"):
        import_module(f"scrapy.{module}")
    for line in sys.stdin:
        folder, arguments, variables = json.loads(line)
        if (child := os.fork()) == 0:
            code = 1
            try:
                for stream, name in ((sys.stdout, "out"), (sys.stderr, "log")):
                    file = os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT, 0o600)
                    os.dup2(file, stream.fileno())
                os.environ.clear()
                os.environ.update(variables)
                code = import_module("crawlers.run").main(arguments)
            except SystemExit as end:  # argparse
                code = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def wait_for(ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not ready() and time.monotonic() < deadline:
        time.sleep(0.02)


def one_day(job: Path, url: str, *more: str, **named: Any) -> Run:
    return crawl(job, url, "2025-05-20", "2025-05-20", *more, **named)


def seen(job: Path) -> dict[str, dict[str, Any]]:
    """What a job remembers for the next, by the ids of the posts."""
    lines = (job / "seen.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["source_id"]: line for line in map(json.loads, lines)}


def post_ids(paths: list[str]) -> list[str]:
    """The ids of Xinli001's posts that were requested, further pages of their answers aside."""
    return [path.split("?")[0].rsplit("/", 1)[1] for path in paths if path.startswith("/qa/") and "page=" not in path]


def day(post: dict[str, Any]) -> date:
    """On which a post of the replica was written, in Asia/Shanghai."""
    return day_of(datetime.fromisoformat(post["posted_at"]))


def site_file(folder: Path, engine: str, **keys: str) -> str:
    """A TOML file for a site of the replica; `keys` are lines of TOML."""
    path = folder / f"{engine}_here.toml"
    lines = {
        **{"name": f'"{engine}_here"', "title": '"Replica"', "engine": f'"{engine}"'},
        **{"base_url": '"https://forum.example.org"', "licence": '"CC0-1.0 (invented)"', "consent": '"invented"'},
        **keys,
        "robots": "{ known = true }",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()), encoding="utf-8")
    return str(path)


if __name__ == "__main__":
    _serve()
