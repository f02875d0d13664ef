"""Contact data: what a stranger could reach or identify somebody by."""

import polars as pl

from pipelines.text.pii.handles import find_handles, find_nicknames
from pipelines.text.pii.links import find_links
from pipelines.text.pii.numbers import find_numbers
from pipelines.text.pii.patterns import CHINESE_DIGITS, SEPARATOR
from pipelines.text.pii.plates import find_plates
from pipelines.text.pii.spans import gather

# Where no four letters or digits follow each other and nobody is mentioned there is nothing but, perhaps, a nickname.
_SIGN = rf"[0-9A-Za-z{''.join(CHINESE_DIGITS)}]"
_GATE = rf"@|{_SIGN}(?:{SEPARATOR}{{0,3}}{_SIGN}){{3}}"
_BREAK = "\U0010fffd"  # nobody's


def find_contact(texts: pl.Series) -> pl.DataFrame:
    """Contact data in folded texts, as a frame of SPANS."""
    rows = texts.str.contains(_GATE).arg_true()
    # What is left of a page's markup, as one sign of as many bytes.
    some = texts.gather(rows).str.replace_many(["<br />", "<br/>", "<br>"], [f"{_BREAK}  ", f"{_BREAK} ", _BREAK])
    found = gather(finder(some) for finder in (find_links, find_numbers, find_handles, find_plates))
    return gather([found.with_columns(row=rows.gather(found["row"]).cast(pl.UInt32)), find_nicknames(texts)])
