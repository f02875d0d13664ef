"""Personal data that a model wrote although nothing of the kind was told to it: made up, or known from elsewhere.

Inputs are redacted, so a telephone number or a full name in a chain stands for nothing in the post. What the inputs
say as well is theirs, and was judged when they were cleaned; public help lines and figures are no personal data.
"""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from pipelines.text.pii.redaction import find


def personal_data(written: Sequence[str], told: Sequence[str]) -> list[str | None]:
    """What each of `written` holds that its `told` does not, as kinds and counts (``name 1, phone 2``); None: nothing.

    Args:
        written: What a model wrote, a text a reply.
        told: All that it had been told, a text a reply.
    """
    if not written:
        return []
    found: list[Counter[str]] = [Counter() for _ in written]
    texts = pl.Series("written", list(written), dtype=pl.String)
    for row, start, end, kind, _ in find(texts).iter_rows():
        span = written[row].encode()[start:end].decode()
        if span not in told[row]:
            found[row][kind] += 1
    return [", ".join(f"{kind} {count}" for kind, count in sorted(one.items())) or None for one in found]
