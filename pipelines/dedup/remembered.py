"""What the index remembers of distinct texts, on disk: digests, band keys, links. No text.

A text is a number here, counted from 0 in the order in which texts came. The folder holds

    index.json     the manifest: with what settings and code it was made, and the entries of all files below
    run-…          texts from one number on: their digests, and per band their keys, sorted, each with its text's number
    found-…        which texts are linked, and how similar each is to the survivor of its cluster
    members-…      which id bears which text

Files never change. New texts are a new run; runs of like size are merged, so that there are few (a log-structured
merge tree). The manifest is replaced last, in one step: whenever a process is killed, the folder holds the state
before or the state after, and files of neither are swept away by whoever opens it next.

Of a key the upper 32 bits are kept, in one number with the text's: half the bytes, and sorted four times as fast. Keys
that agree in those alone (a few in a million texts) make two texts candidates that are none, and are found out when
candidates are looked at with their whole keys.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.core.files import sync
from pipelines.core.kernels import Keys, Words, kernel
from pipelines.dedup import runs
from pipelines.dedup.components import roots, singletons, unite_pairs
from pipelines.dedup.contents import Seeds
from pipelines.dedup.runs import Array, Damaged, Entry

FORMAT = 1
OURS = re.compile(r"((run|found|members)-|index\.json\.)[0-9a-f]{16}")
MANIFEST = "index.json"
LOCK = "lock"
MOST_MEMBERS = 16  # files of ids, before they are made one
NOBODY = np.uint32(0xFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)
_LOWER = np.uint64(0x00000000FFFFFFFF)


class Missing(Damaged):
    """There is no index yet."""


class Remembered:
    """The state of an index: read whole, changed by `append` and `keep`, written by `save`.

    digests: uint64 [n, 2].
    links: uint32 [m, 2], enough of them to tell the components of the n texts.
    survivors: uint32 [n], the text that survived the text's cluster when last looked at; NOBODY where that is unknown.
    similarities: float64 [n], the similarity with that one.
    """

    def __init__(self, folder: Path, made_by: dict[str, Any]) -> None:
        self.folder = folder
        self.made_by = made_by
        self.seeds: Seeds = (secrets.randbits(64), secrets.randbits(64))
        self.digests: Keys = np.empty((0, 2), np.uint64)
        self.links: Words = np.empty((0, 2), np.uint32)
        self.survivors: Words = np.empty(0, np.uint32)
        self.similarities: NDArray[np.float64] = np.empty(0, np.float64)
        self._runs: list[Entry] = []
        self._found: Entry | None = None
        self._members: list[Entry] = []
        self._borne: tuple[pl.Series, Words] | None = None  # what `members` gives, once it was asked for

    def __len__(self) -> int:
        return len(self.digests)

    @classmethod
    def load(cls, folder: Path, made_by: dict[str, Any] | None = None) -> Self:
        """The state in a folder, made by what it may be asked to be `made_by`.

        Raises:
            Damaged: where there is none, it was made with other settings or code, or its bytes have changed.
        """
        manifest = _manifest(folder)
        if made_by not in (None, manifest["made_by"]):
            raise Damaged("it was made with other settings or by other code")
        state = cls(folder, manifest["made_by"])
        state.seeds = tuple(manifest["seeds"])
        state._runs, state._found, state._members = manifest["runs"], manifest["found"], manifest["members"]
        state.digests = np.concatenate([state.digests, *(runs.read(folder, run, "digests") for run in state._runs)])
        n = len(state)
        state.survivors, state.similarities = np.full(n, NOBODY), np.ones(n)
        if state._found:
            state.links = runs.read(folder, state._found, "links")
            compared = runs.read(folder, state._found, "compared")
            state.survivors[compared] = runs.read(folder, state._found, "survivors")
            state.similarities[compared] = runs.read(folder, state._found, "similarities")
        return state

    def components(self) -> Words:
        """The smallest number of each text's component, uint32 [n]."""
        parents = singletons(len(self))
        unite_pairs(parents, self.links[:, 0], self.links[:, 1])
        return roots(parents)

    def candidates(self, keys: Keys, at_most: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_] | None]:
        """Known texts that share a bucket with new ones, by the keys of the new ones (uint64 [b, m]).

        Returns:
            pairs: uint64, sorted, each once: the place of a new text in the upper half, the number of a known one in
                the lower. Not all of them where a band has more than `at_most`.
            met: None; or, where pairs are missing, bool [n]: all known texts of the pairs.
        """
        pairs, met, complete = [np.empty(0, np.uint64)], np.zeros(len(self), np.bool_), True
        for band, of_band in enumerate(keys):
            new, first = _packed(of_band), 0
            for run in self._runs:
                n = runs.length(run, "digests")
                known = runs.read(self.folder, run, f"band {band}")
                found = np.empty(min(2 * len(new), at_most), np.uint64)  # seldom are there more
                count = _meet(new, known, met[first : first + n], found)
                if count <= at_most and complete:
                    if count > len(found):
                        found = np.empty(count, np.uint64)
                        _meet(new, known, met[first : first + n], found)
                    pairs.append(found[:count] + np.uint64(first))
                complete &= count <= at_most
                first += n
        return np.unique(np.concatenate(pairs)), None if complete else met

    def append(self, digests: Keys, keys: Keys) -> None:
        """Remember new texts: their digests and their keys (uint64 [b, m])."""
        bands = ((f"band {band}", _packed(of_band)) for band, of_band in enumerate(keys))
        self._runs.append(runs.write(self.folder, "run", _first("digests", digests, bands)))
        self.digests = np.concatenate([self.digests, digests])
        self.survivors = np.concatenate([self.survivors, np.full(len(digests), NOBODY)])
        self.similarities = np.concatenate([self.similarities, np.ones(len(digests))])
        while len(self._runs) > 1 and 2 * self._length(-1) > self._length(-2):
            self._merge(2)

    def keep(self, kept: NDArray[np.bool_]) -> Words:
        """Forget texts: all those not `kept` (bool [n]), every byte of them. The others move up.

        Returns the new number of each text, NOBODY for the forgotten (uint32 [n]).
        """
        numbers = np.where(kept, np.cumsum(kept, dtype=np.uint32) - np.uint32(1), NOBODY)
        if kept.all():
            return numbers
        self._merge(len(self._runs), numbers)
        self.digests = self.digests[kept]
        self.links = numbers[self.links]
        self.links = self.links[(self.links != NOBODY).all(axis=1)]
        self.survivors, self.similarities = self.survivors[kept], self.similarities[kept]
        known = self.survivors != NOBODY
        self.survivors[known] = numbers[self.survivors[known]]
        return numbers

    def members(self) -> tuple[pl.Series, Words]:
        """The ids, and the number of the text that each bears (uint32)."""
        if self._borne is None:
            ids, numbers = [pl.Series([], dtype=pl.String)], [np.empty(0, np.uint32)]
            for entry in self._members:
                numbers.append(runs.read(self.folder, entry, "numbers"))
                raw = (pa.py_buffer(runs.read(self.folder, entry, name)) for name in ("offsets", "ids"))
                ids.append(pl.Series(pa.LargeStringArray.from_buffers(len(numbers[-1]), *raw), dtype=pl.String))
            self._borne = pl.concat(ids), np.concatenate(numbers)
        return self._borne

    def bear(self, ids: pl.Series, numbers: Words, *, too: bool = False) -> None:
        """Remember which id bears which text: these alone, or these `too`."""
        before, borne = self.members() if too else (ids.clear(), np.empty(0, np.uint32))
        self._borne = pl.concat([before, ids]), np.concatenate([borne, numbers])
        if too and len(self._members) < MOST_MEMBERS:
            self._members = [*self._members, *self._written(ids, numbers)]
        else:
            self._members = self._written(*self._borne)

    def _written(self, ids: pl.Series, numbers: Words) -> list[Entry]:
        held = ids.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        if not len(held):
            return []
        offsets = np.frombuffer(held.buffers()[1], np.int64)[held.offset : held.offset + len(held) + 1]
        raw = np.frombuffer(held.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        arrays = [("offsets", offsets - offsets[0]), ("ids", raw), ("numbers", numbers)]
        return [runs.write(self.folder, "members", arrays)]

    def save(self) -> None:
        """Make this the state of the folder, and remove what is no part of it.

        Raises:
            OSError: where the disk is full or cannot be written; the folder holds the state before.
        """
        components = self.components()
        (linked,) = np.nonzero(components != np.arange(len(self)))
        self.links = np.stack([linked.astype(np.uint32), components[linked]], axis=1)  # no more than are needed
        (compared,) = np.nonzero(self.survivors != NOBODY)
        found: dict[str, Array] = {
            "links": self.links,
            "compared": compared.astype(np.uint32),
            "survivors": self.survivors[compared],
            "similarities": self.similarities[compared],
        }
        self._found = runs.write(self.folder, "found", found.items())
        body = {
            "format": FORMAT,
            "made_by": self.made_by,
            "seeds": self.seeds,
            "runs": self._runs,
            "found": self._found,
            "members": self._members,
        }
        _replace(self.folder / MANIFEST, body)
        self.sweep()

    def sweep(self) -> None:
        """Remove files that are no part of this state: of one before, or of a process that was killed."""
        ours = {entry["file"] for entry in (*self._runs, *self._members, *filter(None, [self._found]))}
        _remove(self.folder, ours)

    def _length(self, place: int) -> int:
        return runs.length(self._runs[place], "digests")

    def _merge(self, count: int, numbers: Words | None = None) -> None:
        """Make one of the last `count` runs, with texts renumbered by `numbers` and those of NOBODY left out."""
        merged = self._runs[-count:]
        lengths = [runs.length(run, "digests") for run in merged]
        firsts = np.cumsum([0, *lengths[:-1]]).astype(np.uint64)

        def digests() -> Array:
            parts = np.concatenate([runs.read(self.folder, run, "digests") for run in merged])
            return parts if numbers is None else parts[numbers != NOBODY]

        def band(name: str) -> Array:
            keys = np.concatenate(
                [runs.read(self.folder, run, name) + first for run, first in zip(merged, firsts, strict=True)]
            )
            if numbers is not None:
                number = numbers[keys & _LOWER]
                keys = ((keys & _UPPER) | number)[number != NOBODY]
            keys.sort()
            return keys

        names = [name for name in merged[0]["arrays"] if name != "digests"]
        written = runs.write(self.folder, "run", _first("digests", digests(), ((name, band(name)) for name in names)))
        self._runs[-count:] = [written] if runs.length(written, "digests") else []


def clear(folder: Path) -> None:
    """Remove an index, whatever its state."""
    (folder / MANIFEST).unlink(missing_ok=True)
    _remove(folder, set())


def _remove(folder: Path, spared: set[str]) -> None:
    """Remove the files of an index, and no others, but for those that are spared."""
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in spared:
            path.unlink()


def _first(name: str, array: Array, others: Iterator[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    yield name, array
    yield from others


def _packed(keys: Keys) -> Keys:
    """Upper key bits and number in one, sorted; the numbers count from 0 within a run."""
    packed: Keys = (keys & _UPPER) | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    return packed


@kernel
def _meet(new: Keys, known: Keys, met: NDArray[np.bool_], pairs: Keys) -> int:
    """Numbers of two sorted runs whose upper key bits are the same: marks those of `known` in `met`.

    Fills `pairs` as far as it reaches; returns how many there are.
    """
    count = 0
    low = 0  # known keys before it are smaller than any that is still to come
    for i in range(new.shape[0]):
        key = new[i] >> np.uint64(32)
        # New keys are few among the known: steps that double, then halves between the last two.
        step, high = 1, low
        while high < known.shape[0] and known[high] >> np.uint64(32) < key:
            low, high, step = high + 1, high + step, 2 * step
        high = min(high, known.shape[0])
        while low < high:
            middle = (low + high) // 2
            if known[middle] >> np.uint64(32) < key:
                low = middle + 1
            else:
                high = middle
        at = low
        while at < known.shape[0] and known[at] >> np.uint64(32) == key:
            met[known[at] & _LOWER] = True
            if count < pairs.shape[0]:
                pairs[count] = new[i] << np.uint64(32) | known[at] & _LOWER
            count += 1
            at += 1
    return count


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        sum_, _, raw = (folder / MANIFEST).read_bytes().partition(b"\n")
    except FileNotFoundError as error:
        raise Missing("there is none yet") from error
    except OSError as error:
        raise Damaged(f"{MANIFEST} cannot be read: {error.strerror}") from error
    if hashlib.sha256(raw).hexdigest().encode() != sum_:
        raise Damaged(f"{MANIFEST} does not hold the bytes that were written")
    body: dict[str, Any] = json.loads(raw)
    if body["format"] != FORMAT:
        raise Damaged(f"its format is {body['format']}, not {FORMAT}")
    return body


def _replace(path: Path, body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with fresh.open("xb") as file:
        file.write(hashlib.sha256(raw).hexdigest().encode() + b"\n" + raw)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)
