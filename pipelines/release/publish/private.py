"""The texts that a home may use and may not publish: their writers did not allow it.

That follows from the consent of a row (`schemas.labels.CONSENTS`): `not_asked` (crawled) and `agreement` (handed out
under a signature) may not be published. Every row of every stage counts, also those that were dropped later: a public
text may not repeat them either.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import compress
from typing import Any

import polars as pl

from pipelines.store.store import Store
from pipelines.text.keys import key_of, keys_of
from pipelines.text.runs import Run, Runs
from schemas.ids import digest

_MARKS = re.compile(r"[/#~|+]")  # before a part of an id
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


PUBLISHABLE = ("given", "public_licence", "synthetic", "invented")
LEAST = 15  # characters of a run that no publication may repeat
_OWN_LEAST = 6  # Chinese ones of the row's own writer: a title, or a few words that a chain quotes
_REMEMBERED = 1 << 16  # texts
_OUR_LEAST = 40  # English letters: three or four words of a prompt or a card of ours stand in any corpus
_HAN = re.compile("[\u3400-\u9fff]")

# The cleaned texts come first: what a row repeats is theirs, and of two equal texts the first one is named.
_POSTS = ("unique_posts", "clean_posts", "raw_posts", "imported_posts")
_DIALOGUES = ("unique_dialogues", "clean_dialogues", "imported_dialogues")


# A text, the id of its post, answer or dialogue, and the post or dialogue that it belongs to.
Text = tuple[str, str, str]


class PrivateTexts:
    """The texts of a home that may not be published."""

    def __init__(self, texts: Iterator[Text]) -> None:
        # Prompts, and the turns before a round, stand in many rows.
        self.repeated_folded = lru_cache(_REMEMBERED)(self._repeated_folded)
        self.repeated_in_ours = lru_cache(_REMEMBERED)(self._repeated_in_ours)
        self._of_owner: dict[str, dict[str, str]] = defaultdict(dict)
        for text, row_id, owner in texts:
            self._of_owner[owner].setdefault(text, row_id)

    def __len__(self) -> int:
        return len(self._of_owner)

    @cached_property
    def runs(self) -> Runs:
        """Where a text repeats any of them for LEAST characters and more."""
        return self._runs(str)

    @cached_property
    def _folded_runs(self) -> Runs:
        return self._runs(lambda text: key_of(text, "script"))

    def _runs(self, fold: Callable[[str], str]) -> Runs:
        known = ((row_id, fold(text)) for texts in self._of_owner.values() for text, row_id in texts.items())
        return Runs(((row_id, text) for row_id, text in known if len(text) >= LEAST), LEAST)

    def _repeated_in_ours(self, text: str) -> list[Run]:
        """The runs in a text that we wrote, such as a prompt or a card: short ones in English are chance."""
        runs = self.runs.find(text)
        return [run for run in runs if run.end - run.start >= _OUR_LEAST or not text[run.start : run.end].isascii()]

    def _repeated_folded(self, text: str) -> bool:
        """Whether a text, outside of its references, repeats any in other marks, another width or the other script."""
        return any(self._folded_runs.find(key_of(part, "script")) for part in _QUOTE.sub("\0", text).split("\0"))

    def repeating(self, texts: Sequence[str]) -> set[str]:
        """Those that repeat any of them as they are, or as `repeated_folded` says: many are searched at once."""
        if not self._of_owner:
            return set()
        parts = [(number, part) for number, text in enumerate(texts) for part in _QUOTE.sub("\0", text).split("\0")]
        folded = self._folded_runs.repeating(keys_of([part for _, part in parts]))
        in_marks = {texts[number] for (number, _), repeats in zip(parts, folded, strict=True) if repeats}
        return in_marks.union(compress(texts, self.runs.repeating(texts)))

    def owner(self, row_id: str) -> str | None:
        """The private post or dialogue that a row was made from; None where it is none of these."""
        ends = [len(row_id), *(mark.start() for mark in reversed(list(_MARKS.finditer(row_id))))]
        return next((row_id[:end] for end in ends if row_id[:end] in self._of_owner), None)

    def own_runs(self, owner: str) -> Runs:
        """Where a text repeats what stands in one post with its answers, or in one dialogue, for a few characters; in
        one without Chinese for as many as elsewhere, since six of these are a single word, a label or a tag, too.
        """
        texts = self._of_owner[owner]
        least = _OWN_LEAST if any(map(_HAN.search, texts)) else LEAST
        return Runs(((row_id, text) for text, row_id in texts.items()), least)

    @cached_property
    def by_digest(self) -> dict[str, str]:
        """Every text by the digest that a reference names it by."""
        return {digest(text): text for texts in self._of_owner.values() for text in texts}


def read_private(store: Store, pins: Mapping[str, str] | None = None) -> PrivateTexts:
    """The private texts of a home: of the versions that `pins` names (`table` or `table/partition` → version), or of
    the current ones.

    Raises NoVersion where a pinned version is gone.
    """
    return PrivateTexts(text for row in _rows(store, pins) for text in _texts(row))


def _rows(store: Store, pins: Mapping[str, str] | None) -> Iterator[dict[str, Any]]:
    for table in (*_POSTS, *_DIALOGUES):
        for partition in store.places(table):
            name = table if partition is None else f"{table}/{partition}"
            if store.pointer(table, partition) is None or (pins is not None and name not in pins):
                continue
            frame = store.read(table, None if pins is None else pins[name], partition)
            private = frame.filter(~pl.col("consent").is_in(PUBLISHABLE)).collect()
            yield from private.iter_rows(named=True)


def _texts(row: dict[str, Any]) -> Iterator[Text]:
    owner = row.get("post_id") or row["dialogue_id"]
    for name in ("text", "title", "description", "situation"):
        if row.get(name):
            yield row[name], owner, owner
    for answer in row.get("answers") or []:
        yield answer["text"], answer["answer_id"], owner
    for turn in row.get("turns") or []:
        yield turn["text"], owner, owner
