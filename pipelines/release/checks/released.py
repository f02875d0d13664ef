"""What would be released, as the checks see it: the rows, where each comes from, and every text that they hold."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl
from polars.selectors import by_name

from pipelines.errors import DamagedVersion
from pipelines.release.checks.texts import texts_of
from pipelines.settings import Settings
from pipelines.store.derived import ID_COLUMNS, RowIds, derived_ids
from pipelines.store.emptiness import why_empty
from pipelines.store.release_manifest import Finding, Severity
from pipelines.store.store import Store, Version
from schemas.tables import AFTER_RELEASE, TABLES

# The sets that something trains on: the configs of a release.
CONFIGS = (
    *("sft_coe", "sft_cer", "rm_triplets", "rm_process", "rm_outcome", "rm_unified"),
    *("grpo_ecot", "grpo_coe", "grpo_cer"),
)
EXAMPLES = 1_000  # ids that a finding holds at most: enough to mend by

_MARKS = re.compile(r"\W")  # what may stand between the id of a post or a dialogue and a part of it


@dataclass(frozen=True)
class Released:
    """What a release would hold. `pins`: the version of each table, by `table` or `table/partition`; `left_out`: ids of
    rows, and of what was made from them, that are in these versions and not in the release.
    """

    home: Path
    store: Store
    pins: Mapping[str, Version]
    settings: Settings
    left_out: RowIds | None = None

    @cached_property
    def configs(self) -> dict[str, pl.DataFrame]:
        """The rows of each config that has any."""
        tables = {config: self._left(self.table(config)) for config in CONFIGS}
        return {config: rows for config, rows in tables.items() if rows.height}

    def without(self, origins: Collection[str]) -> Self:
        """The same without these posts and dialogues, and without every row that was made from one of them. Of what was
        rewritten to a persona of one of them all variants go, so that C's D, R and P have as many rows.
        """
        posts = self.table("unique_posts").filter(pl.col("post_id").is_in(list(origins)))
        answers = posts.select(pl.col("answers").explode(empty_as_null=False)).to_series().struct.field("answer_id")
        rows = self.rows.filter(pl.col("origin").is_in(list(origins)))["row_id"]
        ids = RowIds({*origins, *answers, *rows, *(self.left_out.ids if self.left_out else ())})
        ids.namesakes = {name for name in self.sources["origin"] if name not in ids.ids and name in ids}
        making = [name for name, table in TABLES.items() if derived_ids(table.create_empty()) is not None]
        tables = [self.table(name).select(by_name(*ID_COLUMNS, require_all=False)) for name in making]
        grown = True
        while grown:
            grown = any(ids.add_derived(_of_all_variants(table, ids.rows(table))) for table in tables)
        return replace(self, left_out=ids)

    def _left(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Without what is left out. A generic negative is nobody's: many answers have its sentences."""
        if self.left_out is None or not rows.height:
            return rows
        ids = rows.select(by_name(*ID_COLUMNS, require_all=False))
        if "kind" in rows.columns:
            own = pl.when(rows["kind"] != "generic").then("negative_ids").otherwise([])
            ids = ids.with_columns(negative_ids=own)
        return rows.filter(~self.left_out.rows(ids))

    @cached_property
    def rows(self) -> pl.DataFrame:
        """`config`, `row_id`, `split` of every row, with the `origin` and the `group_id` that it comes from.

        The origin is the post or the dialogue that the row was made from: of the beginnings of its id, the longest that
        is one. It is null, and so is the group, where there is none in the tables.
        """
        named = [
            rows.select(config=pl.lit(config), row_id="row_id", split="split") for config, rows in self.configs.items()
        ]
        rows = pl.concat([pl.DataFrame(schema=dict.fromkeys(("config", "row_id", "split"), pl.String)), *named])
        known = set(self.sources["origin"])
        origins = [origin(row_id, known) for row_id in rows["row_id"]]
        rows = rows.with_columns(origin=pl.Series(origins, dtype=pl.String))
        return rows.join(self.sources.select("origin", "group_id"), on="origin", how="left", maintain_order="left")

    @cached_property
    def sources(self) -> pl.DataFrame:
        """Every post and dialogue that the tables hold: `origin` (its id), `unit`, `group_id`, `source`, `licence`,
        `consent`, `lineage`, `under_18`, `risk` (whether it has any signs), and of posts `posted_at` and `fetched_at`.
        """
        common = ("group_id", "source", "licence", "consent", "lineage", "under_18")
        posts = self.table("unique_posts").select(
            *common, "posted_at", "fetched_at", "risk", origin="post_id", unit=pl.lit("post")
        )
        dialogues = self.table("unique_dialogues").select(
            *common, "risk", origin="dialogue_id", unit=pl.lit("dialogue")
        )
        return pl.concat([posts, dialogues], how="diagonal").with_columns(risk=pl.col("risk").list.len() > 0)

    @cached_property
    def texts(self) -> pl.DataFrame:
        """Every text of every row: see `texts.texts_of`."""
        of_configs = [texts_of(config, rows) for config, rows in self.configs.items()]
        return pl.concat(of_configs) if of_configs else texts_of("grpo_ecot", TABLES["grpo_ecot"].create_empty())

    def table(self, table: str) -> pl.DataFrame:
        """The rows of a table in its pinned version, or in those of its partitions; none where it was never made."""
        pinned = [version for version in self.pins.values() if version.table == table]
        rows = [self.store.read(table, one.version, one.partition).collect() for one in pinned]
        return pl.concat([TABLES[table].create_empty(), *rows])


