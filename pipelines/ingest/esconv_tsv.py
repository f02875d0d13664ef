"""ESConv as windows of up to five utterances (``…WithStrategy_short.tsv``), put together again.

A line is a window: utterances joined by `` EOS ``, each ``weight role index [Strategy] text`` (role 0 the seeker, 1 the
supporter, who alone has a strategy; index from 0). It ends with a supporter's utterance, and the next line with the
next one, so that windows overlap: in the shared file 2,985 of them hold 211 dialogues. A window whose last index is
not above the one before it begins the next dialogue.

A record is a dialogue found, or a line that is no window or fits nowhere. Seekers who write five lines and more push
their first ones out of every window: such gaps (8 of the 211) stand in the attribute `missing_utterances`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance

_UTTERANCE = re.compile(r"[0-9.]+ (?P<role>[01]) (?P<index>[0-9]{1,6}) (?P<text>.*)", re.DOTALL)
_END = re.compile(r"\s+EOS\s+(?=[0-9.]+ [01] [0-9]+ )")
_STRATEGY = re.compile(r"\[(?P<strategy>[^\[\]]{1,60})\]\s*(?P<text>.*)", re.DOTALL)

Window = dict[int, Utterance]


@dataclass
class _Dialogue:
    where: str
    said: Window = field(default_factory=dict)
    latest: Window = field(default_factory=dict)
    windows: int = 0

    @property
    def last(self) -> int:
        return max(self.said)

    def agrees(self, window: Window) -> bool:
        return all(self.said.get(index, utterance) == utterance for index, utterance in window.items())

    def add(self, window: Window) -> None:
        self.said.update(window)
        self.latest = window
        self.windows += 1

    def record(self) -> Dialogue:
        missing = [index for index in range(self.last) if index not in self.said]
        gaps = (("missing_utterances", ", ".join(map(str, missing))),) if missing else ()
        return Dialogue(
            self.where,
            tuple(self.said[index] for index in sorted(self.said)),
            attributes=(("windows", str(self.windows)), *gaps),
        )


def read(source: Source) -> Iterator[Record | Broken]:
    """The dialogues of a file of windows, and the lines that are of none."""
    current: _Dialogue | None = None
    for number, line in enumerate(source.text.split("\n"), start=1):
        where = f"{source.name}:{number}"
        if not line.strip():
            continue
        window = _window(line)
        if window is None:
            yield Broken(where, "wrong_form", "is no window: `weight role index text EOS …`")
        elif current is None or (max(window) <= current.last and window != current.latest):
            if current is not None:
                yield current.record()
            current = _Dialogue(where)
            current.add(window)
        elif current.agrees(window):
            current.add(window)
        else:
            yield Broken(where, "unplaced_window", f"differs from the dialogue that begins at {current.where}")
    if current is not None:
        yield current.record()


def _window(line: str) -> Window | None:
    found: Window = {}
    for part in _END.split(line):
        match = _UTTERANCE.fullmatch(part.strip())
        if match is None:
            return None
        found[int(match["index"])] = _utterance(match["role"], match["text"])
    first, last = min(found), max(found)
    return found if list(found) == list(range(first, last + 1)) else None


def _utterance(role: str, text: str) -> Utterance:
    if role == "0":
        return Utterance("seeker", text.strip())
    tagged = _STRATEGY.fullmatch(text.strip())
    if tagged is None:
        return Utterance("supporter", text.strip())
    return Utterance("supporter", tagged["text"].strip(), (tagged["strategy"].strip(),))
