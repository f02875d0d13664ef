"""Erased rows: none is released, whatever version of a table holds it."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Finding
from pipelines.store.suppression import SuppressionList


def erased(released: Released) -> Iterator[Finding]:
    """Rows of posts and dialogues that the takedown list names, or that were erased.

    An erasure rewrites every version that is there. A version that comes back afterwards, from a backup or another
    home, holds the row again.
    """
    listed, suppression = _takedown(Home(released.home).takedown), SuppressionList(released.home)
    origins = [name for name in released.rows["origin"].unique() if name in suppression]
    source_id = pl.col("origin").str.splitn(":", 2).struct.field("field_1")
    rows = released.rows.filter(pl.col("origin").is_in([*listed, *origins]) | source_id.is_in(listed))
    if rows.height:
        what = f"{rows.height:,} rows come from what was erased, or is to be taken down"
        hint = "erase it from the versions that hold it (gongqing erase ROW_ID), then gongqing refresh"
        yield finding("erased", what, hint, rows["row_id"])


def _takedown(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    return [name for line in lines if (name := line.split("#", 1)[0].strip())]
