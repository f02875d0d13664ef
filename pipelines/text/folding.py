"""A text as a reader takes it in: without marks and spaces, in one width, one case and one script.

Whoever sets other commas into somebody's words, or writes them in the other script, repeats them all the same.
"""

import unicodedata
from functools import cache

import polars as pl

from pipelines.text.script import as_simplified, convertible

_UNSAID = frozenset("PZSC")  # marks, spaces, symbols, controls


class _Table(dict[int, str]):
    """What becomes of each character, found out when it is met."""

    def __missing__(self, code: int) -> str:
        made = unicodedata.normalize("NFKC", chr(code)).casefold().translate(_to_simplified())
        self[code] = "".join(one for one in made if unicodedata.category(one)[0] not in _UNSAID)
        return self[code]


_TABLE = _Table()


def folded(text: str) -> str:
    """What is left of a text: letters, figures and characters, each in its plainest form."""
    return text.translate(_TABLE)


@cache
def _to_simplified() -> dict[int, str]:
    characters = pl.Series("character", list(convertible()))
    made = characters.to_frame().select(as_simplified(pl.col("character"))).to_series()
    return {ord(one): other for one, other in zip(characters, made, strict=True)}
