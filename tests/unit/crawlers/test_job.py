"""The folder of one window: whole after a kill, never continued once it is over."""

import gzip
import json
import os
import resource
from contextlib import closing
from datetime import UTC, datetime

import pytest

from crawlers.errors import CrawlError, RequestRefused
from crawlers.job import Job, expire

REQUEST = {"source": "here", "from": "2025-03-01", "until": "2025-03-02"}


def row(source_id: str, text: str = "文字") -> dict[str, object]:
    return {"source_id": source_id, "posted_at": "2025-03-01T04:00:00+00:00", "title": text}


def ids(job_folder) -> list[str]:
    return [json.loads(line)["source_id"] for line in (job_folder / "items.jsonl").read_bytes().splitlines()]


def test_a_post_is_in_the_journal_at_once_and_known_when_the_job_goes_on(tmp_path):
    with closing(Job(tmp_path, REQUEST)) as job:
        job.append(row("1"), "3 2025-03-01")
        assert ids(tmp_path) == ["1"]
        job.append(row("2", "坏\ud800字"))
    with closing(Job(tmp_path, REQUEST)) as job:
        assert {i: known.fingerprint for i, known in job.had.items()} == {"1": "3 2025-03-01", "2": None}
        assert str(job.had["1"].day) == "2025-03-01"


@pytest.mark.drill("damage")
def test_a_damaged_line_of_the_journal_is_an_error_in_words(tmp_path):
    wrong = [row("1") | {"posted_at": at} for at in (5, "0001-01-01T00:00:00+14:00")]
    for line in ("[]", '{"half', "null", '{"source_id": "1"}', "[" * 100_000, *map(json.dumps, wrong)):
        (tmp_path / "items.jsonl").write_text(f"{line}\n{json.dumps(row('2'))}\n", encoding="utf-8")
        with pytest.raises(CrawlError, match="damaged"):
            Job(tmp_path, REQUEST)


def test_a_folder_that_can_not_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "job"):
        with pytest.raises(RequestRefused, match="can not be used"):
            Job(folder, REQUEST)


def test_a_line_that_could_not_be_written_whole_is_an_error_and_leaves_nothing(tmp_path):
    with closing(Job(tmp_path, REQUEST)) as job:
        job.append(row("1"))
        whole = (tmp_path / "items.jsonl").read_bytes()
        bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, bounds[1]))
        try:
            with pytest.raises(OSError, match="No space left"):
                job.append(row("2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
        assert (tmp_path / "items.jsonl").read_bytes() == whole
        job.append(row("2"))
    assert ids(tmp_path) == ["1", "2"]


@pytest.mark.parametrize("cut", [1, 30])
def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path, cut):
    with closing(Job(tmp_path, REQUEST)) as job:
        job.append(row("1"))
        job.append(row("2"))
    path = tmp_path / "items.jsonl"
    whole = path.read_bytes()
    os.truncate(path, len(whole) - cut)
    with closing(Job(tmp_path, REQUEST)) as job:
        assert set(job.had) == {"1"}
        job.append(row("2"))
    assert path.read_bytes() == whole


def test_a_stopped_job_is_continued_by_the_same_request_and_a_finished_one_never(tmp_path):
    with closing(Job(tmp_path, REQUEST)) as job:
        job.stop({"finish_reason": "blocked"})
    assert json.loads((tmp_path / "stopped.json").read_text(encoding="utf-8")) == {"finish_reason": "blocked"}
    with pytest.raises(CrawlError, match="until differ"):
        Job(tmp_path, {**REQUEST, "until": "2025-03-05"})
    with closing(Job(tmp_path, REQUEST)) as job:
        assert not (tmp_path / "stopped.json").exists()
        job.finish([{"source_id": "1", "fingerprint": "2", "posted_at": None}], {"finish_reason": "finished"})
    assert json.loads((tmp_path / "seen.jsonl").read_text(encoding="utf-8"))["fingerprint"] == "2"
    with pytest.raises(CrawlError, match="over") as refused:
        Job(tmp_path, REQUEST)
    assert "new folder" in refused.value.hint


@pytest.mark.drill("race")
def test_only_one_process_works_in_a_folder(tmp_path):
    with closing(Job(tmp_path, REQUEST)), pytest.raises(CrawlError, match="at work"):
        Job(tmp_path, REQUEST)
    Job(tmp_path, REQUEST).close()


def test_robots_is_kept_once_a_content_with_its_hash(tmp_path):
    with closing(Job(tmp_path, REQUEST)) as job:
        for body, digest in ((b"Disallow: /x", "aa"), (b"Disallow: /x", "aa"), (b"", "bb")):
            job.keep_robots("http://a/robots.txt", body, 200, digest, datetime(2025, 3, 1, tzinfo=UTC))
    kept = (tmp_path / "robots.txt").read_text(encoding="utf-8")
    assert [kept.count(part) for part in ("Disallow: /x", "sha256=aa", "sha256=bb")] == [1, 1, 1]


RAW = {"pages.sqlite", "items.jsonl", "unknown"}


@pytest.mark.parametrize("over", [True, False])
def test_what_people_wrote_goes_after_a_while_and_not_from_a_job_at_work(tmp_path, over):
    late = datetime(2200, 1, 1, tzinfo=UTC)
    with closing(Job(tmp_path, REQUEST)) as job:
        job.append(row("1"))
        path = job.keep_page("http://a/1", b"<html>")
        assert gzip.decompress(path.read_bytes()).endswith(b"<html>")
        job.pages.write_bytes(b"")
        if over:
            job.finish([], {"finish_reason": "finished"})
        expire(tmp_path, late)
        assert {path.name for path in tmp_path.iterdir()} >= RAW
    expire(tmp_path, datetime(2020, 1, 1, tzinfo=UTC))
    assert {path.name for path in tmp_path.iterdir()} >= RAW
    for _ in range(2):
        expire(tmp_path, late)
        left = {path.name for path in tmp_path.iterdir()}
        assert not RAW & left
        assert left >= ({"job.json", "stats.json", "seen.jsonl"} if over else {"job.json"})
