"""How the rows of a release came about, in figures for its card: how many came and stayed, what each table kept, and
which models were asked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.errors import NoVersion, UnknownName
from pipelines.release.checks.released import origin
from pipelines.release.publish.words import words
from pipelines.store.release_manifest import Release
from pipelines.store.store import Store
from schemas.tables import TABLES

_REASONS = 3  # that are named
# What comes, is cleaned, and is unique: the id by which each is counted, and the tables.
_STEPS = {
    "post": ("post_id", (("raw_posts", "imported_posts"), ("clean_posts",), ("unique_posts",))),
    "dialogue": ("dialogue_id", (("imported_dialogues",), ("clean_dialogues",), ("unique_dialogues",))),
}


class Kept(NamedTuple):
    """What a table kept and dropped, with the most frequent reasons: unit, reason, how many."""

    table: str
    kept: int
    dropped: int
    reasons: list[tuple[str, str, int]]


class Flow(NamedTuple):
    """How many of a source's posts, answers or dialogues came, were left by cleaning and by merging, and stand behind a
    row of the release; None: not known, as it is of answers, of which a row may hold several.
    """

    source: str
    unit: str
    came: int | None
    cleaned: int | None
    unique: int | None
    released: int | None


class Making(NamedTuple):
    """Both of a release."""

    flow: Sequence[Flow] = ()
    tables: Sequence[Kept] = ()


def making(store: Store, release: Release, folder: Path) -> Making:
    """How the release in `folder` was made of the tables that it pins."""
    return Making(list(flow(store, release, folder)), kept(store, release.pins))


def kept(store: Store, pins: Mapping[str, str]) -> list[Kept]:
    """Of each pinned table that a row comes through and of each set, in the order of the flow."""
    rows, dropped = Counter[str](), Counter[str]()
    reasons: dict[str, Counter[str]] = {}
    for name, pinned in pins.items():
        table, _, partition = name.partition("/")
        with suppress(UnknownName):  # of a version that is gone nothing is known
            version = store.version(table, pinned, partition or None)
            rows[table] += version.rows
            dropped[table] += version.dropped
            reasons.setdefault(table, Counter()).update(version.manifest.reasons)
    listed = [name for name in TABLES if name in words()["tables"] or name in words()["configs"]]
    return [
        Kept(
            *(table, rows[table], dropped[table]),
            [(*_pair(why), n) for why, n in reasons[table].most_common(_REASONS)],
        )
        for table in listed
        if rows[table] or dropped[table]
    ]


def flow(store: Store, release: Release, folder: Path) -> Iterator[Flow]:
    """Of each source and unit, from what came to what is released."""
    ids = [
        row_id
        for shards in release.configs.values()
        for shard in shards
        for row_id in pl.read_parquet(folder / shard.path, columns=["row_id"], hive_partitioning=False)["row_id"]
    ]
    for unit, (key, steps) in _STEPS.items():
        counted = [_counted(store, release.pins, tables, key) for tables in steps]
        known = set(counted[-1][key])
        released = Counter(name.partition(":")[0] for name in {origin(row_id, known) for row_id in ids} if name)
        sources = [rows.group_by("source").agg(pl.len(), pl.col("answers").sum()) for rows in counted]
        of_source = [{source: (n, answers) for source, n, answers in rows.iter_rows()} for rows in sources]
        for source in sorted({name for step in of_source for name in step}):
            came, cleaned, unique = (step.get(source, (None, None)) for step in of_source)
            yield Flow(source, unit, came[0], cleaned[0], unique[0], released[source])
            if unit == "post":
                yield Flow(source, "answer", came[1], cleaned[1], unique[1], None)


def _counted(store: Store, pins: Mapping[str, str], tables: tuple[str, ...], key: str) -> pl.DataFrame:
    """The ids in the pinned versions of these tables, each once, with `source` and the number of `answers`."""
    found = [pl.DataFrame(schema={key: pl.String, "answers": pl.Int64})]
    for name, pinned in pins.items():
        table, _, partition = name.partition("/")
        if table in tables:
            with suppress(NoVersion, UnknownName):
                rows = store.read(table, pinned, partition or None)
                answers = pl.col("answers").list.len() if key == "post_id" else pl.lit(0)
                found.append(rows.select(key, answers=answers.cast(pl.Int64)).collect())
    once = pl.concat(found).group_by(key).agg(pl.col("answers").max())
    return once.with_columns(source=pl.col(key).str.extract("^([^:]+)"))


def _pair(why: str) -> tuple[str, str]:
    unit, _, reason = why.partition(": ")
    return unit, reason


def models(release: Release) -> list[tuple[str, str, int, str]]:
    """What each model was asked for, how often, and what it cost, as the manifest has it; last the sums."""
    rows = [(one.stage, one.model, one.calls, one.usd) for one in release.spend]
    sums: dict[str, Decimal] = {}
    for *_, spent in rows:
        amount, _, currency = spent.partition(" ")
        sums[currency] = sums.get(currency, Decimal()) + Decimal(amount)
    total = " + ".join(f"{amount:f} {currency}".strip() for currency, amount in sorted(sums.items()))
    return [*rows, ("all", "", sum(row[2] for row in rows), total)] if len(rows) > 1 else rows
