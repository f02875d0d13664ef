"""The strings of a frame, however deep they stand in lists and structs, each with the row that holds it."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.operations.erase.lineage import IDS

Rows = NDArray[np.int64]

# Ids are masked one by one (`pipelines.operations.erase.sieve`), and hashes in `splits` taken out: a row that names
# another quotes nothing. Names of runs, of groups and of rewards are nobody's words. All else counts:
# what many rows have is no trace anyway, and what one alone has leads to it.
_NAMES = frozenset({*IDS, "source_id", "reference_id", "cluster_id", "pool", "members", "run_id", "uid", "rewards"})


def texts(frame: pl.DataFrame) -> Iterator[tuple[Rows, list[str | None]]]:
    """Rows (positions in the frame) and strings of each column that holds some, ids left out."""
    rows = np.arange(frame.height, dtype=np.int64)
    for name in frame.columns:
        column = frame[name].rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        yield from _strings(name, column, rows)


def _strings(name: str, array: pa.Array, rows: Rows) -> Iterator[tuple[Rows, list[str | None]]]:
    if name in _NAMES:
        return
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield rows, array.to_pylist()
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        held = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
        yield from _strings(name, array.flatten(), rows[held])
    elif pa.types.is_struct(kind):
        for place, field in enumerate(kind):
            yield from _strings(field.name, array.flatten()[place], rows)
