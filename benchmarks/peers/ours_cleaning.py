"""Our cleaning chain: characters and artefacts, script, language, length, share of Han, exact duplicates."""

import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import polars as pl
import pyarrow as pa
from measure import cpu_seconds, run

from pipelines.clean.language import language
from pipelines.clean.normalise import normalised
from pipelines.settings import Filters
from pipelines.text.chunks import in_shares
from pipelines.text.keys import han_ratio, n_chars
from pipelines.text.pii import redact
from pipelines.text.script import simplified

seconds: dict[str, float] = defaultdict(float)
wall = 0.0


def column(texts: pa.ChunkedArray) -> pl.Series:
    return pl.Series("text", texts).rechunk()


def cleaned(rows: pl.DataFrame, setting: str) -> pl.DataFrame:
    """The texts (`text`), each after all steps that look at one text alone, with what is asked of them."""
    one = pl.col("text")
    steps = {
        "contact data": lambda: rows.with_columns(text=redact(rows["text"], names="none").texts),
        "personal data": lambda: rows.with_columns(text=redact(rows["text"]).texts),
        "characters and artefacts": lambda: rows.with_columns(text=normalised(one)),
        "of the paper": lambda: rows.with_columns(text=normalised(one, "paper")),
        "script": lambda: rows.with_columns(text=simplified(one)),
        "language": lambda: rows.with_columns(language=language(one)),
        "length": lambda: rows.with_columns(n_chars=n_chars(one)),
        "share of Han": lambda: rows.with_columns(han_ratio=han_ratio(one)),
    }
    left_out = {
        "default": {"contact data", "personal data", "of the paper"},
        "paper": {"contact data", "personal data", "characters and artefacts"},
        "contact": {"personal data", "of the paper"},
        "names": {"contact data", "of the paper"},
    }
    for name, step in steps.items():
        if name not in left_out[setting]:
            start = cpu_seconds()
            rows = step()
            seconds[name] += cpu_seconds() - start
    return rows


def clean(texts: pl.Series, setting: str) -> list[int]:
    """The rows that the chain keeps."""
    global wall  # noqa: PLW0603
    seconds.clear()
    begun = time.perf_counter()
    rows = in_shares(lambda some: cleaned(some, setting), texts.to_frame())
    start, filters = cpu_seconds(), Filters()
    kept = (
        rows.with_row_index()
        .filter(
            pl.col("language") == "mandarin",
            pl.col("n_chars") >= filters.min_post_chars,
            pl.col("han_ratio") >= filters.min_han_ratio,
        )
        .unique("text", keep="first", maintain_order=True)["index"]
        .to_list()
    )
    seconds["exact duplicates"] += cpu_seconds() - start
    wall = time.perf_counter() - begun
    return kept


if __name__ == "__main__":
    run(clean, column, lambda: {"seconds_by_operator": seconds, "wall_seconds": wall})
