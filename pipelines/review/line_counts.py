"""How many lines a text takes in a column of a spreadsheet: rows have to be as high as that before anybody opens it."""

import re
import unicodedata

# In widths of a Latin digit. Wide by intent: a font that is wider than ours must not cut a line off.
_HAN, _LATIN = 2.25, 1.15
# What is never broken at the end of a line: words of Latin letters and the like, with what follows them at once.
_UNIT = re.compile(r"[\u0021-\u2e7f]+|.", re.DOTALL)


def count_lines(text: str, width: float) -> int:
    """Lines of `text`, wrapped at `width` digits, at least one."""
    room = width - _HAN  # a comma or full stop takes the character before it along to the next line
    return sum(_lines_of(paragraph, room) for paragraph in re.split(r"\r\n|[\r\n]", text))


def _lines_of(paragraph: str, room: float) -> int:
    lines, used = 1, 0.0
    for unit in _UNIT.findall(paragraph):
        wide = sum(map(_width, unit))
        if used + wide > room and used:
            lines, used = lines + 1, 0.0
        lines += int(wide // room)
        used += wide % room
    return lines


def _width(character: str) -> float:
    return _HAN if unicodedata.east_asian_width(character) in "WFA" else _LATIN
