"""Crawls of a replica, each in a process of its own, as the tests of the spiders want them."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from crawlers.window import day_of

ROOT = Path(__file__).resolve().parents[2]
NOW = "2025-05-20T12:00+08:00"
KEY = "a key for the tests alone"


@dataclass(frozen=True)
class Run:
    """What a crawl came to."""

    code: int
    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    log: str
    job: Path

    @property
    def by_id(self) -> dict[str, dict[str, Any]]:
        return {row["source_id"]: row for row in self.rows}


def command(job: Path, url: str, *more: str, source: str = "xinli001", now: str | None = NOW) -> list[str]:
    """The command of a crawl without delays."""
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
    """Crawls a window to its end."""
    window = ["--from", first, "--until", last]
    ran = subprocess.run(
        command(job, url, *window, *more, **named), cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert code is None or ran.returncode == code, ran.stderr
    summary = json.loads(ran.stdout) if ran.stdout else {}
    return Run(ran.returncode, summary, rows_of(job), ran.stderr, job)


def one_day(job: Path, url: str, *more: str, **named: Any) -> Run:
    """Crawls 20 May 2025."""
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
