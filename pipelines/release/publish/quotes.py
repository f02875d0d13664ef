"""References: they replace private words in a published row, and can be undone where the words are known.

``⟦9f2c01ab44d0e1c3 0:118 xinli001:1000⟧`` is characters 0 to 118 of the text of that post whose SHA-256 begins so. The
id names the text, the digest shows that it has not changed.
"""

import re
from collections.abc import Callable, Mapping

from pipelines.text.runs import Run
from schemas.ids import digest

_QUOTE = re.compile(r"⟦([0-9a-f]{16}) ([0-9]+):([0-9]+) ([^⟦⟧]+)⟧")


def quoted(text: str, runs: list[Run]) -> str:
    """The text with a reference in the place of each run."""
    parts, at = [], 0
    for run in runs:
        end = run.offset + run.end - run.start
        name = run.key.replace("⟦", "(").replace("⟧", ")")
        parts += [text[at : run.start], f"⟦{digest(run.known)} {run.offset}:{end} {name}⟧"]
        at = run.end
    return "".join([*parts, text[at:]])


def elsewhere(text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed that is not a reference."""
    parts, at = [], 0
    for quote in _QUOTE.finditer(text):
        parts += [change(text[at : quote.start()]), quote[0]]
        at = quote.end()
    return "".join([*parts, change(text[at:])])


def unquoted(text: str) -> list[str]:
    """The text before, between and behind the references."""
    return _QUOTE.sub("\0", text).split("\0")


def has_quotes(text: str) -> bool:
    """Whether words are missing from a text."""
    return _QUOTE.search(text) is not None


def restored(text: str, texts: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text with the references undone that `texts`, by digest, can undo; and the ids of the others' texts."""
    missing: list[str] = []

    def undo(quote: re.Match[str]) -> str:
        known = texts.get(quote[1])
        if known is None or int(quote[3]) > len(known):
            missing.append(quote[4])
            return quote[0]
        return known[int(quote[2]) : int(quote[3])]

    return _QUOTE.sub(undo, text), missing
