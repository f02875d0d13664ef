"""Ours, end to end: signatures, bands, exact check, clusters, survivors. The setting is the mode: exact or fast."""

from collections.abc import Iterable

import polars as pl
import pyarrow as pa
from measure import run

from pipelines.dedup import find_duplicates


def deduplicate(texts: pl.Series, mode: str) -> Iterable[int]:
    found = find_duplicates(texts, threshold=0.8, mode=mode)
    return found.filter("keep")["row"]


if __name__ == "__main__":
    run(deduplicate, lambda texts: pl.Series("text", pa.chunked_array(texts)))
