"""Homes to release from: the sample home's tables with whatever is planted in them."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.flow.runner import parents_of, run_of
from pipelines.flow.stages import STAGES
from pipelines.settings import Settings
from pipelines.store import Store
from schemas.tables import PARTITIONED, TABLES

Row = dict[str, Any]
Edit = Callable[[list[Row]], None]


def planted_home(
    source: Path,
    home: Path,
    edits: Mapping[str, Edit] | None = None,
    *,
    provider: str = "openai",
    read: Path | None = None,
) -> Path:
    """A home with the tables of `source`, nothing of it stale; `edits` change rows of a table in place before they are
    written, and `provider` is who answered, in place of `openai`. What the home `read` has read for personal data need
    not be read again.
    """
    if read is not None:
        shutil.copytree(read / "readings", home / "readings", dirs_exist_ok=True)
    old, new = Store(source / "data"), Store(home / "data")
    for table in PARTITIONED:
        for one in old.current(table):
            kept = old.read(table, partition=one.partition)
            new.write(table, kept, partition=one.partition, note=one.manifest.runs[-1].note)
    for stage in STAGES:
        parents = parents_of(stage, new)
        run = run_of(stage, parents, Settings(), provider if stage.asks else None)
        for table in stage.tables:
            rows = old.read(table).collect()
            if "provider" in rows.columns:
                rows = rows.with_columns(provider=pl.col("provider").replace("openai", provider))
            if "providers" in rows.columns:
                named = pl.col("providers").list.eval(pl.element().replace("openai", provider))
                rows = rows.with_columns(providers=named)
            if edits and table in edits:
                told = rows.to_dicts()
                edits[table](told)
                rows = pl.DataFrame(told, schema=TABLES[table].polars_schema())
            dropped = old.read_dropped(table)
            new.write(table, rows, dropped, parents=parents, code=run.code, settings=run.settings)
    return home


def of_split(rows: list[Row], split: str, at: int = 0) -> Row:
    """The `at`-th row of a split, by key."""
    return sorted((row for row in rows if row["split"] == split), key=lambda row: row["row_id"])[at]


def say(row: Row, *turns: str) -> None:
    """Let the seeker of a prompt set's row say something else; what supporters say between stays short."""
    said = [{"role": "seeker", "text": turns[0]}]
    for turn in turns[1:]:
        said += [{"role": "supporter", "text": "嗯，我在听。"}, {"role": "seeker", "text": turn}]
    row["extra_info"]["dialogue"] = said
    roles = {"seeker": "user", "supporter": "assistant"}
    row["prompt"] = [row["prompt"][0], *({"role": roles[one["role"]], "content": one["text"]} for one in said)]
