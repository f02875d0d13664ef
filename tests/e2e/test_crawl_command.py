"""`gongqing crawl` on the command line: refusals, messages, and what else it does."""

import os
import sys
from pathlib import Path

import pytest
from crawl_home import DAY, Home, item, job_of
from killing import done
from troubled_replica import Replica

from pipelines.cli import main

AT = f"{DAY}T04:00:00+00:00"


def fails(capsys, monkeypatch, *arguments: str) -> tuple[int, str]:
    """Exit code and message of a call that goes wrong, through the entry point."""
    monkeypatch.setattr(sys, "argv", ["gongqing", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    return Home(tmp_path)


REFUSED = {
    ("--from", "2025-02-30"): "write it as 2025-03-01",
    ("--from", "2025-03-02", "--until", "2025-03-01"): "give the earlier day",
    ("--base-url", "http://127.0.0.1:8765"): "as the source `replica`",
    ("--ids", "9-7"): "the lower first",
}


def test_what_the_crawlers_refuse_reads_like_what_we_refuse(home, capsys, monkeypatch):
    for arguments, words in REFUSED.items():
        code, message = fails(capsys, monkeypatch, "crawl", "xinli001", *arguments)
        assert code == 2
        assert message.startswith("gongqing: ")
        assert [part for part in ("\n  hint: ", words) if part not in message] == []
        assert [part for part in ("Traceback", "CrawlError") if part in message] == []
    (home.folder / "takedown.txt").write_text("xinli01:3\n", encoding="utf-8")
    code, message = fails(capsys, monkeypatch, "crawl", "xinli001")
    assert (code, f"{home.folder / 'takedown.txt'}:1" in message) == (2, True)


def test_a_key_of_the_environment_is_enough_for_a_home_that_is_not_there_yet(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "a key for the tests alone")
    code, message = fails(capsys, monkeypatch, "crawl", "xinli001")
    assert (code, "nothing was crawled" in message) == (2, True), message  # no contact
    assert "hint: set GONGQING_CRAWL_CONTACT" in message


def test_a_blocked_crawl_ends_with_1_its_reason_and_what_to_do(home, capsys, monkeypatch):
    with Replica() as replica:
        replica.server.trouble.wall = "challenge"
        code, message = fails(
            capsys, monkeypatch, "crawl", "replica", "--from", str(DAY), "--until", str(DAY), "--base-url", replica.url
        )
    assert code == 1
    assert "gongqing: the crawl of replica ended early: blocked (challenge), after " in message
    assert "hint: leave the site alone for a day" in message
    assert "Traceback" not in message


def test_posts_that_are_taken_out_are_named(home):
    """By the entry point, in a process of its own: nobody has configured a log there."""
    home.collect(job_of(home, item("1", "一", AT), item("2", "二", AT)))
    job_of(home, item("3", "三", AT))  # which the next command takes over
    (home.folder / "takedown.txt").write_text("replica:2\n", encoding="utf-8")
    with Replica() as replica:
        printed = done(home.folder, "crawl", "replica", "--base-url", replica.url)
    assert "1 post of takedown.txt taken out of raw_posts" in printed
    assert "replica:2\n" in printed
    assert {"1", "3"} <= set(home.rows()["source_id"])
    assert "2" not in set(home.rows()["source_id"])


def test_a_refresh_deletes_raw_pages_that_are_too_old(home, capsys, monkeypatch):
    job = job_of(home, item("1", "一", AT), how=None)
    (job.folder / "pages.sqlite").write_bytes(b"raw")
    for path in job.folder.iterdir():
        os.utime(path, (1, 1))
    code, _ = fails(capsys, monkeypatch, "refresh")
    assert code == 2, "there is nothing to refresh"
    assert not (job.folder / "pages.sqlite").exists()
    assert not (job.folder / "items.jsonl").exists()