def _of_all_variants(table: pl.DataFrame, marked: pl.Series) -> pl.DataFrame:
    """The marked rows; of a table of rewritings with all others of the same source."""
    rows = table.filter(marked)
    key = [name for name in ("source_dialogue_id", "round", "candidate") if name in table.columns]
    return table.join(rows.select(key), on=key, how="semi") if "source_dialogue_id" in key else rows


def origin(row_id: str, known: Collection[str]) -> str | None:
    """The id out of `known` that a row's id begins with, as a whole: the longest; None where there is none."""
    ends = [len(row_id), *(mark.start() for mark in reversed(list(_MARKS.finditer(row_id))))]
    return next((row_id[:end] for end in ends if row_id[:end] in known), None)


class Leak(Finding):
    """A finding that ends where the release leaves out `origins`: posts, dialogues, or rows that come from none."""

    origins: list[str]


def finding(
    check: str,
    what: str,
    hint: str,
    ids: Collection[str] | pl.Series,
    *,
    severity: Severity = "refuse",
    count: int | None = None,
) -> Finding:
    """A finding of a check: `count` (default: as many as there are `ids`), and the first of the ids, sorted."""
    count = len(ids) if count is None else count
    examples = sorted(set(ids))[:EXAMPLES]
    return Finding(check=check, severity=severity, count=count, what=what, hint=hint, examples=examples)


def pinned(store: Store) -> tuple[dict[str, Version], list[Finding]]:
    """The current version of every table and partition that a release may pin, by name, and what is damaged.

    Every file is read: what a release pins has to be whole.
    """
    pins: dict[str, Version] = {}
    damaged: list[str] = []
    for table in (table for table in TABLES if table not in AFTER_RELEASE):
        try:
            for version in store.current(table):
                pins[version.name] = version
                store.read(table, version.version, version.partition)
                store.read_dropped(table, version.version, version.partition)
        except DamagedVersion as error:
            damaged.append(f"{table}: {error.what}")
    if not damaged:
        return pins, []
    what = f"versions are damaged ({'; '.join(damaged)})"
    hint = "gongqing refresh makes them again; an imported or crawled table: import or crawl again"
    tables = {problem.partition(":")[0] for problem in damaged}
    return pins, [finding("damaged", what, hint, tables, count=len(damaged))]


def empty(released: Released) -> Iterator[Finding]:
    """Sets without a row, which are left out of the release; a release needs one at least."""
    if not released.configs:
        what = "there is nothing to release: no training set has a row"
        hint = (
            "gongqing tables shows what there is; import or crawl something, then gongqing refresh. "
            "Is this the home that you meant (GONGQING_HOME)?"
        )
        yield finding("empty", what, hint, CONFIGS)
        return
    missing = [config for config in CONFIGS if config not in released.configs]
    if missing:
        reasons = (_why_empty(released, one) for one in missing)
        named = ", ".join(f"{config} ({reason})" for config, reason in zip(missing, reasons, strict=True))
        what = f"sets without a row are left out: {named}"
        hint = "gongqing show TABLE --dropped tells more; docs/training-sets.md says what each set is made from"
        yield finding("empty", what, hint, missing, severity="warn")


def _why_empty(released: Released, config: str) -> str:
    if config not in released.pins:
        return "never made"
    return why_empty(released.store, released.pins[config], released.pins) or "all of its rows are left out"
