"""What the wide finder of personal data makes of texts, remembered in the home: no text is read twice.

The file holds hashes of texts, and at which characters placeholders stand in those that have some; no text. It belongs
to one version of the finder: under other code or another dictionary everything is read again. An erasure removes it.
"""

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.core.code_version import code_version
from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.text.pii.placeholders import PATTERN
from pipelines.text.pii.redaction import find, redact

# In which of the texts that were read together, between which characters, what stands.
Edit = tuple[int, int, int, str]
_EDIT = {"text": pl.UInt32, "start": pl.UInt32, "end": pl.UInt32, "stands": pl.String}
_SCHEMA: dict[str, Any] = {"key": pl.Binary, "edits": pl.List(pl.Struct(_EDIT))}
_PLACEHOLDER = re.compile(PATTERN)


class Readings:
    """The readings of a home. What is new is written by `save`."""

    def __init__(self, home: Path) -> None:
        self._home = Home(home)
        self._path = self._home.readings / f"{code_version(__name__)}-{version('jieba')}-{version('polars')}.parquet"
        # By the hash of some texts: nothing is to be replaced in them; this is; or (None) something, not yet known.
        self._known: dict[bytes, list[Edit] | None] = {}
        with suppress(OSError, pl.exceptions.PolarsError):  # not there, or damaged: everything is read again
            for key, edits in pl.read_parquet(self._path).select(*_SCHEMA).iter_rows():
                self._known[key] = None if edits is None else [(*edit.values(),) for edit in edits]
        self._written = self._known.copy()

    def nothing_in(self, texts: Sequence[str]) -> list[bool]:
        """Of each text whether nothing in it reads like personal data."""
        keys = [_key([text]) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            hits = set(find(pl.Series(list(new.values()), dtype=pl.String), names="wide")["row"])
            self._known |= {key: None if number in hits else [] for number, key in enumerate(new)}
        return [self._known[key] == [] for key in keys]

    def redacted(self, rows: Sequence[Sequence[str]]) -> list[list[str] | None]:
        """The texts of each row with placeholders, the same value by the same one in a row; None for a row in which
        nothing is replaced.
        """
        distinct = list(dict.fromkeys(text for row in rows for text in row))
        silent = {text for text, nothing in zip(distinct, self.nothing_in(distinct), strict=True) if nothing}
        of_row = [[] if silent.issuperset(row) else list(dict.fromkeys(row)) for row in rows]
        self._read({_key(texts): texts for texts in of_row if texts})
        return [self._changed(row, texts) if texts else None for row, texts in zip(rows, of_row, strict=True)]

    def _read(self, groups: dict[bytes, list[str]]) -> None:
        """Notes the edits of each group of texts: those that are not known yet."""
        new = {key: texts for key, texts in groups.items() if self._known.get(key) is None}
        if not new:
            return
        whole = [text for texts in new.values() for text in texts]
        numbers = [number for number, texts in enumerate(new.values()) for _ in texts]
        changed = iter(redact(whole, pl.Series(numbers, dtype=pl.Int64), names="wide").texts.to_list())
        for key, texts in new.items():
            self._known[key] = [
                edit for number, text in enumerate(texts) for edit in _edits(number, text, next(changed))
            ]

    def _changed(self, row: Sequence[str], texts: list[str]) -> list[str] | None:
        edits = self._known[_key(texts)]
        if not edits:
            return None
        changed = {text: _edited(text, [edit for edit in edits if edit[0] == n]) for n, text in enumerate(texts)}
        return [changed[text] for text in row]

    def save(self) -> None:
        """Write what was read since; files of other versions of the finder go."""
        if self._known == self._written:
            return
        rows = [
            {"key": key, "edits": None if edits is None else [dict(zip(_EDIT, edit, strict=True)) for edit in edits]}
            for key, edits in self._known.items()
        ]
        buffer = io.BytesIO()
        pl.DataFrame(rows, schema=_SCHEMA).write_parquet(buffer)
        with self._home.lock("readings"):
            for path in self._path.parent.glob("*.parquet"):
                if path != self._path:
                    path.unlink()
            write_whole(self._path, buffer.getvalue())
        self._written = self._known.copy()


def _key(texts: Sequence[str]) -> bytes:
    hashed = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.digest()


def _edits(number: int, text: str, changed: str) -> list[Edit]:
    """What makes `changed` of a text: what stands between two of its placeholders stands in the text, in this order."""
    if changed == text:
        return []
    stands, between = _PLACEHOLDER.findall(changed), _PLACEHOLDER.split(changed)
    edits, end = [], len(between[0])
    for place, (one, following) in enumerate(zip(stands, between[1:], strict=True), 1):
        start = end
        at = len(text) - len(following) if place == len(stands) else text.index(following, start)
        edits.append((number, start, at, one))
        end = at + len(following)
    return edits


def _edited(text: str, edits: list[Edit]) -> str:
    parts, at = [], 0
    for _, start, end, stands in edits:
        parts += [text[at:start], stands]
        at = end
    return "".join([*parts, text[at:]])
