"""The incremental index: near-duplicates among many texts, at the cost of the new ones.

A cache and nothing else: `Index.clusters` gives what `find_duplicates` gives, whatever the index held before. Texts are
known by their content. One that was met before is not hashed again; one that was not is hashed, and compared with the
texts that share a bucket with it. Where a text has gone, all that were linked with it are looked at anew, for they may
have been linked through it alone. An index that is missing, damaged, or of other settings or code is made anew, and
`Index.report` says so.

It holds ids, digests and band keys, no text; `forget` removes every byte of them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.arrow import buffers
from pipelines.core.arrow import column as column_of
from pipelines.core.code_version import code_version
from pipelines.core.files import held
from pipelines.core.kernels import Keys, Words
from pipelines.dedup.bands import BANDS, Runs, band_keys, runs
from pipelines.dedup.clusters import clusters
from pipelines.dedup.components import roots, singletons, unite_pairs
from pipelines.dedup.contents import digests, numbered
from pipelines.dedup.duplicates import find_duplicates, require_threshold
from pipelines.dedup.jaccard import link, similarities
from pipelines.dedup.minhash import Mode
from pipelines.dedup.remembered import LOCK, Missing, Remembered, clear
from pipelines.dedup.runs import Damaged
from pipelines.errors import GongqingError, RequestError

BLOCK = 1 << 20  # texts whose keys are in memory at a time: 144 bytes each with 18 bands
MOST_PAIRS = 1 << 22  # of new and known texts in one band, that are compared pair by pair

Fetch = Callable[[NDArray[np.int64]], pl.Series]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What the last call found and did, in distinct texts.

    known: how many the index knew, and did not hash.
    hashed: how many it did.
    gone: how many it has forgotten.
    rebuilt: why the index was made anew, None where it was not.
    saved: whether the folder has changed. Not where nothing did, nor where the disk is full.
    """

    known: int = 0
    hashed: int = 0
    gone: int = 0
    rebuilt: str | None = None
    saved: bool = False


