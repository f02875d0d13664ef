"""Quotations: what stands between a text's quotation marks, and whether another text has it word for word."""

import re
from collections.abc import Iterable

from pipelines.text.keys import key_of

# Of a quotation that shows anything, in letters; ours. A single one may stand anywhere, and so may marks.
LEAST_QUOTED = 2

_IN_CORNERS = re.compile("「([^「」]+)」")
# Single curly quotes hold apostrophes: the closing one is the one that no letter follows.
_QUOTED = re.compile(r"[「『“\"]([^「」『』“”\"\n]+)[」』”\"]|‘([^‘\n]+?)’(?!\w)")
_LEFT_OUT = re.compile(r"…+|\.{3,}")


def quotations(text: str) -> list[str]:
    """What stands between quotation marks of any kind; of one within another the inner."""
    return [match[1] or match[2] for match in _QUOTED.finditer(text)]


def in_corners(text: str) -> list[str]:
    """What stands between 「 and 」."""
    return _IN_CORNERS.findall(text)


def unquoted(text: str) -> str:
    """A text without what stands between quotation marks of any kind."""
    return _QUOTED.sub("", _IN_CORNERS.sub("", text))


def n_letters(quoted: str) -> int:
    """How many letters and digits a quotation has."""
    return sum(map(str.isalnum, quoted))


def stands_in(quoted: str, texts: Iterable[str], *, exactly: bool = False) -> bool:
    """Whether one of the texts has a quotation: `exactly`, character by character; else as a reader has it, whatever
    the width, the marks and the script, and with anything between the parts that an ellipsis joins, in their order.
    """
    if exactly:
        return any(quoted in text for text in texts)
    parts = [key_of(part, "script") for part in _LEFT_OUT.split(quoted)]
    return any(_in_order(parts, key_of(text, "script")) for text in texts)


def _in_order(parts: Iterable[str], text: str) -> bool:
    ends = 0
    for part in parts:
        if (begins := text.find(part, ends)) < 0:
            return False
        ends = begins + len(part)
    return True
