"""A second search for personal data: texts of people, and texts that models wrote."""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Finding
from pipelines.text.pii.redaction import find

# What may name a row: the figures of anything else are those of a hash or a counter as well.
_IN_IDS = ("phone", "email", "id_card")
_MOBILE = 11  # figures


def personal_data(released: Released) -> Iterator[Finding]:
    """Texts in which the finders of `pipelines.text.pii` still find something, placeholders being nothing;
    and posts and dialogues that their set names by a mobile number, an address or an identity card.
    """
    yield from _in_texts(released)
    yield from _in_ids(released)


def _in_texts(released: Released) -> Iterator[Finding]:
    texts = released.texts
    distinct = texts["text"].unique()
    spans = find(distinct, names=released.settings.cleaning.names)
    kinds = spans.group_by("row").agg(kinds=pl.col("kind").unique())
    held = kinds.select("kinds", text=distinct.gather(kinds["row"]))
    rows = texts.join(held, on="text").explode("kinds").unique(["row_id", "kinds"])
    if rows.height:
        counts = rows.group_by("kinds").len().sort("len", "kinds", descending=[True, False])
        what = "personal data are left: " + ", ".join(f"{kind} in {n:,} rows" for kind, n in counts.iter_rows())
        hint = "have these rows erased (gongqing erase ROW_ID), or mend the rules of pipelines/text/pii"
        yield finding("personal_data", what, hint, rows["row_id"].unique())


def _in_ids(released: Released) -> Iterator[Finding]:
    """A whole id, as its set gives it: a hash may hold a run of figures that looks like a number."""
    known = released.sources.join(released.rows.select("origin").unique(), on="origin")
    ids = known.with_columns(source_id=pl.col("origin").str.strip_prefix(pl.col("source") + ":"))
    spans = find(ids["source_id"], names=False)
    length = ids["source_id"].str.len_chars().gather(spans["row"])
    whole = spans.filter((pl.col("start") == 0) & (pl.col("end") == length) & pl.col("kind").is_in(list(_IN_IDS)))
    rows = ids[whole.filter((pl.col("kind") != "phone") | (pl.col("end") == _MOBILE))["row"]]
    if rows.height:
        sets = sorted(set(rows["source"]))  # the id itself would be somebody's number
        what = (
            f"{rows.height:,} posts or dialogues are named by a number or an address of somebody's: {', '.join(sets)}"
        )
        hint = "import the set again with another id, or with none (docs/mapping.md)"
        yield finding("personal_data", what, hint, sets, count=rows.height)
