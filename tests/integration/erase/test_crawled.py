"""What crawls keep: journals, pages, lists of what was seen; and the list of what is never fetched."""

import fcntl
import json
from pathlib import Path

import pytest

from crawlers.cache import PageStore
from pipelines.crawl.collecting import taken_down
from pipelines.errors import Busy
from pipelines.operations.erase.files import add_takedown, clean_crawls, no_crawl
from pipelines.operations.erase.rows import ErasedIds


@pytest.fixture
def job(tmp_path) -> Path:
    """The folder of a job of the source `replica`, with three posts, and another source beside it."""
    for source in ("replica", "xinli001"):
        folder = tmp_path / "crawl" / source / "2025-03-14_2025-03-14" / "0001"
        (folder / "unknown").mkdir(parents=True)
        (folder / "unknown" / "page.gz").write_bytes(b"\x1f\x8b")
        rows = [
            {"source_id": name, "post_id": f"{source}:{name}", "description": f"我是{name}", "answers": [
                {"answer_id": f"{source}:{name}/{n}", "text": f"{name}的回答{n}"} for n in (1, 2)]}
            for name in ("1", "2", "3")
        ]  # fmt: skip
        (folder / "items.jsonl").write_text(_lines(rows), encoding="utf-8")
        (folder / "seen.jsonl").write_text(_lines([{"source_id": row["source_id"]} for row in rows]), encoding="utf-8")
        (folder / "job.json").write_text("{}")
        pages = PageStore(folder / "pages.sqlite")
        pages.put(b"1", "https://example.org/1", 0.0, 200, b"", "我是1".encode())
        pages.close()
    return tmp_path / "crawl" / "replica" / "2025-03-14_2025-03-14" / "0001"


def _lines(rows) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_posts_and_answers_leave_the_journal_and_pages_go_whole(job, tmp_path):
    """What nothing is erased from stays byte by byte, and a journal keeps its age, by which it is deleted."""
    other = {path: path.read_bytes() for path in (tmp_path / "crawl" / "xinli001").rglob("*") if path.is_file()}
    age = (job / "items.jsonl").stat().st_mtime_ns
    before = (job / "items.jsonl").read_bytes().splitlines(keepends=True)
    assert clean_crawls(tmp_path, ErasedIds(["replica:1", "replica:2/1"])) == 5
    first, second = (job / "items.jsonl").read_bytes().splitlines(keepends=True)
    assert [one["answer_id"] for one in json.loads(first)["answers"]] == ["replica:2/2"]
    assert second == before[2], "a line without anything that is gone stays byte by byte"
    assert [json.loads(line)["source_id"] for line in (job / "seen.jsonl").read_text().splitlines()] == ["2", "3"]
    assert sorted(path.name for path in job.iterdir()) == ["items.jsonl", "job.json", "seen.jsonl"]
    assert {path: path.read_bytes() for path in other} == other != {}
    assert (job / "items.jsonl").stat().st_mtime_ns == age


def test_posts_are_never_fetched_again_and_remarks_stay(tmp_path):
    (tmp_path / "takedown.txt").write_text("# by letter\nxinli001:5\n", encoding="utf-8")
    add_takedown(tmp_path, ["replica:1"])
    add_takedown(tmp_path, ["replica:1"])
    assert (tmp_path / "takedown.txt").read_text(encoding="utf-8") == "# by letter\nxinli001:5\nreplica:1\n"
    assert taken_down(tmp_path, "replica") == {"1"}


def test_nothing_is_erased_while_a_crawl_is_at_work(job, tmp_path):
    with (job / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="a crawl is at work"), no_crawl(tmp_path):
            pass
