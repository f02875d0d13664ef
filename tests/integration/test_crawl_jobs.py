"""The job of a window: which folder it takes, what it learns of earlier ones, and how long it stays."""

import datetime as dt
import fcntl
import json
import os
from pathlib import Path

import pytest
from crawl_home import DAY, Home, end_of, item, job_of

from crawlers.dates import Window
from pipelines.crawl.jobs import Job
from pipelines.crawl.preparing import expire_pages, prepare
from pipelines.errors import CrawlFailed, RequestError, UnknownName
from pipelines.settings import Crawl
from pipelines.store import Store

AT = "2025-03-14T04:00:00+00:00"
NEXT = DAY + dt.timedelta(days=1)


def aged(job: Job, days: float) -> Job:
    """A job with raw pages that nobody has touched for some days."""
    (job.folder / "pages.sqlite").write_bytes(b"raw")
    at = dt.datetime.now().timestamp() - days * 86_400
    for path in job.folder.iterdir():
        os.utime(path, (at, at))
    return job


def raw(job: Job) -> set[str]:
    return {path.name for path in job.folder.iterdir()} & {"pages.sqlite", "items.jsonl"}


# --- how a crawl ended


def test_a_crawl_that_ended_early_is_an_error_and_writes_nothing(tmp_path: Path):
    home = Home(tmp_path)
    for how, words, hint in (
        (None, "broken off", "run it again"),
        ("blocked", r"blocked \(challenge\), after 1,200 pages and 1 posts", "for a day"),
    ):
        job = job_of(home, item("1", "一", None), how=how, blocked="challenge", pages=1200)
        with pytest.raises(CrawlFailed, match=words) as failed:
            home.collect(job)
        assert hint in failed.value.hint
        assert home.store.partitions("raw_posts") == []


def test_a_crawl_that_could_not_even_begin_again_does_not_tell_how_it_ended_before(tmp_path: Path):
    home = Home(tmp_path)
    blocked = job_of(home, how="blocked")
    again = home.prepare()
    assert again.folder == blocked.folder
    with pytest.raises(CrawlFailed, match="could not begin"):
        home.collect(again)


# --- which folder


def test_a_job_that_was_broken_off_is_continued_by_the_same_request(tmp_path: Path):
    home = Home(tmp_path)
    first = job_of(home, how=None)
    assert home.prepare().folder == first.folder == home.prepare().folder
    assert home.prepare(max_items=3).folder != first.folder, "another request"


@pytest.mark.parametrize("how", ["finished", "emptied", "damaged"])
def test_a_job_that_is_over_or_damaged_is_not_continued(tmp_path: Path, how: str):
    home = Home(tmp_path)
    first = job_of(home, how="finished" if how == "finished" else None)
    if how == "emptied":
        (first.folder / "items.jsonl").unlink()
    elif how == "damaged":
        (first.folder / "job.json").write_text('{"half')
    job = home.prepare(settings=Crawl(keep_pages_days=3))
    assert job.folder == first.folder.with_name("0002")
    assert job.command[job.command.index("--keep-pages-days") + 1] == "3"
    assert job.environment["GONGQING_AUTHOR_KEY"] not in repr(job)


def test_folders_of_somebody_else_are_left_alone(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", AT))
    of_source = job.folder.parents[1]
    for odd in ("notes_of_mine/0001", f"{DAY}_{DAY}/0001.bak", f"{DAY}_{DAY}/0001²", f"{NEXT}_{DAY}/0001"):
        (of_source / odd).mkdir(parents=True)
        (of_source / odd / "stats.json").write_text("{}")
    assert home.prepare().folder.name == "0002"
    assert home.rows().height == 1


# --- what it learns of earlier ones


def seen(home: Home, **line: object) -> None:
    path = home.folder / "crawl" / "replica" / "seen.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")


