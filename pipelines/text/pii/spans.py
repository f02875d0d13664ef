"""Where something stands in a column of texts: the form in which every finder answers, and a vectorised `finditer`."""

from collections.abc import Iterable

import polars as pl

# Row of the column; first byte and the byte after the last, in the UTF-8 of that row; a kind of
# schemas.labels.PII_KINDS; the value in one form, so that two ways of writing it are the same value.
SPANS = pl.Schema({"row": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "kind": pl.String, "value": pl.String})

# A finder reads folded texts (see `folding`: Simplified, half-width letters and digits, nothing invisible; no null) and
# returns a frame of SPANS in any order. Spans may overlap: `redaction` decides.

# Two noncharacters that no folded text holds.
OPEN, CLOSE = "\ufdd0", "\ufdd1"

MATCHES = pl.Schema(
    {
        "row": pl.UInt32,
        "start": pl.Int64,
        "end": pl.Int64,
        **dict.fromkeys(("cue", "hit", "before", "after"), pl.String),
    }
)

_CONTEXT = 24  # characters


def matches(texts: pl.Series, hit: str, *, cue: str = "", tail: str = "") -> pl.DataFrame:
    """Every match of `hit` in `texts`, leftmost first and without overlap: `finditer` over a column.

    The three patterns are Rust's, without capturing groups; what they match is consumed in the order cue, hit, tail. A
    tail is not seen again by the next match: prefer to look at `after`.

    Returns a frame of MATCHES: row, start and end of the hit in bytes; `cue` and `hit`; `before` and `after`, up to 24
    characters around the hit that do not reach over the hits beside it.
    """
    pattern = f"({cue})({hit})({tail})"
    rows = texts.str.contains(pattern).fill_null(False).arg_true() if len(texts) else texts
    if rows.is_empty():
        return pl.DataFrame(schema=MATCHES)
    marked = texts.gather(rows).str.replace_all(pattern, f"${{1}}{OPEN}${{2}}{CLOSE}${{3}}")
    length = pl.col("piece").str.len_bytes().cast(pl.Int64)
    pieces = (
        pl.DataFrame({"row": rows.cast(pl.UInt32), "piece": marked.str.split(OPEN)})
        .explode("piece")
        .with_columns(
            # A hit is preceded in its row by one mark for itself and two for each hit before it.
            start=(length.cum_sum() - length).over("row")
            - pl.int_range(pl.len(), dtype=pl.Int64).over("row").sub(1) * len(CLOSE.encode()),
            parts=pl.col("piece").str.splitn(CLOSE, 2),
        )
        .unnest("parts")
        .rename({"field_0": "hit", "field_1": "after"})
        .with_columns(before=pl.coalesce("after", "hit").shift(1))
        .filter(pl.col("after").is_not_null())
    )
    # The cue ends where the hit starts, so it is the end of what stands before.
    return pieces.select(
        "row",
        "start",
        end=pl.col("start") + pl.col("hit").str.len_bytes().cast(pl.Int64),
        cue=pl.col("before").str.extract(f"({cue})$") if cue else pl.lit(""),
        hit="hit",
        before=pl.col("before").str.tail(_CONTEXT),
        after=pl.col("after").str.head(_CONTEXT),
    ).cast(MATCHES)


def spans(hits: pl.DataFrame, kind: str, value: pl.Expr | None = None) -> pl.DataFrame:
    """Matches as spans of one `kind`; their value is `value`, or the hit in lower case."""
    value = pl.col("hit").str.to_lowercase() if value is None else value
    return hits.select("row", "start", "end", kind=pl.lit(kind), value=value).cast(SPANS)


def gather(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Frames of spans as one."""
    return pl.concat([pl.DataFrame(schema=SPANS), *frames])


def characters(text: str, places: Iterable[int]) -> dict[int, int]:
    """How many characters of `text` stand before each of these bytes; read once, however many there are."""
    data, last, before = text.encode(), 0, {0: 0}
    for place in sorted(set(places)):
        before[place] = before[last] + len(data[last:place].decode())
        last = place
    return before
