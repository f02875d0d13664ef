"""Character n-grams by which erased text is known wherever it was copied to, without keeping the text.

The hash of each n-gram of LENGTH characters is kept, under a secret base that is forgotten with the erasure. A text
with one that no other row has is a trace. White space of any kind counts as a space. `Scrub` takes traces out of texts
without a schema: events of Dagster, logs, manifests of releases.
"""

import json
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.core.arrow import Texts, buffers, buffers_of, decoded
from pipelines.core.files import write_whole
from pipelines.core.kernels import Bytes, Places, kernel
from pipelines.core.overlap import Hashes, Points, hashes, points
from pipelines.operations.erase.rows import ErasedIds, Mask
from pipelines.store.derived import IDS
from schemas.ids import source_row_id

LENGTH = 8  # a power of two: places in a window go around by their bits
QUOTE = 15  # consecutive characters: as many are a quotation

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([\"/nrt]))")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_IS_SPACE = np.zeros(0x3002, bool)  # by code point; the last one stands for all above
_IS_SPACE[[ord(space) for space in "\t\n\r\x0b\x0c\xa0\u3000"]] = True
# Bits: the table that answers most look-ups at once has 256 places an n-gram, and 64 MB at most.
_SPARSE, _MOST_BITS = 8, 26
_END = "\0"  # between two texts, and in none of ours
# Ids are masked one by one (`rows`), and group keys in `splits` removed; names of runs, of groups and of rewards are
# nobody's words. All else counts: what many rows have is no trace anyway.
_NAMES = frozenset({*IDS, "source_id", "reference_id", "cluster_id", "pool", "members", "run_id", "uid", "rewards"})

Positions = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Matches(NamedTuple):
    """Our n-grams in some texts: which they are, in which text each stands, and behind how many characters of that."""

    places: Positions
    rows: Positions
    at: Positions


class TextTraces:
    """The n-grams of some texts; `add_elsewhere` notes which of them others have as well.

    `values` are their sorted hashes. `quotable` are those of what people wrote; `shared` those that other rows of any
    kind have; `common` those of posts and dialogues that stay: what is made from such a row quotes it, not the erased.
    """

    def __init__(self, values: Hashes, base: int, quotable: NDArray[np.bool_] | None = None) -> None:
        self.values, self.base = values, base
        self.quotable = np.zeros(len(values), bool) if quotable is None else quotable
        self.shared = np.zeros(len(values), bool)
        self.common = np.zeros(len(values), bool)
        bits = min(len(values).bit_length() + _SPARSE, _MOST_BITS)
        self._likely, self._shift = np.zeros(1 << bits, bool), np.uint64(64 - bits)
        self._likely[values >> self._shift] = True

    @classmethod
    def of(cls, written: Iterable[str], made: Iterable[str] = ()) -> "TextTraces":
        """Of what people wrote and of what was made from it, under a new base."""
        base = secrets.randbits(64) | 1
        quotable, others = (_within_texts(_points(_END.join(texts)), base) for texts in (written, made))
        values = np.unique(np.concatenate([quotable, others]))
        return cls(values, base, np.isin(values, quotable))

    @property
    def unique(self) -> Hashes:
        """The hashes that nobody else has."""
        return self.values[~self.shared]

    def add_elsewhere(self, texts: Texts, *, source: bool) -> None:
        """Notes that other rows have these texts; `source`: rows of posts or dialogues as they came."""
        self.mark_shared(self.find(texts).places, source=source)

    def mark_shared(self, places: Positions | Flags, *, source: bool) -> None:
        """`add_elsewhere` of texts that have these n-grams of ours."""
        self.shared[places] = True
        if source:
            self.common[places] = True

    def quoting(self, matches: Matches) -> Positions:
        """The positions of those texts that have QUOTE consecutive characters of ours, not common to others."""
        quotable = self.quotable[matches.places]
        places, rows, at = (column[quotable] for column in matches)
        apart = (np.diff(at) != 1) | (np.diff(rows) != 0)
        stretches = np.split(np.arange(len(at)), np.flatnonzero(apart) + 1)
        least = QUOTE - LENGTH + 1
        of_ours = [rows[one[0]] for one in stretches if len(one) >= least and not self.common[places[one]].all()]
        return np.unique(np.array(of_ours, np.int64))

    def is_trace(self, text: str) -> bool:
        """Whether a text has an n-gram that no other row has."""
        return bool(len(self.positions(text)))

    def positions(self, text: str) -> Positions:
        """Where in a text the n-grams begin that no other row has."""
        if len(text) < LENGTH:
            return np.empty(0, np.int64)
        windows = hashes(_points(text), LENGTH, self.base)  # of a text that need be no Unicode
        at = np.flatnonzero(self._likely[windows >> self._shift])
        places, ours = self._places(windows[at])
        return at[ours][~self.shared[places]]

    def find(self, texts: Texts) -> Matches:
        """Our n-grams in some texts."""
        # Those of polars' are not held against UTF-8 once more.
        data, offsets = buffers_of(texts) if isinstance(texts, pa.LargeStringArray) else buffers(texts)
        n = room = 1 << 12
        while n >= room:
            room = 2 * n
            rows, at, windows = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint64)
            n = _find_likely(
                data, offsets, np.uint64(self.base), _IS_SPACE, self._likely, self._shift, rows, at, windows
            )
        places, ours = self._places(windows[:n])
        return Matches(places, rows[:n][ours], at[:n][ours])

    def _places(self, windows: Hashes) -> tuple[Positions, Flags]:
        """Which of our n-grams windows are, for those that are one, and which these are."""
        places = np.searchsorted(self.values, windows)
        places[places == len(self.values)] = 0
        ours = self.values[places] == windows if len(self.values) else np.zeros(len(windows), bool)
        return places[ours], ours


