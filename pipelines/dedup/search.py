"""Which texts are nearly the same, for the stages: computed in this process or on Ray, with the same result."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers, strings
from pipelines.core.kernels import Bytes, Keys, Places, Words
from pipelines.dedup.bands import BANDS, band_keys
from pipelines.dedup.duplicates import find_duplicates
from pipelines.dedup.minhash import Mode
from schemas.ids import digest

# texts → a number for each: texts of one cluster have one number.
Search = Callable[[pl.Series], pl.Series]


@contextmanager
def searching(engine: str) -> Iterator[Search]:
    """`name_clusters` by an engine (`pipelines.settings.engine`): `one` is this process; `ray` is connected once."""
    if engine != "ray":
        yield partial(name_clusters, find=partial(find_duplicates, sign=SignedOnce()))
        return
    from pipelines.dedup.on_ray import connected, find_duplicates_on_ray

    with connected():
        yield partial(name_clusters, find=find_duplicates_on_ray)


def name_clusters(texts: pl.Series, find: Callable[..., pl.DataFrame] = find_duplicates) -> pl.Series:
    """The number of each text's cluster of near-duplicates, for these texts alone; null for a null."""
    # In mode "fast": nobody sees a signature here, and every pair is verified whatever made it a candidate.
    return find(texts, mode="fast")["cluster_id"].set(texts.is_null(), None)


class SignedOnce:
    """`band_keys` for one search after another: those of a text that comes again are remembered, the text is not."""

    def __init__(self) -> None:
        self._seeds = secrets.randbits(64), secrets.randbits(64)
        self._known = pl.DataFrame(schema={"one": pl.UInt64, "other": pl.UInt64})
        self._keys = np.empty((BANDS[0], 0), np.uint64)

    def __call__(self, data: Bytes, offsets: Places, mode: Mode, bands: tuple[int, int], *, rows: Words) -> Keys:
        """The keys of `rows`, of which no two have the same text; mode and bands are to be the same each time."""
        texts = strings(data, offsets).gather(rows)
        names = pl.DataFrame(dict(zip(("one", "other"), map(texts.hash, self._seeds), strict=True)))
        known = self._known.with_row_index("place")
        found = names.join(known, on=names.columns, how="left", maintain_order="left")["place"]
        new, places = found.is_null().to_numpy(), found.fill_null(0).to_numpy(writable=True)
        places[new] = np.arange(known.height, known.height + new.sum())
        self._keys = np.hstack([self._keys, band_keys(data, offsets, mode, bands, rows=rows[new])])
        self._known = pl.concat([self._known, names.filter(new)])
        return np.take(self._keys, places, axis=1)


def digests(texts: pl.Series) -> pl.Series:
    """What names a text where the text itself must not be: 16 hex digits each (`schemas.ids.digest`)."""
    data, offsets = buffers(texts)
    of_bytes = memoryview(data.data)
    return pl.Series([digest(of_bytes[start:stop]) for start, stop in pairwise(offsets.tolist())], dtype=pl.String)
