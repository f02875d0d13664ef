"""Clauses of a text: what stands between two marks of punctuation, in either language, with its place."""

import re
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


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and (text[start].isspace() or text[start] in "、，,.·*#-"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in "、，,.·*#-"):
        end -= 1
    return (start, end) if any(one.isalnum() for one in text[start:end]) else None
