"""What our search adds to the memory of a process, texts read from Parquet batch by batch, band keys kept on the disk.

Called like its neighbours; the setting is the mode. `pass_1_megabytes` is what the peak grew by, after a run over 1,000
documents, until all keys were on the disk; `peak_megabytes` until the end.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from measure import cpu_seconds, peak_megabytes

from pipelines.dedup.duplicates import batches, find_duplicates_in


def main() -> None:
    corpus, result, mode = sys.argv[1:]
    peaks: list[float] = []

    def source(columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from batches(Path(corpus), columns)
        peaks.append(peak_megabytes())

    with tempfile.TemporaryDirectory(dir=Path(result).parent) as folder:
        few = Path(folder) / "few.parquet"
        with pq.ParquetFile(corpus, pre_buffer=False) as file:
            pq.write_table(pa.Table.from_batches([next(file.iter_batches(1000, columns=["text"]))]), few)
        find_duplicates_in(few, "text", Path(folder), mode=mode)
        floor, start = peak_megabytes(), cpu_seconds()
        found = find_duplicates_in(source, "text", Path(folder), mode=mode)
        measured = {
            "documents": len(found),
            "cpu_seconds": cpu_seconds() - start,
            "pass_1_megabytes": peaks[0] - floor,
            "peak_megabytes": peak_megabytes() - floor,
        }
    Path(result).write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
