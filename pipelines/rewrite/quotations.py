"""Quotations of one line in another: an analysis, or a reply, quotes what was said, and has to go on doing so.

A label says of an analysis that it is right or wrong. Rewritten beside a history whose words it no longer quotes, it
would be wrong for another reason than the one that people saw.
"""

import re
from collections.abc import Iterator, Sequence

# Shorter ones are words that are named, not speech; ours.
_LEAST = 4
# Single curly quotes hold apostrophes: the closing one is the one that no letter follows.
_QUOTED = re.compile(r"[「『“\"]([^「」『』“”\"\n]+)[」』”\"]|‘([^‘\n]+?)’(?!\w)")


def astray(texts: Sequence[str]) -> int:
    """How many quotations stand in no other of the lines, word for word."""
    return sum(_of(texts, place, quoted) is None for place, text in enumerate(texts) for quoted in _quoted(text))


def _quoted(text: str) -> Iterator[str]:
    return (said for found in _QUOTED.finditer(text) if len(said := found[1] or found[2]) >= _LEAST)


def _of(texts: Sequence[str], place: int, quoted: str) -> int | None:
    """Which other line a quotation stands in, rather an earlier one."""
    return next((other for other, text in enumerate(texts) if other != place and quoted in text), None)