class Index:
    """An index in a folder of its own, for texts of one kind. Processes that use one folder wait for each other."""

    def __init__(
        self,
        folder: Path,
        *,
        mode: Mode = "exact",
        num_perm: int = 128,
        bands: tuple[int, int] = BANDS,
        seed: int = 1,
        threshold: float = 0.8,
        threads: int = 1,
    ) -> None:
        require_threshold(threshold)
        self.folder = folder
        self.report = Report()
        self._mode, self._num_perm, self._bands, self._seed = mode, num_perm, bands, seed
        self._threshold, self._threads = threshold, threads

    def clusters(self, ids: pl.Series, texts: pl.Series, *, earliest: pl.Series | None = None) -> pl.DataFrame:
        """Exactly `find_duplicates(texts, …, earliest=earliest, ids=ids)`, for the work that is new.

        Afterwards the index knows these ids and texts and no others: what it knew and is not given is forgotten.

        Raises:
            RequestError: where a column is of another length, or an id is null.
            OSError: where the folder cannot be locked. One that cannot be written costs the memory, not the result.
        """
        column = column_of(texts)
        _require(ids, column, earliest)
        with held(self.folder / LOCK):
            try:
                try:
                    return self._clusters(self._remembered(), ids, column, earliest)
                except Damaged as error:  # found out on the way
                    return self._clusters(self._anew(error), ids, column, earliest)
            except OSError as error:
                log.warning("the index in %s cannot be kept: %s", self.folder, error)
                self.report = Report(hashed=column.n_unique(), rebuilt=str(error))
                return self._without(ids, column, earliest)

    def add(self, ids: pl.Series, texts: pl.Series, fetch: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
        """Adds texts to those that the index knows, at a cost that follows the new ones alone.

        A known id with another text is a change: the old text goes. A null text is none, and is passed over.

        Args:
            ids: all different.
            texts: one for each id.
            fetch: gives the texts of known ids, in order; asked for those that may be near-duplicates of new ones.

        Returns:
            a row for each id that has a text, in order: `id`, `cluster_id` (the member of its cluster that the index
            has known longest), `cluster_size` (members).

        Raises:
            RequestError: where ids are null or repeated, or a text that was fetched is not the one that was added.
            GongqingError: where the index is damaged, or of other settings or code: what it knew is not known here.
            OSError: where the folder cannot be written; the index is what it was.
        """
        column = column_of(texts)
        _require(ids, column)
        ids = ids.cast(pl.String).filter(column.is_not_null())
        column = column.drop_nulls()
        if ids.n_unique() != len(ids):
            raise RequestError("an id stands twice among those to add", remedy="give each text once")
        with held(self.folder / LOCK):
            self.report = Report()
            try:
                return self._add(self._opened(), ids, column, fetch)
            except Damaged as error:
                raise GongqingError(
                    f"the index can be added to no more: {error}",
                    where=self.folder,
                    remedy="make it anew with all texts (Index.clusters), or remove the folder and add them again",
                ) from error

    def forget(self, ids: pl.Series) -> pl.Series:
        """Removes ids, and every byte of the texts that no other id bears; what is damaged goes as a whole.

        Texts that were linked with one of them go as well, and are hashed again when next seen, for without it they may
        be no cluster. Whoever uses `add` adds them again.

        Returns:
            the ids of those others.

        Raises:
            OSError: where the folder cannot be written: then nothing is forgotten yet.
        """
        nobody = pl.Series("id", [], pl.String)
        self.report = Report()
        if not self.folder.is_dir():
            return nobody
        with held(self.folder / LOCK):
            try:
                state = Remembered.load(self.folder)
                state.sweep()
                return self._forget(state, ids.cast(pl.String))
            except Damaged as error:
                clear(self.folder)
                self.report = Report(rebuilt=str(error), saved=True)
                return nobody

    def _clusters(
        self, state: Remembered, ids: pl.Series, texts: pl.Series, earliest: pl.Series | None
    ) -> pl.DataFrame:
        n = len(texts)
        rows = np.flatnonzero(texts.is_not_null().to_numpy()).astype(np.uint32)
        there = texts if len(rows) == n else texts.gather(rows)
        found = digests(there, state.seeds)
        numbers, new, met = numbered(state.digests, found)
        gone = ~met
        if gone.any():
            state.keep(~_linked(state, gone))
            numbers, new, met = numbered(state.digests, found)
        known = len(state)
        places = _first_places(numbers, known + len(new))
        self._learn(state, found[new], there.gather(new), lambda wanted: there.gather(places[wanted]))

        # Numbers back to rows: of each row the first one with the same text, and the first one of its component.
        row_of = rows[places]
        number_of = np.zeros(n, np.uint32)
        number_of[rows] = numbers
        firsts = np.arange(n, dtype=np.uint32)
        components = firsts.copy()
        firsts[rows] = row_of[numbers]
        components[rows] = row_of[state.components()[numbers]]

        def order(crowded: Words) -> pl.DataFrame:
            length = texts.gather(crowded).str.len_chars()
            when = pl.Series([None]).new_from_index(0, len(crowded)) if earliest is None else earliest.gather(crowded)
            return pl.DataFrame({"earliest": when, "length": length, "id": ids.gather(crowded)})

        asked = 0

        def similarity(survivors: Words, others: Words) -> NDArray[np.float64]:
            nonlocal asked
            survivor, other = number_of[survivors], number_of[others]
            fresh = state.survivors[other] != survivor
            asked = int(fresh.sum())
            state.similarities[other[fresh]] = _similarities(texts, survivors[fresh], others[fresh])
            state.survivors[other] = survivor
            return state.similarities[other]

        found_clusters = clusters(components, firsts, order, similarity)
        members = ids.gather(rows).cast(pl.String), numbers.astype(np.uint32)
        changed = bool(gone.any() or len(new) or asked or self.report.rebuilt) or not _same(state.members(), members)
        if changed:
            state.bear(*members)
            state.save()
        self.report = replace(self.report, known=known, hashed=len(new), gone=int(gone.sum()), saved=changed)
        return found_clusters

    def _add(
        self, state: Remembered, ids: pl.Series, texts: pl.Series, fetch: Callable[[pl.Series], pl.Series]
    ) -> pl.DataFrame:
        given = len(ids)
        numbers, new, _ = numbered(state.digests, found := digests(texts, state.seeds))
        met, changed = _met(state, ids, numbers)
        if len(changed):
            forgotten = self._forget(state, changed, save=False)
            met = met.filter(~met.is_in(pl.concat([changed, forgotten]).implode()))
            others = forgotten.filter(~forgotten.is_in(ids.implode()))
            ids, texts = pl.concat([ids, others]), pl.concat([texts, column_of(fetch(others))])
            numbers, new, _ = numbered(state.digests, found := digests(texts, state.seeds))

        bearers, borne = state.members()
        places = _first_places(borne, len(state))

        known = len(state)

        def fetch_known(wanted: NDArray[np.int64]) -> pl.Series:
            of_now = texts.gather(new[wanted[wanted >= known] - known])
            wanted = wanted[wanted < known]
            asked = bearers.gather(places[wanted])
            fetched = column_of(fetch(asked)) if len(asked) else asked
            if (
                len(fetched) != len(asked)
                or fetched.null_count()
                or (digests(fetched, state.seeds) != state.digests[wanted]).any()
            ):
                raise RequestError(
                    "a text that was fetched is not the one that was added under its id",
                    where=self.folder,
                    remedy="add the changed text, or forget its id",
                )
            return pl.concat([fetched, of_now])

        self._learn(state, found[new], texts.gather(new), fetch_known)
        fresh = ~ids.is_in(met.implode())
        state.bear(ids.filter(fresh), numbers.astype(np.uint32)[fresh.to_numpy()], too=True)
        state.save()
        self.report = replace(self.report, known=known, hashed=len(new), saved=True)

        bearers, borne = state.members()
        components = state.components()
        sizes = np.bincount(components[borne], minlength=len(state)).astype(np.uint32)
        of_given = components[numbers[:given]]
        longest_known = bearers.gather(_first_places(borne, len(state))[of_given])
        return pl.DataFrame({"id": ids[:given], "cluster_id": longest_known, "cluster_size": sizes[of_given]})

    def _forget(self, state: Remembered, ids: pl.Series, *, save: bool = True) -> pl.Series:
        bearers, borne = state.members()
        leaving = bearers.is_in(ids.implode()).to_numpy()
        gone = np.zeros(len(state), np.bool_)
        gone[borne[leaving]] = True
        gone[borne[~leaving]] = False  # another id bears it
        linked = _linked(state, gone)
        numbers = state.keep(~linked)
        staying = ~leaving & ~linked[borne]
        if leaving.any():
            state.bear(bearers.filter(staying), numbers[borne[staying]])
            if save:
                state.save()
        self.report = replace(self.report, gone=int(gone.sum()), saved=bool(leaving.any()))
        return bearers.filter(~leaving & ~staying).alias("id")

    def _learn(self, state: Remembered, new: Keys, texts: pl.Series, fetch: Fetch) -> None:
        """Adds distinct new texts, with their digests, and links them with each other and with known ones.

        `fetch` gives the texts of known ones by their numbers, which rise.
        """
        for start in range(0, len(new), BLOCK):
            block = texts[start : start + BLOCK]
            keys = self._keys(block)
            state.links = np.concatenate([state.links, self._links(state, block, keys, fetch)])
            state.append(new[start : start + BLOCK], keys)

    def _links(self, state: Remembered, texts: pl.Series, keys: Keys, fetch: Fetch) -> Words:
        """The links that new texts make, by the kernels of a full run: uint32 [m, 2], numbers.

        New texts are compared as in a full run; with known ones in pairs, since those have been compared with each
        other. Where pairs would be too many, all texts of all buckets are compared as in a full run.
        """
        pairs, crowd = state.candidates(keys, MOST_PAIRS)
        left, right = (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)
        known = np.unique(right) if crowd is None else np.flatnonzero(crowd)
        others = fetch(known) if len(known) else texts.clear()
        data, offsets = buffers(pl.concat([texts, others]))
        # Here new texts are counted from 0, and known ones after them.
        first = len(texts)
        numbers = np.concatenate([len(state) + np.arange(first), known]).astype(np.uint32)
        parents = singletons(len(numbers))
        _, representatives, place = np.unique(state.components()[known], return_index=True, return_inverse=True)
        unite_pairs(
            parents,
            np.arange(first, len(numbers), dtype=np.uint32),
            (first + representatives[place]).astype(np.uint32),
        )
        if crowd is None:
            for of_band in keys:
                link(data, offsets, runs(of_band), self._threshold, parents)
            two = np.stack([left, first + np.searchsorted(known, right)], axis=1).astype(np.uint32)
            link(data, offsets, Runs(two.ravel(), np.arange(0, 2 * len(two) + 1, 2)), self._threshold, parents)
        else:
            for of_band in np.concatenate([keys, self._keys(others)], axis=1):
                link(data, offsets, runs(of_band), self._threshold, parents)
        links: Words = np.stack([numbers, numbers[roots(parents)]], axis=1)
        linked: Words = links[links[:, 0] != links[:, 1]]
        return linked

    def _keys(self, texts: pl.Series) -> Keys:
        return band_keys(*buffers(texts), self._mode, self._num_perm, self._bands, self._seed, threads=self._threads)

    def _remembered(self) -> Remembered:
        self.report = Report()
        try:
            return self._opened()
        except Damaged as error:
            return self._anew(error)

    def _opened(self) -> Remembered:
        """The state in the folder, or an empty one where there is none. Raises Damaged where it is of no use."""
        try:
            state = Remembered.load(self.folder, self._made_by())
        except Missing as error:
            return self._anew(error)
        state.sweep()
        return state

    def _anew(self, error: Damaged) -> Remembered:
        if not isinstance(error, Missing):
            log.warning("the index in %s is made anew: %s", self.folder, error)
        self.report = Report(rebuilt=str(error))
        return Remembered(self.folder, self._made_by())

    def _made_by(self) -> dict[str, object]:
        """All that decides keys, links and digests. Another value of any: another index."""
        return {
            "mode": self._mode,
            "num_perm": self._num_perm,
            "bands": list(self._bands),
            "seed": self._seed,
            "threshold": self._threshold,
            "code": code_version("pipelines.dedup.index"),
            "polars": pl.__version__,
        }

    def _without(self, ids: pl.Series, texts: pl.Series, earliest: pl.Series | None) -> pl.DataFrame:
        return find_duplicates(
            texts,
            self._threshold,
            self._mode,
            earliest=earliest,
            ids=ids,
            num_perm=self._num_perm,
            bands=self._bands,
            seed=self._seed,
            threads=self._threads,
        )


def _require(ids: pl.Series, texts: pl.Series, earliest: pl.Series | None = None) -> None:
    if earliest is not None and len(earliest) != len(texts):
        raise RequestError(
            f"{len(texts)} texts cannot be ordered by a series of {len(earliest)}", remedy="give one of each"
        )
    if len(ids) != len(texts):
        raise RequestError(f"{len(ids)} ids cannot belong to {len(texts)} texts", remedy="give one id for each text")
    if ids.null_count():
        raise RequestError("an id is null", remedy="give every text an id, a null text as well")


def _first_places(numbers: NDArray[np.integer], n: int) -> NDArray[np.int64]:
    """Where each of the numbers 0 … n - 1 stands first."""
    places = np.zeros(n, np.int64)
    places[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return places


def _met(state: Remembered, ids: pl.Series, numbers: NDArray[np.int64]) -> tuple[pl.Series, pl.Series]:
    """Those of `ids` that are known, and those among them that bear other texts than those of these numbers."""
    bearers, borne = state.members()
    again = bearers.is_in(ids.implode())
    before = pl.DataFrame({"id": bearers.filter(again), "before": borne[again.to_numpy()]})
    now = pl.DataFrame({"id": ids, "now": numbers})
    changed = before.join(now, on="id").filter(pl.col("before") != pl.col("now"))["id"]
    return before["id"], changed


def _linked(state: Remembered, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The chosen texts and all that are linked with them, bool [n]."""
    components = state.components()
    touched = np.zeros(len(state), np.bool_)
    touched[components[chosen]] = True
    return touched[components]


def _similarities(texts: pl.Series, left: Words, right: Words) -> NDArray[np.float64]:
    wanted, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    ours, theirs = np.split(places.astype(np.uint32), [len(left)])
    return similarities(*buffers(texts.gather(wanted)), ours, theirs)


def _same(one: tuple[pl.Series, Words], other: tuple[pl.Series, Words]) -> bool:
    return len(one[0]) == len(other[0]) and np.array_equal(one[1], other[1]) and bool((one[0] == other[0]).all())
