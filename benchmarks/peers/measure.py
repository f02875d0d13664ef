"""What the scripts of this folder share: the corpus in, CPU seconds, peak memory and the rows kept out.

Only pyarrow is needed, so that it runs in every peer's environment.
"""

import json
import resource
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WARM_UP = 40


def cpu_seconds() -> float:
    """User and system, of this process and of the children that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peak_megabytes() -> float:
    """The most memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin at what the parent held when it started this process
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS gives bytes


def strings(texts: pa.ChunkedArray) -> list[str]:
    return texts.to_pylist()


def _first(corpus: str) -> pa.ChunkedArray:
    """100 documents: 40, the same without their last character, and half of them again: duplicates of every kind."""
    texts = next(pq.ParquetFile(corpus).iter_batches(WARM_UP, columns=["text"])).column(0).to_pylist()
    return pa.chunked_array([pa.array(texts + [text[:-1] for text in texts] + texts[::2], pa.large_string())])


def run(
    deduplicate: Callable[[Any, str], Iterable[int]],
    form: Callable[[pa.ChunkedArray], Any] = strings,
    extras: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Measure `deduplicate(texts, setting)`, which returns the rows kept.

    Args:
        deduplicate: The work. Called twice: on the first 100 documents, then on all.
        form: From the column of the corpus to what the tool takes; not timed.
        extras: More fields for the result, asked for at the end.
    """
    corpus, result, setting = sys.argv[1:]
    pa.set_cpu_count(1)
    start = cpu_seconds()
    list(deduplicate(form(_first(corpus)), setting))
    warm, floor = cpu_seconds(), peak_megabytes()
    texts = form(pq.read_table(corpus, columns=["text"], pre_buffer=False).column("text"))
    before = cpu_seconds()
    kept = list(deduplicate(texts, setting))
    measured = {
        "documents": len(texts),
        "cpu_seconds": cpu_seconds() - before,
        "warm_up_seconds": warm - start,
        "peak_megabytes": peak_megabytes() - floor,
        "kept": kept,
    }
    Path(result).write_text(json.dumps(measured | extras()))
