"""Where something stands in a column of texts: the form in which every finder answers, and a vectorised `finditer`."""

from collections.abc import Iterable, Iterator

import polars as pl

# Row of the column; first byte and the byte after the last, in the UTF-8 of that row; a kind of
# schemas.labels.PII_KINDS; the value in one form, so that two ways of writing it are the same value.
SPANS = pl.Schema({"row": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "kind": pl.String, "value": pl.String})

# Where there is no hit a finder gives NONE at once: polars compiles a pattern at each use, of an empty column as well,
# and that would be most of what it costs to read a few texts.
NONE = pl.DataFrame(schema=SPANS)

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
    found = [(row, *one) for row, text in zip(rows, marked, strict=True) for one in _marked(text)]
    hits = pl.DataFrame(found, schema=MATCHES, orient="row")
    # The cue ends where the hit starts, so it is the end of what stands before.
    return hits.with_columns(
        cue=pl.col("before").str.extract(f"({cue})$") if cue else pl.lit(""),
        before=pl.col("before").str.tail(_CONTEXT),
    )


def _marked(text: str) -> Iterator[tuple[int, int, None, str, str, str]]:
    """The marked hits of a text, in the columns of MATCHES behind the first; `before` reaches to the hit before."""
    before, *pieces = text.split(OPEN)
    start = len(before.encode())
    for piece in pieces:
        hit, _, after = piece.partition(CLOSE)
        end = start + len(hit.encode())
        yield start, end, None, hit, before, after[:_CONTEXT]
        before, start = after, end + len(after.encode())


def spans(hits: pl.DataFrame, kind: str, value: pl.Expr | None = None) -> pl.DataFrame:
    """Matches as spans of one `kind`; their value is `value`, or the hit in lower case."""
    if hits.is_empty():
        return NONE
    value = pl.col("hit").str.to_lowercase() if value is None else value
    return hits.select("row", "start", "end", kind=pl.lit(kind), value=value).cast(SPANS)


def gather(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Frames of spans as one."""
    return pl.concat([NONE, *frames])


def characters(text: str, places: Iterable[int]) -> dict[int, int]:
    """How many characters of `text` stand before each of these bytes; read once, however many there are."""
    data, last, before = text.encode(), 0, {0: 0}
    for place in sorted(set(places)):
        before[place] = before[last] + len(data[last:place].decode())
        last = place
    return before
