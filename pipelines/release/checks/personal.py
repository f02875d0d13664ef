"""A second pass for personal data, over whatever is released: texts of people, and texts that models wrote."""

from collections.abc import Iterator

import polars as pl

from pipelines.clean.personal_data.redaction import find
from pipelines.release.checks.released import Released, some
from pipelines.release.manifest import Finding


def personal_data(released: Released) -> Iterator[Finding]:
    """Texts in which the finders of `pipelines.clean.personal_data` still find something; placeholders are nothing."""
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
            remedy="have these rows erased (gongqing erase ROW_ID), or mend the rules of pipelines/clean/personal_data",
            examples=some(rows["row_id"]),
        )
