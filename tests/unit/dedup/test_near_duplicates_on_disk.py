"""Texts that stay on the disk: the same clusters, in memory that does not grow with the texts."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import random_text, series

from pipelines.dedup import find_duplicates, find_duplicates_in
from pipelines.errors import RequestError, UnreadableFile
from pipelines.settings import ROOT

ROW = st.tuples(st.text("ab我", max_size=14) | st.none(), st.integers(1, 3) | st.none(), st.text("xyz", max_size=2))


def frame_of(rows: list[tuple[str | None, int | None, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"text": pl.String, "day": pl.Int64, "name": pl.String}, orient="row")


@settings(max_examples=30)
@given(rows=st.lists(ROW, max_size=30), size=st.integers(1, 12), mode=st.sampled_from(["exact", "fast"]))
def test_the_disk_gives_what_memory_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, int | None, str]], size: int, mode: str
) -> None:
    folder = tmp_path_factory.mktemp("disk")
    frame = frame_of(rows)
    for number, rows_of_file in enumerate(frame.iter_slices(len(frame) // 2 + 1)):  # in the order of their names
        rows_of_file.write_parquet(folder / f"{number}.parquet", row_group_size=size)
    frame.clear().write_parquet(folder / "z.parquet")
    scratch = folder / "scratch"
    scratch.mkdir()
    expected = find_duplicates(frame["text"], 0.5, mode, earliest=frame["day"], ids=frame["name"])
    found = find_duplicates_in(folder, "text", scratch, 0.5, mode, earliest="day", ids="name")
    assert found.equals(expected)
    assert not list(scratch.iterdir())


def test_batches_may_come_from_anywhere(tmp_path: Path) -> None:
    frame = frame_of([("我真的睡不着觉", 2, "a"), (None, 1, "b"), ("我真的睡不着觉", 1, "c"), ("好累啊", None, "d")])
    asked: list[list[str]] = []

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        asked.append(columns)
        yield from frame.select(columns).to_arrow().to_batches(max_chunksize=3)

    found = find_duplicates_in(batches, "text", tmp_path, earliest="day")
    assert found["cluster_id"].to_list() == [2, 1, 2, 3]
    assert asked == [["text"], ["text"], ["day"]]


def test_invalid_utf8_in_a_file_is_repaired(tmp_path: Path) -> None:
    raw = pa.array(["睡不着".encode() + b"\xe6", "睡不着\ufffd".encode(), b"\xf0\x9f"])
    pq.write_table(pa.table({"text": raw}), tmp_path / "raw.parquet")
    found = find_duplicates_in(tmp_path / "raw.parquet", "text", tmp_path)
    assert found["cluster_id"].to_list() == [0, 0, 2]


def test_a_source_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    batches = pa.table({"text": ["我真的睡不着觉"] * 4}).to_batches(max_chunksize=1)

    def shrinking(columns: list[str]) -> list[pa.RecordBatch]:
        batches.pop()
        return list(batches)

    with pytest.raises(RequestError, match="2 texts where 3 were read before"):
        find_duplicates_in(shrinking, "text", tmp_path)


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_text("text\n我\n")
    pl.DataFrame({"text": ["我"]}).write_parquet(tmp_path / "some.parquet")
    for name, says in (("no", "Parquet"), ("missing", "Parquet"), ("some", "no column words")):
        with pytest.raises(UnreadableFile, match=says):
            find_duplicates_in(tmp_path / f"{name}.parquet", "words", tmp_path)


PEAK = """
import resource, sys
from pathlib import Path
from pipelines.dedup import find_duplicates_in
folder = Path(sys.argv[1])
found = find_duplicates_in(folder / sys.argv[2], "text", folder, mode="fast")
print(len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    """Ten times the documents, 180 megabytes of text more: some 80 bytes a document in memory, and no text."""

    def documents(n: int) -> Path:
        sentences = series([random_text(25, seed) for seed in range(2_000)])
        parts = [sentences.gather(pl.int_range(n, eager=True).hash(seed) % 2_000) for seed in range(8)]
        path = tmp_path / f"{n}.parquet"
        pl.select(text=pl.concat_str(parts)).write_parquet(path, row_group_size=n)
        return path

    def peak(path: Path) -> int:
        """Megabytes, in a process of its own."""
        environment = os.environ | {"POLARS_MAX_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
        command = [sys.executable, "-c", PEAK, str(tmp_path), path.name]
        output = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
        n, megabytes = map(int, output.split())
        assert n == int(path.stem)
        return megabytes

    few, many = documents(30_000), documents(330_000)
    peak(few)  # compiles, where nobody has
    added = peak(many) - peak(few)
    assert added < 80
