"""Which texts are nearly the same, for the stages: computed in this process or on Ray, with the same result."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa

from pipelines.core.arrow import buffers
from pipelines.core.cluster import connected
from pipelines.dedup.duplicates import ROWS_A_BATCH, find_duplicates_in
from pipelines.dedup.minhash import Mode
from schemas.ids import digest

# texts → a number for each: texts of one cluster have one number.
Search = Callable[[pl.Series], pl.Series]


@contextmanager
def searching(engine: str, scratch: Path | None = None) -> Iterator[Search]:
    """`name_clusters` by an engine (`pipelines.settings.engine`): `one` is this process, which keeps its work in a
    folder; `ray` is connected once.
    """
    if engine != "ray":
        yield partial(name_clusters, find=partial(find_in_batches, scratch=scratch))
        return
    from pipelines.dedup.on_ray import find_duplicates_on_ray

    with connected():
        yield partial(name_clusters, find=find_duplicates_on_ray)


def find_in_batches(texts: pl.Series, mode: Mode, scratch: Path | None = None) -> pl.DataFrame:
    """`find_duplicates` of texts that are not in memory (`pipelines.core.spill`), some at a time."""

    def read(columns: list[str]) -> Iterable[pa.RecordBatch]:
        for some in texts.alias(*columns).to_frame().iter_slices(ROWS_A_BATCH):
            yield from some.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()

    return find_duplicates_in(read, "text", scratch, mode=mode)


def name_clusters(texts: pl.Series, find: Callable[..., pl.DataFrame] = find_in_batches) -> pl.Series:
    """The number of each text's cluster of near-duplicates, for these texts alone; null for a null."""
    # In mode "fast": nobody sees a signature here, and every pair is verified whatever made it a candidate.
    return find(texts, mode="fast")["cluster_id"].set(texts.is_null(), None)


def digests(texts: pl.Series) -> pl.Series:
    """What names a text where the text itself must not be: 16 hex digits each (`schemas.ids.digest`)."""
    data, offsets = buffers(texts)
    of_bytes = memoryview(data.data)
    return pl.Series([digest(of_bytes[start:stop]) for start, stop in pairwise(offsets.tolist())], dtype=pl.String)
