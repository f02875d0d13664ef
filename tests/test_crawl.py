"""What a crawl brings is laid over what stands: nothing twice, nothing lost, late answers as new versions."""

import datetime as dt
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crawlers.window import Window
from pipelines.crawl import collect, coverage, partition, prepare
from pipelines.errors import CrawlFailed, RequestError, UnknownName
from pipelines.imports import make_author_key
from pipelines.settings import ROOT, Crawl
from pipelines.store import Store
from samples.replica import Replica

DAY = dt.date(2025, 3, 14)
NOW = "2025-03-20T12:00:00+08:00"


class Home:
    """A home with a key, and crawls of one replica."""

    def __init__(self, folder: Path, replica: Replica | None = None) -> None:
        self.folder, self.replica = folder, replica
        self.store = Store(folder / "data")
        make_author_key(folder)

    def crawl(self, first: dt.date, last: dt.date, now: str = NOW) -> dict[str, Any]:
        """A real crawl of the window, merged; its figures."""
        assert self.replica is not None
        job = prepare(
            self.folder, self.store, "replica", Window(first, last), Crawl(), base_url=self.replica.url, delays=False
        )
        ran = subprocess.run(
            [*job.command, "--now", now], env=job.environment, cwd=ROOT, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        collect(self.folder, self.store, job)
        return job.stats

    def rows(self) -> pl.DataFrame:
        return self.store.read("raw_posts").collect()


@pytest.fixture
def replica():
    with Replica(now=NOW) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, replica: Replica) -> Home:
    return Home(tmp_path, replica)


