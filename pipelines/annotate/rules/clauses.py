"""Clauses of a text: what stands between two marks of punctuation, in either language, with its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_HAN = r"\u3400-\u9fff"
# Kept whole: an emphasis in quotation marks or a short aside is part of its clause. Cut at: all marks that part
# clauses, a space between two Chinese characters, and what begins or ends a speech. Angle brackets cut, so that what is
# quoted can never hold a tag.
_MARKS = re.compile(
    r"(?P<whole>“[^“”\n]{1,6}”|\"[^\"\n]{1,6}\"|（[^（）\n]{1,6}）|《[^《》\n]{1,20}》)"
    rf"|(?P<cut>[。！？!?；;，,：:\n…~～|]+|\.{{2,}}|\.(?=\s|$)|(?<=[{_HAN}])[ \t\u3000]+(?=[{_HAN}])"
    r"|[“”「」『』（）()【】<>{}\"]|\s-+\s|—+)"
)
_ENDS = re.compile(r"[。！？!?；;\n…~～.]")
# What a clause neither begins nor ends with: every blank of Unicode, and marks that part words or make lists.
_EDGES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000、，,.·*#-"
_EDGES += "".join(map(chr, range(0x2000, 0x200B)))
_SAYS = re.compile(r"[^\W_]")
_OPENING, _CLOSING = "“「『", "”」』"


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: `text[start:end]`, stripped, and what is known of it by the marks around it."""

    start: int
    end: int
    sentence: int  # clauses of one sentence share it
    line: int  # 0 is the title and nothing else
    mark: str  # what stands behind it
    spoken: bool  # inside quotation marks

    @property
    def asked(self) -> bool:
        """Whether a question mark ends it."""
        return "?" in self.mark or "？" in self.mark


def clauses(text: str, *, titled: bool) -> list[Clause]:
    """The clauses of `text`, in order; none is empty or holds marks alone. `titled`: its first line is a title."""
    found: list[Clause] = []
    start = sentence = 0
    line = int(not titled)
    spoken = False
    for mark in [*_MARKS.finditer(text), None]:
        if mark and mark["whole"]:
            continue
        end = mark.start() if mark else len(text)
        cut = mark[0] if mark else ""
        if clause := _stripped(text, start, end):
            found.append(Clause(*clause, sentence, line, cut, spoken))
        if mark is None:
            break
        start = mark.end()
        sentence += bool(_ENDS.search(cut))
        if "\n" in cut:
            line, spoken = line + 1, False
        elif cut in _OPENING or cut in _CLOSING:
            spoken = cut in _OPENING
    return found


def holding(pattern: re.Pattern[str], text: str, parts: Sequence[Clause]) -> Iterator[int]:
    """The places of the clauses in which `pattern` matches. The whole text is looked at once: most texts have none.

    The pattern may not ask where a text ends: at the end of a clause it does not.
    """
    since = 0
    found = None
    for place, part in enumerate(parts):
        if part.end <= since:
            continue
        if found is None or found.start() < since:
            found = pattern.search(text, since)
            if found is None:
                return
        since = found.start()
        if part.end <= since:
            continue
        inside = part.start <= since and found.end() <= part.end
        if inside or pattern.search(text, part.start, part.end):
            yield place
            since = part.end


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    whole = text[start:end]
    if not _SAYS.search(whole):
        return None
    start += len(whole) - len(whole.lstrip(_EDGES))
    return start, start + len(whole.strip(_EDGES))
