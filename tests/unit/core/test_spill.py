"""Frames whose bytes lie on the disk: what came is what is read, and neither memory nor the folder keeps any of it."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from polars.testing.parametric import dataframes

from pipelines.core import spill
from pipelines.core.spill import spilled, spilled_by_slices

NESTED = pl.DataFrame(
    {
        "id": ["a", "b", None],
        "at": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, None],
        "turns": [[{"role": "seeker", "said": ["睡不着", None]}], [], None],
    }
)


@given(st.lists(dataframes(cols=3, allowed_dtypes=[pl.Int64, pl.String, pl.List(pl.String)]), min_size=1, max_size=1))
def test_what_is_read_is_what_came(frames):
    assert_frame_equal(spilled(frames * 3), pl.concat(frames * 3))


def test_nested_columns_times_and_nulls_are_as_they_were(tmp_path):
    assert_frame_equal(spilled([NESTED, NESTED.clear(), NESTED], tmp_path), pl.concat([NESTED, NESTED]))
    assert list(tmp_path.iterdir()) == []


def test_many_frames_hold_one_file_open():
    before = len(list(Path("/proc/self/fd").iterdir()))
    held = spilled(NESTED for _ in range(300))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
    assert_frame_equal(held, pl.concat([NESTED] * 300))


@pytest.mark.parametrize("rows", [0, 1, 6, 7, 8, 50])
def test_slices_come_in_order_and_none_is_left_out(rows, monkeypatch):
    monkeypatch.setattr(spill, "ROWS_AT_ONCE", 7)
    frame = pl.DataFrame({"n": range(rows)}, schema={"n": pl.Int64})
    sizes = []

    def doubled(some):
        sizes.append(some.height)
        return some.select(2 * pl.col("n"))

    assert_frame_equal(spilled_by_slices(doubled, frame), frame.select(2 * pl.col("n")))
    assert sum(sizes) == rows
    assert max(sizes) <= 7


HELD = """
import re
from pathlib import Path
import polars as pl
from pipelines.core.spill import spilled

def anonymous():
    return int(re.search(r"RssAnon:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3

made = lambda n: pl.DataFrame({"text": [f"{n} {i} " + "睡不着" * 40 for i in range(20_000)]})
spilled([made(0)])
before = anonymous()
frame = spilled(made(n) for n in range(40))
assert frame["text"].str.len_bytes().sum() > 250e6
print(anonymous() - before, frame.sort("text", descending=True).height)
"""


def test_three_hundred_megabytes_of_text_hold_less_than_a_tenth_of_that():
    """In memory that is a process's own: pages of files the kernel takes back."""
    ran = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    held, rows = ran.stdout.split()
    assert rows == "800000"
    assert float(held) < 30
