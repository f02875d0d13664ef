"""Personal data in a reply that its inputs do not hold: made up by the model, or known from elsewhere."""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from pipelines.text.pii.redaction import find


def personal_data(replies: Sequence[str], inputs: Sequence[str]) -> list[str | None]:
    """What each reply holds that its input does not, as kinds and counts (``name 1, phone 2``); None: nothing."""
    if not replies:
        return []
    counts: list[Counter[str]] = [Counter() for _ in replies]
    texts = pl.Series(list(replies), dtype=pl.String)
    for row, start, end, kind, _ in find(texts).iter_rows():
        span = replies[row].encode()[start:end].decode()
        if span not in inputs[row]:
            counts[row][kind] += 1
    return [", ".join(f"{kind} {count}" for kind, count in sorted(one.items())) or None for one in counts]