@kernel
def _find_likely(
    data: Bytes,
    offsets: Places,
    base: np.uint64,
    spaces: Flags,
    likely: Flags,
    shift: np.uint64,
    rows: Places,
    places: Places,
    windows: Hashes,
) -> int:
    """Notes each n-gram of the texts that may be in the table: its text, how many characters stand before it, its hash
    (`core.overlap.hashes`). Returns how many there are, also where there is no room for all.
    """
    leaving = np.uint64(1)  # the factor of the character that drops out of the sum
    for _ in range(LENGTH):
        leaving *= base
    inside = np.zeros(LENGTH, np.uint64)
    n = 0
    for row in range(offsets.shape[0] - 1):
        inside[:] = np.uint64(0)
        total, read, at, end = np.uint64(0), 0, offsets[row], offsets[row + 1]
        while at < end:
            code, at = decoded(data, at)
            letter = np.uint64(32) if code < spaces.shape[0] and spaces[code] else np.uint64(code)
            slot = read & (LENGTH - 1)
            total = total * base + letter - inside[slot] * leaving
            inside[slot] = letter
            read += 1
            if read >= LENGTH and likely[total >> shift]:
                if n < rows.shape[0]:
                    rows[n], places[n], windows[n] = row, read - LENGTH, total
                n += 1
    return n


def unescape(body: bytes) -> str:
    """The text of a JSON body, escaped characters as themselves, however often they were escaped."""
    text = _ESCAPED.sub(
        lambda code: chr(int(code[1], 16)) if code[1] else _CONTROL.get(code[2], code[2]),
        body.decode("utf-8", "replace"),
    )
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def texts_of(frame: pl.DataFrame) -> Iterator[tuple[Positions, pa.Array]]:
    """Row numbers and strings of each column that holds strings, however deep in lists and structs; ids left out."""
    rows = np.arange(frame.height, dtype=np.int64)
    for name in frame.columns:
        yield from _strings(name, frame[name].rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()), rows)


def _strings(name: str, array: pa.Array, rows: Positions) -> Iterator[tuple[Positions, pa.Array]]:
    kind = array.type
    if name in _NAMES:
        return
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield rows, array
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
        yield from _strings(name, array.flatten(), rows[parents])
    elif pa.types.is_struct(kind):
        for inner, column in zip(kind, array.flatten(), strict=True):
            yield from _strings(inner.name, column, rows)


def _points(text: str) -> Points:
    """The code points of a text, white space of any kind as a space."""
    codes = points(text)
    return np.where(_IS_SPACE[np.minimum(codes, len(_IS_SPACE) - 1)], np.uint32(ord(" ")), codes)


def _within_texts(codes: Points, base: int) -> Hashes:
    """The hashes of the n-grams that lie within one text."""
    ends = np.concatenate([[0], np.cumsum(codes == 0)])
    n = max(len(codes) - LENGTH + 1, 0)
    within: Hashes = hashes(codes, LENGTH, base)[ends[LENGTH : LENGTH + n] == ends[:n]]
    return within


ERASED = "[erased]"
_RECORD = "TableRecord"  # Dagster's class of a row in a table of an event
_PARALLEL = ("sample", "sample_fields")  # texts of some rows, and all else of the same rows in the same order
_MASK = re.compile(r"erased:[0-9a-f]{16}")  # `pipelines.store.suppression`; an earlier version left what lay beside it


