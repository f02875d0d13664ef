"""What crawls keep: journals, pages, lists of what was seen; and the list of what is never fetched."""

import fcntl
import json
from pathlib import Path

import pytest

from crawlers.cache import PageStore
from pipelines.crawl.collecting import taken_down
from pipelines.errors import Busy
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.files import add_takedown, no_crawl
from pipelines.operations.erase.survey import Request

AUTHORS = {"1": "u_00000000000000ab", "2": None, "3": "u_00000000000000ac", "4": None}


@pytest.fixture
def job(home: Path) -> Path:
    """The folder of a job of the source `replica` that was broken off, with four posts; another source beside it."""
    for source, authors in (("replica", AUTHORS), ("xinli001", dict.fromkeys(AUTHORS))):
        folder = home / "crawl" / source / "2025-03-14_2025-03-14" / "0001"
        (folder / "unknown").mkdir(parents=True)
        (folder / "unknown" / "page.gz").write_bytes(b"\x1f\x8b")
        rows = []
        for name, author in authors.items():
            writers = [author and f"u_{name}{n:015}" for n in (1, 2)]
            answers = [{"answer_id": f"{source}:{name}/{n}", "text": "好", "author": writers[n - 1]} for n in (1, 2)]
            post = {"source_id": name, "post_id": f"{source}:{name}", "author": author, "description": f"我是{name}"}
            rows.append(json.dumps(post | {"answers": answers}, ensure_ascii=False) + "\n")
        (folder / "items.jsonl").write_text("".join(rows) + '{"source_id": "5", "post_', encoding="utf-8")
        (folder / "seen.jsonl").write_text("".join(f'{{"source_id": "{name}"}}\n' for name in AUTHORS))
        (folder / "job.json").write_text("{}")
        pages = PageStore(folder / "pages.sqlite")
        pages.put(b"1", "https://example.org/1", 0.0, 200, b"", "我是1".encode())
        pages.close()
    return home / "crawl" / "replica" / "2025-03-14_2025-03-14" / "0001"


def test_posts_and_answers_in_a_journal_alone_go_by_id_and_by_author_and_pages_go_whole(job, home):
    """Its crawl was broken off, or nobody has collected it. What nothing is erased from stays byte by byte, and a
    journal keeps its age, by which it is deleted.
    """
    other = {path: path.read_bytes() for path in (home / "crawl" / "xinli001").rglob("*") if path.is_file()}
    age = (job / "items.jsonl").stat().st_mtime_ns
    before = (job / "items.jsonl").read_bytes().splitlines(keepends=True)
    erase(home, Request(rows=("replica:2",), authors=("u_00000000000000ab", "u_3000000000000002")))
    first, second = (job / "items.jsonl").read_bytes().splitlines(keepends=True)
    assert [one["answer_id"] for one in json.loads(first)["answers"]] == ["replica:3/1"]
    assert second == before[3]
    assert [json.loads(line)["source_id"] for line in (job / "seen.jsonl").read_text().splitlines()] == ["3", "4"]
    assert {path.name for path in job.iterdir()} - {".lock"} == {"items.jsonl", "job.json", "seen.jsonl"}
    assert (job / "items.jsonl").stat().st_mtime_ns == age
    assert (home / "takedown.txt").read_text(encoding="utf-8").split() == ["replica:1", "replica:2"]
    assert {path: path.read_bytes() for path in other} == other != {}


def test_posts_are_never_fetched_again_and_remarks_stay(tmp_path):
    (tmp_path / "takedown.txt").write_text("# by letter\nxinli001:5\n", encoding="utf-8")
    for _ in range(2):
        add_takedown(tmp_path, ["replica:1"])
    assert (tmp_path / "takedown.txt").read_text(encoding="utf-8") == "# by letter\nxinli001:5\nreplica:1\n"
    assert taken_down(tmp_path, "replica") == {"1"}


def test_nothing_is_erased_while_a_crawl_is_at_work(job, home):
    with (job / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="a crawl is at work"), no_crawl(home):
            pass