def samples(first: str, last: str) -> list[str]:
    lines = map(json.loads, (ROOT / "samples" / "posts.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["id"] for line in lines if first <= line["posted_at"][:10] <= last]


# --- real crawls of the replica


def test_every_post_of_the_window_stands_on_its_day(home: Home):
    figures = home.crawl(dt.date(2025, 3, 12), dt.date(2025, 3, 14))
    wanted = {str(100841600 + int(one[1:])) for one in samples("2025-03-12", "2025-03-14")}
    assert len(wanted) > 3
    assert set(home.rows()["source_id"]) == wanted
    assert figures["items"] == len(wanted)
    for place in home.store.partitions("raw_posts"):
        rows = home.store.read("raw_posts", partition=place).collect()
        days = rows["posted_at"].dt.convert_time_zone("Asia/Shanghai").dt.date().unique().to_list()
        assert [partition("replica", day) for day in days] == [place]


def test_a_second_crawl_fetches_no_post_and_makes_no_version(home: Home):
    home.crawl(DAY, DAY)
    before = home.store.versions("raw_posts", partition("replica", DAY))
    assert home.replica is not None
    asked = len(home.replica.requests()["paths"])
    figures = home.crawl(DAY, DAY, now="2025-03-21T12:00:00+08:00")
    assert figures["items"] == 0
    assert figures["nothing_new"]
    paths = home.replica.requests()["paths"][asked:]
    assert all("/qa/" not in path for path in paths), paths
    assert [one.version for one in home.store.versions("raw_posts", partition("replica", DAY))] == [
        one.version for one in before
    ]


def test_a_late_answer_makes_a_new_version_beside_the_old_one(home: Home):
    """What has not changed keeps the time at which it was first seen."""
    assert home.replica is not None
    home.crawl(dt.date(2025, 3, 17), dt.date(2025, 3, 20))
    before = home.rows()
    home.replica.tick(days=1, posts=0, answers=3)
    home.crawl(dt.date(2025, 3, 17), dt.date(2025, 3, 20), now="2025-03-21T12:00:00+08:00")
    after = home.rows()
    joined = before.join(after, on="post_id", suffix="_after")
    grown = joined.filter(pl.col("answers_after").list.len() > pl.col("answers").list.len())
    assert 1 <= grown.height <= 3
    assert (grown["fetched_at_after"] > grown["fetched_at"]).all()
    same = joined.filter(~pl.col("post_id").is_in(grown["post_id"].implode()))
    assert (same["fetched_at_after"] == same["fetched_at"]).all()
    day = grown["posted_at"].dt.convert_time_zone("Asia/Shanghai").dt.date()[0]
    place = partition("replica", day)
    old, new = home.store.versions("raw_posts", place)
    assert home.store.read("raw_posts", old.version, place).collect().height > 0
    assert home.store.version("raw_posts", partition=place).version == new.version


def test_ids_of_the_takedown_list_are_never_asked_for(home: Home):
    [gone, *_] = samples("2025-03-14", "2025-03-14")
    source_id = str(100841600 + int(gone[1:]))
    (home.folder / "takedown.txt").write_text(f"replica:{source_id}\n", encoding="utf-8")
    home.crawl(DAY, DAY)
    assert source_id not in set(home.rows()["source_id"])
    assert home.replica is not None
    assert not any(source_id in path for path in home.replica.requests()["paths"])


def test_a_post_that_was_seen_but_is_not_held_is_fetched(home: Home):
    """What lists showed is a memory of no weight: without the rows it is worth nothing."""
    home.crawl(DAY, DAY)
    held = home.rows()
    for path in (home.folder / "data").rglob("current.json"):
        path.unlink()
    assert home.crawl(DAY, DAY)["items"] == held.height


# --- of a job that was written by hand


def job_of(home: Home, *rows: dict[str, Any], finish: str | None = "finished") -> Any:
    job = prepare(home.folder, home.store, "replica", Window(DAY, DAY), Crawl())
    (job.folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (job.folder / "seen.jsonl").write_text("", encoding="utf-8")
    end = job.folder / ("stats.json" if finish == "finished" else "stopped.json")
    if finish:
        end.write_text(json.dumps({"finish_reason": finish, "items": len(rows)}), encoding="utf-8")
    return job


def item(
    source_id: str, title: str, posted_at: str | None, fetched_at: str = "2025-03-14T08:00:00+00:00"
) -> dict[str, Any]:
    return {
        **dict.fromkeys(("url", "topic", "author", "layout", "posted_at_precision")),
        "post_id": f"replica:{source_id}", "source": "replica", "source_id": source_id,
        "title": title, "description": "", "subtopics": [], "posted_at": posted_at, "fetched_at": fetched_at,
        "lang": "zh", "origin": "model", "lineage": [], "licence": "CC0-1.0", "consent": "invented", "answers": [],
    }  # fmt: skip


def test_the_day_is_one_of_shanghai_and_without_a_date_the_day_of_fetching(tmp_path: Path):
    home = Home(tmp_path)
    rows = [
        item("1", "晚", "2025-03-13T16:00:00+00:00"),  # midnight in Shanghai
        item("2", "早", "2025-03-13T15:59:59+00:00"),
        item("3", "无", None),
    ]
    collect(home.folder, home.store, job_of(home, *rows))
    stand = {
        place: set(home.store.read("raw_posts", partition=place).collect()["source_id"])
        for place in home.store.partitions("raw_posts")
    }
    assert stand == {"replica@2025-03-13": {"2"}, "replica@2025-03-14": {"1", "3"}}


def test_a_post_stays_on_its_day_however_its_date_is_rounded_later(tmp_path: Path):
    home = Home(tmp_path)
    collect(home.folder, home.store, job_of(home, item("1", "一", "2025-03-13T15:59:00+00:00")))
    collect(home.folder, home.store, job_of(home, item("1", "改", "2025-03-13T16:00:00+00:00")))
    assert home.store.partitions("raw_posts") == ["replica@2025-03-13"]
    assert home.rows()["title"].to_list() == ["改"]


def test_a_job_that_is_gone_on_with_later_does_not_undo_what_came_after_it(tmp_path: Path):
    home = Home(tmp_path)
    broken_off = prepare(home.folder, home.store, "replica", Window(DAY, DAY), Crawl())
    (broken_off.folder / "job.json").write_text("{}")
    os.utime(broken_off.folder / "seen-before.jsonl", (1, 1))
    at = "2025-03-14T04:00:00+00:00"
    collect(home.folder, home.store, job_of(home, item("1", "新", at, fetched_at="2025-03-16T00:00:00+00:00")))
    (broken_off.folder / "items.jsonl").write_text(
        json.dumps(item("1", "旧", at, fetched_at="2025-03-15T00:00:00+00:00")) + "\n", encoding="utf-8"
    )
    seen = {"source_id": "1", "fingerprint": "old", "posted_at": at}
    (broken_off.folder / "seen.jsonl").write_text(json.dumps(seen) + "\n", encoding="utf-8")
    (broken_off.folder / "stats.json").write_text(json.dumps({"finish_reason": "finished", "items": 1}))
    remembered = home.folder / "crawl" / "replica" / "seen.jsonl"
    before = json.dumps({"source_id": "1", "fingerprint": "new", "posted_at": at, "began": 2.0})
    remembered.write_text(before + "\n", encoding="utf-8")
    collect(home.folder, home.store, broken_off)
    assert home.rows()["title"].to_list() == ["新"]
    assert remembered.read_text(encoding="utf-8").strip() == before


def test_what_a_crawl_brought_before_its_parent_was_killed_is_taken_over_by_the_next(tmp_path: Path):
    home = Home(tmp_path)
    job_of(home, item("1", "一", "2025-03-14T04:00:00+00:00"))  # and nobody collects it
    assert home.store.partitions("raw_posts") == []
    later = DAY + dt.timedelta(days=1)
    job = prepare(home.folder, home.store, "replica", Window(later, later), Crawl())
    assert home.rows()["title"].to_list() == ["一"]
    prepare(home.folder, home.store, "replica", Window(later, later), Crawl())
    assert not (job.folder / "collected").exists()


def test_a_text_may_hold_what_looks_like_the_end_of_a_line(tmp_path: Path):
    home = Home(tmp_path)
    row = item("1", "一\u2028二\x85三", "2025-03-14T04:00:00+00:00")
    job = job_of(home)
    (job.folder / "items.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    collect(home.folder, home.store, job)
    assert home.rows()["title"].to_list() == [row["title"]]


@pytest.mark.parametrize("finish", ["blocked", "shutdown", None])
def test_a_crawl_that_ended_early_is_an_error_and_writes_nothing(tmp_path: Path, finish: str | None):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", None), finish=finish)
    with pytest.raises(CrawlFailed, match=finish or "broken off"):
        collect(home.folder, home.store, job)
    assert home.store.partitions("raw_posts") == []


def test_a_job_that_was_broken_off_is_gone_on_with_and_a_finished_one_is_not(tmp_path: Path):
    home, window = Home(tmp_path), Window(DAY, DAY)
    first = prepare(home.folder, home.store, "replica", window, Crawl())
    (first.folder / "job.json").write_text(json.dumps({"base_url": "http://127.0.0.1:8765", "max_items": None}))
    assert prepare(home.folder, home.store, "replica", window, Crawl()).folder != first.folder, "it is emptied"
    first = prepare(home.folder, home.store, "replica", window, Crawl())
    (first.folder / "job.json").write_text(json.dumps({"base_url": "http://127.0.0.1:8765", "max_items": None}))
    (first.folder / "items.jsonl").touch()
    assert prepare(home.folder, home.store, "replica", window, Crawl()).folder == first.folder
    assert prepare(home.folder, home.store, "replica", window, Crawl(), max_items=3).folder != first.folder
    (first.folder / "stats.json").write_text(json.dumps({"finish_reason": "finished"}))
    assert prepare(home.folder, home.store, "replica", window, Crawl()).folder != first.folder


def test_raw_pages_go_after_some_days_and_figures_stay(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", None))
    (job.folder / "job.json").write_text("{}")
    (job.folder / "pages.sqlite").write_bytes(b"raw")
    collect(home.folder, home.store, job)
    old = dt.datetime.now().timestamp() - 8 * 86_400
    for path in job.folder.iterdir():
        os.utime(path, (old, old))
    prepare(home.folder, home.store, "replica", Window(DAY, DAY), Crawl(keep_pages_days=9))
    assert (job.folder / "items.jsonl").exists()
    prepare(home.folder, home.store, "replica", Window(DAY, DAY), Crawl(keep_pages_days=7))
    assert not (job.folder / "items.jsonl").exists()
    assert not (job.folder / "pages.sqlite").exists()
    assert (job.folder / "stats.json").exists()


def test_what_cannot_be_crawled_says_so(tmp_path: Path):
    store, window = Store(tmp_path / "data"), Window(DAY, DAY)
    with pytest.raises(UnknownName, match="xinli0001"):
        prepare(tmp_path, store, "xinli0001", window, Crawl())
    with pytest.raises(RequestError, match="no key"):
        prepare(tmp_path, store, "replica", window, Crawl())


def test_coverage_tells_a_field_that_was_lost(tmp_path: Path):
    home = Home(tmp_path)
    for n in range(4):
        day = DAY - dt.timedelta(days=n)
        titles = ["" if n == 0 else "一"] * 5
        rows = [item(f"{n}{i}", title, f"{day}T04:00:00+00:00") for i, title in enumerate(titles)]
        collect(home.folder, home.store, job_of(home, *rows))
    found = {one.field: one for one in coverage(home.store, "replica", DAY)}
    assert not found["title"].holds
    assert str(found["title"]) == "0% (the week before: 100%)"
    assert all(one.holds for name, one in found.items() if name != "title")
    assert coverage(home.store, "replica", DAY + dt.timedelta(days=1)) == []
