"""What a search over more texts than memory holds keeps on the disk: arrays that grow at their end, and texts."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.core.arrow import arrow, buffers_of, read_only
from pipelines.core.kernels import Bytes, Places
from pipelines.errors import RequestError, UnreadableFile

# A Parquet file, a folder of such, or a call that gives batches of the columns asked for: the same rows each time.
Source = Path | Callable[[list[str]], Iterable[pa.RecordBatch]]

ROWS_A_BATCH = 8192
READ_AT_ONCE = 1 << 20  # bytes


def batches(source: Source, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a source in order, some columns of them, a batch at a time.

    Raises:
        UnreadableFile: for what is no Parquet file, or has no such column.
    """
    if callable(source):
        yield from source(columns)
        return
    for path in sorted(source.glob("*.parquet")) if source.is_dir() else [source]:
        try:
            # Otherwise a whole group of rows is read ahead, and memory grows with its size.
            with pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_AT_ONCE) as file:
                if unknown := set(columns) - set(file.schema_arrow.names):
                    raise UnreadableFile(f"there is no column {', '.join(sorted(unknown))}", where=path)
                yield from file.iter_batches(ROWS_A_BATCH, columns=columns, use_threads=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise UnreadableFile(f"this cannot be read as Parquet: {error}", where=path) from error


def chosen(source: Source, columns: list[str], mask: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """The rows of a source for which `mask` (bool [n]) is true.

    Raises:
        RequestError: where the source has other than n rows by now.
    """
    seen = 0
    for batch in batches(source, columns):
        yield batch.filter(pa.array(mask[seen : seen + len(batch)]))
        seen += len(batch)
    if seen != len(mask):
        raise RequestError(f"{seen} texts where {len(mask)} were read before", hint="let nobody write meanwhile")


class Spill:
    """Arrays and texts in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Adds to the end of an array."""
        with (self._folder / name).open("ab") as file:
            array.tofile(file)

    def read(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        """An array, whole; empty if nothing was ever added."""
        path = self._folder / name
        return np.fromfile(path, dtype) if path.exists() else np.empty(0, dtype)

    def keep_texts(self, texts: Iterable[pa.Array]) -> tuple[Bytes, Places]:
        """Texts in the form of `pipelines.core.arrow.buffers`, their bytes left on the disk."""
        sizes = [np.zeros(1, np.int64)]
        for some in texts:
            data, offsets = buffers_of(arrow(some))
            self.append("texts", data[offsets[0] : offsets[-1]])
            sizes.append(np.diff(offsets))
        offsets = np.cumsum(np.concatenate(sizes))
        # Nothing cannot be mapped.
        data = np.memmap(self._folder / "texts", np.uint8, "r") if offsets[-1] else np.zeros(0, np.uint8)
        return read_only(np.asarray(data)), read_only(offsets)
