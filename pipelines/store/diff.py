"""What changed between two versions of a table."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Diff:
    """Rows by key: in the second version only, in the first only, in both with another content."""

    added: pl.DataFrame
    removed: pl.DataFrame
    changed: pl.DataFrame  # the key, and `columns`: the names of the columns that differ

    @property
    def empty(self) -> bool:
        """Whether the two versions hold the same rows."""
        return not (self.added.height or self.removed.height or self.changed.height)


def diff(before: pl.DataFrame, after: pl.DataFrame, key: list[str]) -> Diff:
    """Compare two frames by `key`; a column that only one of them has differs on every common row."""
    added = after.join(before, on=key, how="anti")
    removed = before.join(after, on=key, how="anti")
    common = before.select(key).join(after.select(key), on=key, how="inner").sort(key)
    left = common.join(before, on=key, how="left", maintain_order="left")
    right = common.join(after, on=key, how="left", maintain_order="left")
    columns = [name for name in dict.fromkeys([*before.columns, *after.columns]) if name not in key]
    differs = {
        name: (~left[name].eq_missing(right[name]))
        if name in left.columns and name in right.columns and left.schema[name] == right.schema[name]
        else pl.Series(name, [True] * common.height, dtype=pl.Boolean)
        for name in columns
    }
    named = [pl.when(pl.Series(flags)).then(pl.lit(name)) for name, flags in differs.items()]
    listed = pl.concat_list(named).list.drop_nulls() if named else pl.lit([], dtype=pl.List(pl.String))
    changed = common.with_columns(columns=listed).filter(pl.col("columns").list.len() > 0)
    return Diff(added, removed, changed)
