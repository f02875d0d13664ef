"""Rows that somebody wanted gone: none is released, whatever version of a table it stands in."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pipelines.core.home import Home
from pipelines.release.checks.released import Released, some
from pipelines.store.release_manifest import Finding
from pipelines.store.suppression import SuppressionList


def erased(released: Released) -> Iterator[Finding]:
    """Rows of posts and dialogues that the takedown list names, or that were erased.

    An erasure rewrites every version that is there. A version that comes back afterwards, from a backup or another
    home, holds the row again under a name that stands.
    """
    gone, kept_out = _taken_down(Home(released.home).takedown), SuppressionList(released.home)
    source_id = pl.col("origin").str.splitn(":", 2).struct.field("field_1")
    erased = [origin for origin in released.rows["origin"].unique() if origin in kept_out]
    rows = released.rows.filter(pl.col("origin").is_in(gone) | source_id.is_in(gone) | pl.col("origin").is_in(erased))
    if rows.height:
        yield Finding(
            check="erased",
            severity="refuse",
            count=rows.height,
            what=f"{rows.height:,} rows come from what was erased, or is to be taken down",
            hint="erase it from the versions that hold it (gongqing erase ROW_ID), then gongqing refresh",
            examples=some(rows["row_id"]),
        )


def _taken_down(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    return [name for line in lines if (name := line.split("#", 1)[0].strip())]
