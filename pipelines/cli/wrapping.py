"""Lines that fit a terminal: a Chinese character takes two columns, and a line may end behind any."""

import re
from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.containers import Lines
from rich.text import Text

# A word of narrow characters stays whole, as a path that somebody copies; no line begins with what closes.
_CLOSING = "，。、；：？！）》」』】”’…"
_PIECES = re.compile(rf"[\u0021-\u2e7f]+|\s+|[^\s\u0021-\u2e7f][{_CLOSING}]*")


def wrapped(line: str, width: int) -> list[str]:
    """A line as lines of at most `width` columns; a longer word stands alone."""
    ends = [*breaks(line, width, fold=False), len(line)]
    return [line[start:end].strip() for start, end in zip([0, *ends], ends, strict=False)]


def breaks(line: str, width: int, *, fold: bool = True) -> Iterator[int]:
    """Where a line is to be broken, so that none of its parts is wider; `fold`: within a word, too, that is longer."""
    used = 0
    for piece in _PIECES.finditer(line):
        room = cell_len(piece[0].rstrip())
        if used and used + room > width:
            yield piece.start()
            used = 0
        if fold and room > width:
            at = piece.start()
            *whole, last = chop_cells(piece[0], width)
            for part in whole:
                at += len(part)
                yield at
            used = cell_len(last)
        else:
            used += cell_len(piece[0])


class WrappedText(Text):
    """A text of rich's whose lines are broken here."""

    def wrap(self, console: Any, width: int, *, tab_size: int = 8, **options: Any) -> Lines:
        """Its lines. Where nothing is to be broken, rich does what it does."""
        if options.get("no_wrap") or self.no_wrap:
            return super().wrap(console, width, tab_size=tab_size, **options)
        lines = Lines()
        for line in self.split(allow_blank=True):
            line.expand_tabs(tab_size)
            parts = line.divide(breaks(line.plain, width))
            for part in parts:
                part.rstrip()
            if justify := options.get("justify") or self.justify:
                parts.justify(console, width, justify=justify, overflow="fold")
            lines.extend(parts)
        return lines
