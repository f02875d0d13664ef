"""A second pass for personal data, over whatever is released: texts of people, and texts that models wrote."""

from collections.abc import Iterator

import polars as pl

from pipelines.release.checks.released import Released, some
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
    found = find(distinct, names=released.settings.cleaning.names)
    kinds = found.group_by("row").agg(kinds=pl.col("kind").unique())
    held = kinds.select("kinds", text=distinct.gather(kinds["row"]))
    rows = texts.join(held, on="text").explode("kinds").unique(["row_id", "kinds"])
    if rows.height:
        counted = rows.group_by("kinds").len().sort("len", "kinds", descending=[True, False])
        told = ", ".join(f"{kind} in {count:,} rows" for kind, count in counted.iter_rows())
        yield Finding(
            check="personal_data",
            severity="refuse",
            count=rows["row_id"].n_unique(),
            what=f"personal data are left: {told}",
            hint="have these rows erased (gongqing erase ROW_ID), or mend the rules of pipelines/text/pii",
            examples=some(rows["row_id"]),
        )


def _in_ids(released: Released) -> Iterator[Finding]:
    """A whole id, as its set gives it: a hash may hold a run of figures that looks like a number."""
    known = released.sources.join(released.rows.select("origin").unique(), on="origin")
    ids = known.with_columns(source_id=pl.col("origin").str.strip_prefix(pl.col("source") + ":"))
    found = find(ids["source_id"], names=False)
    length = ids["source_id"].str.len_chars().gather(found["row"])
    whole = found.filter((pl.col("start") == 0) & (pl.col("end") == length) & pl.col("kind").is_in(list(_IN_IDS)))
    told = ids[whole.filter((pl.col("kind") != "phone") | (pl.col("end") == _MOBILE))["row"]]
    if told.height:
        sets = some(told["source"])  # an example would be somebody's number
        yield Finding(
            check="personal_data",
            severity="refuse",
            count=told.height,
            what=f"{told.height:,} posts or dialogues are named by a number or an address of somebody's: "
            f"{', '.join(sets)}",
            hint="import the set again with another id, or with none (docs/mapping.md)",
            examples=sets,
        )
