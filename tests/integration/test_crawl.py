"""What a crawl brings is laid over what stands: nothing twice, nothing lost, late answers as new versions."""

import datetime as dt
import json
import os
import sqlite3
import stat
import zlib
from pathlib import Path

import polars as pl
import pytest
from crawl_home import DAY, NOW, Home, end_of, item, job_of
from crawl_runs import fork
from troubled_replica import Replica

from crawlers.errors import CrawlError
from crawlers.options import window_of
from pipelines.crawl.collecting import partition
from pipelines.settings import ROOT

AT = "2025-03-14T04:00:00+00:00"


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
    home.replica.reset()
    figures = home.crawl(DAY, DAY, now="2025-03-21T12:00:00+08:00")
    assert (figures["items"], figures["nothing_new"]) == (0, True)
    assert not any("/qa/" in path for path in home.replica.log.paths)
    assert home.store.versions("raw_posts", partition("replica", DAY)) == before


def test_a_late_answer_makes_the_post_new_and_what_has_not_changed_keeps_the_time_at_which_it_was_seen(home: Home):
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


def test_a_list_that_shows_how_such_a_post_begins_is_not_kept_among_the_pages(home: Home):
    [gone, *_] = samples("2025-03-14", "2025-03-14")
    source_id = str(100841600 + int(gone[1:]))
    kept = {}
    for named in ("", source_id):
        (home.folder / "takedown.txt").write_text(f"{named}\n", encoding="utf-8")
        home.crawl(DAY, DAY, now=f"2025-03-2{len(kept)}T12:00:00+08:00")
        [*_, path] = sorted((home.folder / "crawl").glob("*/*/*/pages.sqlite"))
        with sqlite3.connect(path) as pages:
            bodies = [zlib.decompress(body) for (body,) in pages.execute("SELECT body FROM pages")]
        pages.close()
        kept[named] = len(bodies), sum(source_id.encode() in body for body in bodies)
    assert kept[""][1] > 0, "a list names it"
    assert kept[source_id][0] > 0
    assert kept[source_id][1] == 0


def test_without_what_was_seen_every_post_of_the_window_is_fetched_anew(home: Home):
    """What to do once a lost selector is mended (docs/crawling.md)."""
    home.crawl(DAY, DAY)
    (home.folder / "crawl" / "replica" / "seen.jsonl").unlink()
    assert home.crawl(DAY, DAY)["items"] == home.rows().height > 0


def test_what_stands_under_crawl_is_its_owners_alone(home: Home):
    home.crawl(DAY, DAY)
    paths = [home.folder / "crawl", *(home.folder / "crawl").rglob("*"), home.folder / "takedown.txt"]
    assert {"pages.sqlite", "items.jsonl", "seen.jsonl", "stats.json"} <= {path.name for path in paths}
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


# --- of a job that was written by hand


def test_the_day_is_one_of_shanghai_and_without_a_date_the_day_of_fetching(tmp_path: Path):
    home = Home(tmp_path)
    rows = [
        item("1", "晚", "2025-03-13T16:00:00+00:00"),  # midnight in Shanghai
        item("2", "早", "2025-03-13T15:59:59+00:00"),
        item("3", "无", None),
    ]
    home.collect(job_of(home, *rows))
    places = home.store.partitions("raw_posts")
    ids = {place: set(home.store.read("raw_posts", partition=place).collect()["source_id"]) for place in places}
    assert ids == {"replica@2025-03-13": {"2"}, "replica@2025-03-14": {"1", "3"}}


def test_a_job_that_is_gone_on_with_later_does_not_undo_what_came_after_it(tmp_path: Path):
    home = Home(tmp_path)
    broken_off = home.prepare()
    (broken_off.folder / "job.json").write_text("{}")
    os.utime(broken_off.folder / "seen-before.jsonl", (1, 1))
    home.collect(job_of(home, item("1", "新", AT, fetched_at="2025-03-16T00:00:00+00:00")))
    end_of(broken_off, item("1", "旧", AT, fetched_at="2025-03-15T00:00:00+00:00"))
    seen = {"source_id": "1", "fingerprint": "old", "posted_at": AT}
    (broken_off.folder / "seen.jsonl").write_text(json.dumps(seen) + "\n", encoding="utf-8")
    remembered = home.folder / "crawl" / "replica" / "seen.jsonl"
    before = json.dumps({"source_id": "1", "fingerprint": "new", "posted_at": AT, "began": 2.0})
    remembered.write_text(before + "\n", encoding="utf-8")
    home.collect(broken_off)
    assert home.rows()["title"].to_list() == ["新"]
    assert remembered.read_text(encoding="utf-8").strip() == before


