"""Lines of a text that fit a terminal: a Chinese character takes two columns, and a line may end behind any."""

import re

from rich.cells import cell_len

# A word of narrow characters stays whole, as a path that somebody copies; no line begins with what closes.
_CLOSING = "，。、；：？！）》」』】”’…"
_PIECES = re.compile(rf"[\u0021-\u2e7f]+|\s+|[^\s\u0021-\u2e7f][{_CLOSING}]*")


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns; a longer word stands alone."""
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        if lines[-1] or not piece.isspace():
            lines[-1] += piece
    return lines
