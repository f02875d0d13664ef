"""A home with a key, real crawls of a replica in it, and jobs that were written by hand."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
from crawl_runs import fork
from troubled_replica import Replica

from crawlers.dates import Window
from pipelines.crawl.collecting import collect
from pipelines.crawl.jobs import Job
from pipelines.crawl.preparing import prepare
from pipelines.settings import Crawl, make_author_key
from pipelines.store import Store

DAY = dt.date(2025, 3, 14)
NOW = "2025-03-20T12:00:00+08:00"


class Home:
    """A home with a key, and crawls of one replica."""

    def __init__(self, folder: Path, replica: Replica | None = None) -> None:
        self.folder, self.replica = folder, replica
        self.store = Store(folder / "data")
        make_author_key(folder)

    def prepare(self, first: dt.date = DAY, last: dt.date | None = None, **more: Any) -> Job:
        settings = more.pop("settings", Crawl())
        return prepare(self.folder, self.store, "replica", Window(first, last or first), settings, **more)

    def collect(self, job: Job, **more: Any) -> Any:
        return collect(self.folder, self.store, job, **more)

    def run(self, first: dt.date, last: dt.date, now: str = NOW, site: Path | None = None) -> Job:
        """A real crawl of the window, merged; `site`: by another file than the replica's own."""
        assert self.replica is not None
        job = self.prepare(first, last, base_url=self.replica.url, delays=False)
        code, log = self.fork(job, now, site)
        assert code == 0, log
        self.collect(job)
        return job

    @staticmethod
    def fork(job: Job, now: str, site: Path | None = None) -> tuple[int, str]:
        """The exit code of the job's crawl, and its log."""
        command = [str(site) if site and word == "replica" else word for word in job.command]
        code, _, log = fork([*command, "--now", now], job.environment)
        return code, log

    def crawl(self, first: dt.date, last: dt.date, now: str = NOW) -> dict[str, Any]:
        return self.run(first, last, now).stats

    def rows(self) -> pl.DataFrame:
        return self.store.read("raw_posts").collect()


def item(
    source_id: str, title: str, posted_at: str | None, fetched_at: str = "2025-03-14T08:00:00+00:00", **more: Any
) -> dict[str, Any]:
    return {
        **dict.fromkeys(("url", "topic", "author", "layout", "posted_at_precision")),
        "post_id": f"replica:{source_id}", "source": "replica", "source_id": source_id,
        "title": title, "description": "", "subtopics": [], "posted_at": posted_at, "fetched_at": fetched_at,
        "lang": "zh", "origin": "model", "lineage": [], "licence": "CC0-1.0", "consent": "invented", "answers": [],
        **more,
    }  # fmt: skip


def answer(number: int, **more: Any) -> dict[str, Any]:
    fields = {"author": "a", "posted_at": "2025-03-14T09:00:00+00:00", "likes": 0}
    return {"answer_id": str(number), "author_role": "member", "text": "答", "recommended": None, "spans": [],
            **fields, **more}  # fmt: skip


def end_of(job: Job, *rows: dict[str, Any], how: str | None = "finished", **figures: Any) -> Job:
    """A job with what a crawl leaves in its folder; `how` None: it was killed."""
    (job.folder / "job.json").write_text(json.dumps({"base_url": "http://127.0.0.1:8765", "max_items": None}))
    (job.folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (job.folder / "seen.jsonl").write_text("", encoding="utf-8")
    if how:
        end = job.folder / ("stats.json" if how == "finished" else "stopped.json")
        end.write_text(json.dumps({"finish_reason": how, "items": len(rows), **figures}), encoding="utf-8")
    return job


def job_of(home: Home, *rows: dict[str, Any], first: dt.date = DAY, **end: Any) -> Job:
    return end_of(home.prepare(first), *rows, **end)