@pytest.mark.drill("kill")
def test_what_a_crawl_brought_before_its_parent_was_killed_is_taken_over_by_the_next(tmp_path: Path):
    home = Home(tmp_path)
    job_of(home, item("1", "一", AT))  # and nobody collects it
    assert home.store.partitions("raw_posts") == []
    later = DAY + dt.timedelta(days=1)
    assert [version.partition for version in home.prepare(later).taken_over] == [partition("replica", DAY)]
    assert home.prepare(later).taken_over == ()
    assert home.rows()["title"].to_list() == ["一"]
    assert len(home.store.versions("raw_posts", partition("replica", DAY))) == 1


def test_a_text_may_hold_what_looks_like_the_end_of_a_line(tmp_path: Path):
    home = Home(tmp_path)
    job = job_of(home, item("1", "一X二Y三", AT))
    journal = job.folder / "items.jsonl"
    journal.write_text(journal.read_text().replace("X", "\u2028").replace("Y", "\x85"), encoding="utf-8")
    home.collect(job)
    assert home.rows()["title"].to_list() == ["一\u2028二\x85三"]


@pytest.mark.parametrize(("finer", "coarser"), [("minute", "day"), ("day", None)])
def test_a_date_that_a_page_rounds_as_it_grows_old_does_not_replace_the_finer_one(
    tmp_path: Path, finer: str, coarser: str | None
):
    home = Home(tmp_path)
    home.collect(job_of(home, item("1", "一", AT, posted_at_precision=finer)))
    later = {"fetched_at": "2025-03-18T08:00:00+00:00", "posted_at_precision": coarser}
    home.collect(job_of(home, item("1", "改", "2025-03-12T16:00:00+00:00", **later)))
    [row] = home.rows().to_dicts()
    assert home.store.partitions("raw_posts") == [partition("replica", DAY)], "it stays on its day"
    assert (row["title"], row["posted_at"], row["posted_at_precision"]) == ("改", dt.datetime.fromisoformat(AT), finer)


def test_a_post_of_which_nothing_but_the_rounding_has_changed_is_the_same(tmp_path: Path):
    home = Home(tmp_path)
    [first] = home.collect(job_of(home, item("1", "一", AT, posted_at_precision="minute")))
    later = {"fetched_at": "2025-03-18T08:00:00+00:00", "posted_at_precision": "day"}
    [second] = home.collect(job_of(home, item("1", "一", "2025-03-13T16:00:00+00:00", **later)))
    assert second.version == first.version


# --- posts whose writers want them gone


def take_down(home: Home, *lines: str) -> None:
    (home.folder / "takedown.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def test_a_named_post_goes_as_its_day_is_written_and_a_fetched_one_is_not_written(tmp_path: Path):
    home, warnings = Home(tmp_path), []
    day_before = "2025-03-13T04:00:00+00:00"
    [_, first] = home.collect(job_of(home, item("0", "零", day_before), item("1", "一", AT), item("2", "二", AT)))
    take_down(home, "replica:0  # by letter", "replica:1", "replica:4", "xinli001:2")
    [second] = home.collect(job_of(home, item("3", "三", AT), item("4", "四", AT)), warn=warnings.append)
    rows = home.store.read("raw_posts", partition=second.partition).collect()
    assert sorted(rows["source_id"]) == ["2", "3"], "an id of another source is another post"
    assert "0" in set(home.rows()["source_id"]), "its day was not written"
    assert home.store.read("raw_posts", first.version, first.partition).collect().height == 2, "older versions: erase"
    [warning] = warnings
    assert warning.startswith("1 post ")
    assert warning.endswith(": replica:1")


def test_a_takedown_list_that_protects_nobody_is_an_error_before_anything_is_asked_for(tmp_path: Path):
    home = Home(tmp_path)
    take_down(home, "replica:1", "https://www.xinli001.com/qa/100841600")
    with pytest.raises(CrawlError) as refused:
        home.prepare()
    assert f"{tmp_path / 'takedown.txt'}:2" in str(refused.value)
    assert not (tmp_path / "crawl").exists()


# --- walks over ids


def test_a_walk_over_ids_merges_like_any_crawl_and_is_continued_by_its_own_ids_alone(home: Home):
    assert home.replica is not None
    numbers = [100841600 + int(one[1:]) for one in samples("2025-03-12", "2025-03-14")]
    ids = f"{min(numbers)}-{max(numbers)}"
    all_days = window_of(None, None, ids, DAY)
    job = home.prepare(all_days.first, all_days.last, ids=ids, base_url=home.replica.url, delays=False)
    assert home.prepare(all_days.first, all_days.last, ids="7-9").folder.parent != job.folder.parent
    code, _, log = fork([*job.command, "--now", NOW], job.environment)
    assert code == 0, log
    taken_over = home.prepare().taken_over  # nobody had collected it
    assert {version.partition for version in taken_over} == {f"replica@2025-03-1{day}" for day in (2, 3, 4)}
    assert set(home.rows()["source_id"]) == {str(number) for number in numbers}
