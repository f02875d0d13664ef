"""Signs of risk, and minors: what the tables say of a row, and a second look at what is released."""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Finding
from pipelines.text.minors import under_18
from pipelines.text.risk import risk
from pipelines.text.script import as_simplified

_LEFT_OUT = "gongqing refresh leaves them out; a row that it does not see: gongqing erase ROW_ID"


def risks(released: Released) -> Iterator[Finding]:
    """Rows with signs of risk: by the tables' own flags, by the second opinion of `topics`, by the rules read again.

    A warning where the settings allow such rows. Texts of supporters and models are not checked: they have to ask
    whether somebody is in danger.
    """
    opinions = released.table("topics").filter(pl.col("risk").list.len() > 0)
    flagged = released.sources.filter("risk")["origin"].to_list() + opinions["row_id"].to_list()
    texts = released.texts.filter(pl.col("part").is_in(["seeker", "answer"]))
    again = texts.filter(risk(pl.col("text")).list.len() > 0)
    if ids := _rows(released, flagged, again):
        allowed = released.settings.prompts.allow_risk
        what = f"{len(ids):,} rows show signs of risk to life or limb"
        hint = "the setting prompts.allow_risk lets them train" if allowed else _LEFT_OUT
        yield finding("risk", what, hint, ids, severity="warn" if allowed else "refuse")


def minors(released: Released) -> Iterator[Finding]:
    """Rows whose seeker, or whose answerer, says to be younger than 18. Nothing allows these."""
    flagged = released.sources.filter("under_18")["origin"].to_list()
    when = released.rows.select("config", "row_id", "origin").join(
        released.sources.select("origin", "posted_at"), on="origin", how="left"
    )
    spoken = released.texts.filter(pl.col("part").is_in(["seeker", "answer"])).sort("place")
    # A seeker is one person, whose turns are read together; of answers each has a writer of its own.
    alone = pl.when(pl.col("part") == "answer").then("place").otherwise(-1)
    by_writer = spoken.group_by("config", "row_id", "part", alone=alone, maintain_order=True)
    writers = by_writer.agg(pl.col("text").str.join("\n")).join(when, on=["config", "row_id"], how="left")
    again = writers.filter(under_18(as_simplified(pl.col("text")), pl.col("posted_at")))
    if ids := _rows(released, flagged, again):
        yield finding("minors", f"{len(ids):,} rows are by writers who say to be younger than 18", _LEFT_OUT, ids)


def _rows(released: Released, origins: list[str], again: pl.DataFrame) -> list[str]:
    """The ids of the released rows that come from any of `origins`, or that stand in `again`."""
    flagged = released.rows.filter(pl.col("origin").is_in(origins))
    return sorted({*flagged["row_id"], *again["row_id"]})
