"""Files of others in a home: which of them still say what was erased."""

import gzip
import json
import sqlite3
import zipfile

import polars as pl
import pytest
import zstandard

from pipelines.operations.erase.lineage import Gone
from pipelines.operations.erase.scrub import Scrub
from pipelines.operations.erase.strangers import still_saying
from pipelines.operations.erase.traces import Runs

SAID = "我把钥匙交给门房的那天下着小雪"
LINE = json.dumps({"text": SAID}) + "\n"


def database(path):
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE task (text TEXT)")
        made.execute("INSERT INTO task VALUES (?)", (SAID,))
    made.close()


def archive(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("tasks.jsonl", LINE)


WRITERS = {
    "text.md": lambda path: path.write_text(f"# notes\n{SAID}\n", encoding="utf-8"),
    "rows.jsonl": lambda path: path.write_text(LINE * 2),
    "table.parquet": lambda path: pl.DataFrame({"said": [[SAID]]}).write_parquet(path),
    "an_id.parquet": lambda path: pl.DataFrame({"post_id": ["s:2", "s:1"]}).write_parquet(path),
    "tasks.zip": archive,
    "tasks.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINE.encode())),
    "tasks.jsonl.zst": lambda path: path.write_bytes(zstandard.ZstdCompressor().compress(LINE.encode())),
    "review.sqlite3": database,
}


@pytest.fixture
def scrub() -> Scrub:
    return Scrub(Runs.of([SAID]), Gone(["s:1"]), lambda _: "erased")


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_still_says_it_is_told_however_it_is_packed(name, tmp_path, scrub):
    (tmp_path / "out").mkdir()
    WRITERS[name](tmp_path / "out" / name)
    before = (tmp_path / "out" / name).read_bytes()
    assert still_saying(tmp_path, scrub) == [f"out/{name}"]
    assert (tmp_path / "out" / name).read_bytes() == before


def test_files_that_say_something_else_are_not(tmp_path, scrub):
    (tmp_path / "notes.md").write_text(SAID[:7] + "s:12", encoding="utf-8")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINE.encode())[:-9])
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    assert still_saying(tmp_path, scrub) == []


def test_what_the_erasure_has_been_through_is_not_looked_at_again(tmp_path, scrub):
    """Above all the list of posts that are never fetched: it names them."""
    for name in ("takedown.txt", "ledger.sqlite-wal", ".venv/a.md", "data/a.md", "out/data/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SAID, encoding="utf-8")
    assert still_saying(tmp_path, scrub) == ["out/data/a.md"]