class Scrub:
    """Replaces every line that holds a trace, or a part of one that continues in the next line, by ERASED, and every
    erased id by a mask.

    JSON stays JSON: in a string of it, or a name, no more goes than the line; of a table that Dagster shows, the rows.
    """

    def __init__(self, traces: TextTraces, erased: ErasedIds, mask: Mask) -> None:
        self._traces, self._erased, self._mask = traces, erased, mask

    def __call__(self, text: str) -> str:
        """The text without traces; the very same where it holds none."""
        if text.lstrip()[:1] in {"{", "["}:
            try:
                value = json.loads(text)
            except ValueError:
                return self._lines(text)
            clean = self._value(without_erased_records(value, self._erased))
            return text if clean == value else json.dumps(clean)
        return self._lines(text)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self._lines(name): self._value(item) for name, item in value.items()}
        return value

    def _lines(self, text: str) -> str:
        lines = text.split("\n")
        if len(positions := self._traces.positions(text)):
            ends = np.cumsum([len(line) + 1 for line in lines])
            begins = positions + [text[at] == "\n" for at in positions]  # a line break belongs to no line
            first, last = np.searchsorted(ends, [begins, positions + LENGTH - 1], side="right")
            for line in {line for a, b in zip(first, last, strict=True) for line in range(a, b + 1)}:
                lines[line] = ERASED if lines[line] else ""
        return "\n".join(line if line == ERASED else self._erased.masked(line, self._mask) for line in lines)


def without_erased_records(value: Any, erased: ErasedIds) -> Any:
    """A JSON value without Dagster's table records of rows that are erased, or were made from an erased row.

    A record goes whole, and is known by any of its cells: earlier versions wrote numbers at the source and moments of
    posting beside an id, which lead to somebody as well.
    """
    if isinstance(value, list):
        kept = [item for item in _without_parallel(value, erased) if not _is_erased(item, erased)]
        return [without_erased_records(item, erased) for item in kept]
    if isinstance(value, dict):
        return {name: without_erased_records(item, erased) for name, item in value.items()}
    return value


def _is_erased(value: Any, erased: ErasedIds) -> bool:
    if not isinstance(value, dict) or value.get("__class__") != _RECORD or not isinstance(value.get("data"), dict):
        return False
    cells = value["data"]
    names = [cell for cell in cells.values() if isinstance(cell, str)]
    if {"source", "source_id"} <= cells.keys():
        names.append(source_row_id(cells["source"], cells["source_id"]))
    return any(name in erased or _MASK.fullmatch(name) for name in names)


def _without_parallel(entries: list[Any], erased: ErasedIds) -> list[Any]:
    """Metadata whose two parallel tables lose the same rows: only one of them may name a row."""
    tables = [entry["entry_data"]["records"] for entry in entries if _is_parallel(entry)]
    if len(tables) != len(_PARALLEL) or len(set(map(len, tables))) > 1:
        return entries
    lost = {at for records in tables for at, record in enumerate(records) if _is_erased(record, erased)}
    return [_without_records(entry, lost) if _is_parallel(entry) else entry for entry in entries]


def _is_parallel(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("label") in _PARALLEL
        and isinstance(entry.get("entry_data"), dict)
        and isinstance(entry["entry_data"].get("records"), list)
    )


def _without_records(entry: dict[str, Any], lost: set[int]) -> dict[str, Any]:
    left = [record for at, record in enumerate(entry["entry_data"]["records"]) if at not in lost]
    return {**entry, "entry_data": {**entry["entry_data"], "records": left}}


def scrub_file(path: Path, scrub: Scrub) -> bool:
    """Removes traces from a text file; whether it had any. Other bytes stay as they are."""
    before = path.read_bytes().decode("utf-8", "surrogateescape")
    after = scrub(before)
    if after != before:
        rewrite(path, after.encode("utf-8", "surrogateescape"))
    return after != before


def rewrite(path: Path, content: bytes) -> None:
    """Replaces a file at once; it keeps its mode."""
    mode = path.stat().st_mode
    write_whole(path, content)
    path.chmod(mode)


def scrub_cell(cell: Any, scrub: Scrub) -> Any:
    """A cell of a database without traces; the same where it has none. Dagster compresses some of its documents."""
    text = text_of_cell(cell)
    if text is None or (clean := scrub(text)) == text:
        return cell
    return clean if isinstance(cell, str) else zlib.compress(clean.encode())


def text_of_cell(cell: Any) -> str | None:
    """The text of a cell of a database; None where it has none."""
    if isinstance(cell, str):
        return cell
    try:
        return zlib.decompress(cell).decode() if isinstance(cell, bytes) else None
    except (zlib.error, UnicodeDecodeError):
        return None
