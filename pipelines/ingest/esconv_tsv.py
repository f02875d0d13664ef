"""ESConv as windows of up to five utterances (``…WithStrategy_short.tsv``), put together again.

A line is a window: utterances joined by `` EOS ``, each ``weight role index [Strategy] text`` (role 0 the seeker, 1 the
supporter, who alone has a strategy; index from 0). Windows overlap: each line ends with the supporter's next utterance.
One whose last index is not above the one before it begins the next dialogue. Seekers who write five lines and more push
their first ones out of every window: such gaps stand in the attribute `missing_utterances`.
"""

import re
from collections.abc import Iterator

from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance

_UTTERANCE = re.compile(r"[0-9.]+ (?P<role>[01]) (?P<index>[0-9]{1,6}) (?P<text>.*)", re.DOTALL)
_END = re.compile(r"\s+EOS\s+(?=[0-9.]+ [01] [0-9]+ )")
_STRATEGY = re.compile(r"\[(?P<strategy>[^\[\]]{1,60})\]\s*(?P<text>.*)", re.DOTALL)

Window = dict[int, Utterance]


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads the dialogues of a file of windows, and the lines that belong to none."""
    began = ""
    utterances: Window = {}  # of the dialogue that began there
    windows: list[Window] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        where = f"{source.name}:{number}"
        if not line.strip():
            continue
        window = _window(line)
        if window is None:
            yield Broken(where, "wrong_form", "is no window: `weight role index text EOS …`")
        elif not windows or (max(window) <= max(utterances) and window != windows[-1]):
            if windows:
                yield _dialogue(began, utterances, len(windows))
            began, utterances, windows = where, dict(window), [window]
        elif any(utterances.get(index, utterance) != utterance for index, utterance in window.items()):
            yield Broken(where, "unplaced_window", f"differs from the dialogue that begins at {began}")
        else:
            utterances |= window
            windows.append(window)
    if windows:
        yield _dialogue(began, utterances, len(windows))


def _dialogue(where: str, utterances: Window, n_windows: int) -> Dialogue:
    indexes = sorted(utterances)
    missing = ", ".join(str(index) for index in range(indexes[-1]) if index not in utterances)
    gaps = (("missing_utterances", missing),) if missing else ()
    turns = tuple(utterances[index] for index in indexes)
    return Dialogue(where, turns, attributes=(("windows", str(n_windows)), *gaps))


def _window(line: str) -> Window | None:
    window: Window = {}
    for part in _END.split(line):
        match = _UTTERANCE.fullmatch(part.strip())
        if match is None:
            return None
        text = match["text"].strip()
        tagged = _STRATEGY.fullmatch(text)
        if match["role"] == "0":
            utterance = Utterance("seeker", text)
        elif tagged is None:
            utterance = Utterance("supporter", text)
        else:
            utterance = Utterance("supporter", tagged["text"].strip(), (tagged["strategy"].strip(),))
        window[int(match["index"])] = utterance
    return window if list(window) == list(range(min(window), max(window) + 1)) else None