def given(job: Job) -> list[str]:
    lines = (job.folder / "seen-before.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["source_id"] for line in lines]


def test_a_post_is_new_that_the_window_wants_and_we_do_not_hold_unless_it_could_not_be_read(tmp_path: Path):
    home = Home(tmp_path)
    seen(home, source_id="1", fingerprint="3", posted_at=AT)
    assert given(home.prepare(DAY)) == []
    assert given(home.prepare(NEXT)) == ["1"], "the post is of another day"
    seen(home, source_id="1", fingerprint="3", posted_at=None, unread=True)
    assert given(home.prepare(DAY + dt.timedelta(days=2))) == ["1"]


def test_what_a_job_was_given_goes_when_it_is_collected_and_collecting_again_changes_nothing(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", AT))
    remembered = home.folder / "crawl" / "replica" / "seen.jsonl"
    (job.folder / "seen.jsonl").write_text(json.dumps({"source_id": "1", "fingerprint": "3", "posted_at": AT}) + "\n")
    first = home.collect(job)
    assert not (job.folder / "seen-before.jsonl").exists()
    before = remembered.read_bytes()
    assert b'"fingerprint": "3"' in before
    assert [one.version for one in home.collect(job)] == [one.version for one in first]
    assert remembered.read_bytes() == before


# --- what is damaged


def test_a_damaged_memory_names_its_line(tmp_path: Path):
    home = Home(tmp_path)
    seen(home, source_id="1", fingerprint="3", posted_at=AT)
    path = home.folder / "crawl" / "replica" / "seen.jsonl"
    for half in ('{"source_id": "2', "[]", '{"id": "2"}', "3"):
        path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n" + half, encoding="utf-8")
        with pytest.raises(CrawlFailed, match="damaged") as failed:
            home.prepare()
        assert str(failed.value.where) == f"{path}:2"


def test_a_damaged_journal_names_its_line_and_nothing_of_it_and_damaged_figures_their_file(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", AT))
    with (job.folder / "items.jsonl").open("a", encoding="utf-8") as journal:
        journal.write('{"title": "很私密的题目')
    with pytest.raises(CrawlFailed, match="damaged") as failed:
        home.collect(job)
    assert str(failed.value.where).endswith("items.jsonl:2")
    assert "私密" not in str(failed.value)
    for content in (b'{"half', b"[]", b"\x80"):
        (job.folder / "stats.json").write_bytes(content)
        for act in (lambda: home.collect(job), home.prepare):
            with pytest.raises(CrawlFailed, match="damaged") as failed:
                act()
            assert failed.value.where == job.folder / "stats.json"
    assert home.store.partitions("raw_posts") == []


# --- how long it stays


def test_raw_pages_of_every_source_go_after_some_days_and_figures_stay(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一", AT))
    home.collect(job)
    folder = home.folder / "crawl" / "xinli001" / f"{DAY}_{DAY}" / "0001"
    folder.mkdir(parents=True)
    other = end_of(Job("xinli001", Window(DAY, DAY), folder, [], {}), how=None)
    for days, left in ((9, {"pages.sqlite", "items.jsonl"}), (7, set())):
        aged(job, 8), aged(other, 8)
        home.prepare(settings=Crawl(keep_pages_days=days))
        assert raw(job) == raw(other) == left
    assert job.stats["items"] == 1


def test_a_job_at_work_keeps_its_pages_however_short_their_life(tmp_path: Path):
    home = Home(tmp_path)
    job = aged(job_of(home, item("1", "一", AT), how=None), 8)
    with (job.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        aged(job, 8)
        home.prepare(NEXT, settings=Crawl(keep_pages_days=0))
        assert raw(job) == {"pages.sqlite", "items.jsonl"}
    aged(job, 8)
    expire_pages(home.folder, Crawl(keep_pages_days=0))
    assert raw(job) == set()


def test_what_a_finished_crawl_brought_waits_a_day_to_be_collected(tmp_path: Path):
    """Between the end of a crawl and its collection another command may delete what is old."""
    home = Home(tmp_path)
    job = aged(job_of(home, item("1", "一", AT)), 0.5)
    expire_pages(home.folder, Crawl(keep_pages_days=0))
    assert raw(job) == {"pages.sqlite", "items.jsonl"}
    aged(job, 1.5)
    expire_pages(home.folder, Crawl(keep_pages_days=0))
    assert raw(job) == set()


# --- what is refused


def test_what_cannot_be_crawled_says_so(tmp_path: Path):
    store, window = Store(tmp_path / "data"), Window(DAY, DAY)
    with pytest.raises(UnknownName, match="xinli0001"):
        prepare(tmp_path, store, "xinli0001", window, Crawl())
    with pytest.raises(RequestError, match="no key"):
        prepare(tmp_path, store, "replica", window, Crawl())
    for key in (b"\x80" * 32, b"\0" * 32):
        (tmp_path / "author.key").write_bytes(key)
        with pytest.raises(RequestError, match="not text"):
            prepare(tmp_path, store, "replica", window, Crawl())


def test_a_replicas_invented_posts_and_a_sites_do_not_mix(tmp_path: Path):
    home = Home(tmp_path)
    for url in ("http://localhost/qa", "http://[::1]:80"):
        with pytest.raises(RequestError, match="invented") as refused:
            prepare(tmp_path, home.store, "xinli001", Window(DAY, DAY), Crawl(), base_url=url)
        assert "`replica`" in refused.value.hint
        assert url in home.prepare(base_url=url).command
    with pytest.raises(RequestError, match="declared invented"):
        home.prepare(base_url="https://www.xinli001.com")
