"""What the index costs: 1 % of new documents among a million, the index warm, against a full run.

    python -m benchmarks.incremental [--documents N] [--repeat N]

CPU seconds of one thread, in one process, the runs interleaved; medians. Then what pass 1 of a search in bounded memory
adds from a tenth of the documents to all of them, in processes of their own.
"""

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import documents
from pipelines.dedup import find_duplicates
from pipelines.dedup.index import Index
from pipelines.dedup.minhash import Mode

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "incremental.json"
MODES: tuple[Mode, ...] = ("exact", "fast")
NEW = 0.01
ROWS_A_GROUP = 50_000
FULL, BUILD, NOTHING = "full run", "first run", "nothing new"
CLUSTERS, ADD = "1 % new, all rows", "1 % new, these alone"  # Index.clusters, Index.add
CHANGED = "1 % changed"  # old texts go, new ones come


class Stopwatch:
    """CPU seconds of each thing that was done, by its name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def __call__(self, name: str, work: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        start = time.process_time()
        result = work()
        self.seconds[name].append(time.process_time() - start)
        return result


def one_round(texts: pl.Series, mode: Mode, folder: Path, watch: Stopwatch) -> None:
    """Everything once. An index is opened from its folder each time, as a new process would."""
    ids = pl.int_range(len(texts), eager=True).cast(pl.String).str.zfill(9)
    n_known = round(len(texts) * (1 - NEW))
    warm = folder / "warm"
    full = watch(FULL, lambda: find_duplicates(texts, mode=mode, ids=ids))
    watch(BUILD, lambda: Index(warm, mode=mode).clusters(ids[:n_known], texts[:n_known]))
    watch(NOTHING, lambda: Index(warm, mode=mode).clusters(ids[:n_known], texts[:n_known]))

    def copied() -> Index:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        return Index(Path(shutil.copytree(warm, folder / "copy")), mode=mode)

    index = copied()
    found = watch(CLUSTERS, lambda: index.clusters(ids, texts))
    assert found.equals(full), "the index gave another result than a full run"
    index = copied()
    watch(ADD, lambda: index.add(ids[n_known:], texts[n_known:], lambda wanted: texts.gather(wanted.cast(pl.UInt32))))
    n_new = len(texts) - n_known
    changed = pl.concat([texts[n_known:], texts[n_new:n_known]])
    index = copied()
    watch(CHANGED, lambda: index.clusters(ids[:n_known], changed))
    shutil.rmtree(folder / "copy")
    shutil.rmtree(warm)


def pass_1_megabytes(corpus: Path, mode: Mode, folder: Path) -> float:
    """Memory that is added until all keys are on the disk."""
    result = folder / "result.json"
    subprocess.run([sys.executable, HERE / "peers" / "ours_memory.py", corpus, result, mode], check=True)
    return float(json.loads(result.read_text())["pass_1_megabytes"])


def measure(n: int, repeat: int, console: Console) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        console.print(f"building {n:,} documents …")
        table = documents(n)
        # In groups of one size: without a buffer between, Parquet's reader holds a group's column at a time.
        for name, rows in (("few.parquet", n // 10), ("all.parquet", n)):
            pq.write_table(table.slice(0, rows), folder / name, row_group_size=ROWS_A_GROUP)
        texts = pl.Series("text", table.column("text"))
        seconds, memory = {}, {}
        for mode in MODES:
            one_round(texts[:2000], mode, folder, Stopwatch())  # the compiler
            watch = Stopwatch()
            for i in range(repeat):
                console.print(f"{mode}: round {i + 1} of {repeat}")
                one_round(texts, mode, folder, watch)
            seconds[mode] = {name: statistics.median(taken) for name, taken in watch.seconds.items()}
            memory[mode] = [pass_1_megabytes(folder / name, mode, folder) for name in ("few.parquet", "all.parquet")]
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("polars", "numpy", "numba", "pyarrow")},
        "documents": n,
        "rounds": repeat,
        "cpu_seconds": seconds,
        "pass_1_megabytes": memory,
    }


def picture(measured: dict) -> Table:
    n = measured["documents"]
    table = Table(title=f"{n:,} documents; CPU seconds, median of {measured['rounds']} rounds")
    for name in ("", *(part for mode in MODES for part in (mode, "of full"))):
        table.add_column(name, justify="right" if name else "left")
    for name in measured["cpu_seconds"][MODES[0]]:
        cells = []
        for mode in MODES:
            taken = measured["cpu_seconds"][mode]
            cells += [f"{taken[name]:.2f}", f"{taken[name] / taken[FULL]:.1%}"]
        table.add_row(name, *cells)
    table.add_section()
    cells = []
    for mode in MODES:
        few, many = measured["pass_1_megabytes"][mode]
        cells += [f"{few:.0f} → {many:.0f} MB", f"+ {many - few:.0f} MB"]
    table.add_row(f"pass 1, memory: {n // 10:,} → {n:,}", *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    console = Console()
    measured = measure(given.documents, given.repeat, console)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=2) + "\n")
    console.print(picture(measured))


if __name__ == "__main__":
    main()
