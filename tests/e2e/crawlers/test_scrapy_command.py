"""`scrapy crawl`, without Dagster and without a job: its feed, its exit codes, its words."""

import json
import subprocess

import pytest
from crawl_runs import ROOT, SCRAPY, day, rows_of, scrapy_crawl


@pytest.mark.parametrize("with_job", [False, True])
def test_a_window_becomes_a_feed_of_the_posts_of_the_journal(clean_replica, tmp_path, with_job):
    feed, job = tmp_path / "out.jsonl", tmp_path / "job"
    ran = scrapy_crawl(clean_replica.url, "-O", str(feed), "-L", "DEBUG", job=str(job) if with_job else "")
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in feed.read_text(encoding="utf-8").splitlines()]
    truth = {post["ids"]["xinli001"] for post in clean_replica.posts() if str(day(post)) >= "2025-05-19"}
    assert {row["source_id"] for row in rows} == truth
    # Not even Scrapy's loudest log shows a post.
    assert not any(row["title"] in ran.stderr or row["description"][:20] in ran.stderr for row in rows)
    journal = rows_of(job)
    assert [line.pop("fingerprint") is not None for line in journal] == [True] * len(rows) * with_job
    assert all(line.pop("stated") == line.pop("found") == len(line["answers"]) for line in journal)
    assert rows == journal or not with_job
    assert feed.stat().st_mode & 0o777 == 0o600


def test_a_crawl_that_was_blocked_does_not_exit_with_zero(clean_replica, tmp_path):
    clean_replica.server.trouble.wall = "challenge"
    ran = scrapy_crawl(clean_replica.url, "-O", str(tmp_path / "out.jsonl"))
    assert ran.returncode == 1
    assert ran.stderr.endswith("error: the crawl ended early: blocked (challenge)\n")


def test_a_wrong_request_ends_with_two_and_the_words_of_the_error_alone(clean_replica):
    assert subprocess.run([SCRAPY, "crawl"], cwd=ROOT, capture_output=True).returncode == 2, "no site"
    for args, words in (
        ({"form_date": "2025-02-28"}, "did you mean 'from_date'?"),
        ({"source": "xinli01"}, "there is no site 'xinli01'"),
        ({"job": "/proc/job"}, "the job's folder can not be used"),
    ):
        ran = scrapy_crawl(clean_replica.url, **args)
        assert (ran.returncode, ran.stderr[:7], words in ran.stderr) == (2, "error: ", True)
        assert "Traceback" not in ran.stderr + ran.stdout
    assert clean_replica.log.paths == []
