"""What a version costs: our store beside plain Parquet and Delta Lake, in the same run.

    python -m benchmarks.store [--rows N] [--rounds N]

Medians. Ratios are of CPU seconds (all threads), to plain `polars.write_parquet` and `scan_parquet`, which flush
nothing to the disk, keep no version and check no byte.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from random import Random

import dataframely as dy
import polars as pl
from deltalake import DeltaTable, write_deltalake
from rich.console import Console
from rich.table import Table

from pipelines.store import Store
from pipelines.store.parquet import version_of, write_parquet
from schemas.table import Dropped
from schemas.tables import TABLES

TABLE = "clean_dialogues"
SCHEMA = TABLES[TABLE]
RESULTS = Path(__file__).parent / "results" / "store.json"


def dialogues(n: int, seed: int = 1) -> pl.DataFrame:
    """`n` invented dialogues of 4 to 12 turns of 10 to 60 characters."""
    random = Random(seed)
    characters = "我最近总是睡不着觉心里很乱不知道该怎么办才好你愿意多说一点吗听起来这段时间真的辛苦了"

    def turn(i: int) -> dict[str, object]:
        return {
            "role": ("seeker", "supporter")[i % 2],
            "text": "".join(random.choices(characters, k=random.randint(10, 60))),
            "strategies": ["Question"] if i % 2 else [],
            "source_strategies": [],
            "emotion": None,
            "feedback": None,
            "origin": "human",
            "media": [],
        }

    turns = [[turn(i) for i in range(2 * random.randint(2, 6))] for _ in range(n)]
    like = SCHEMA.sample(1, generator=dy.random.Generator(seed=seed))
    empty = [pl.lit([], dtype=like.schema[name]).alias(name) for name in ("risk", "pii", "attributes", "lineage")]
    return pl.concat([like.with_columns(empty)] * n, rechunk=True).with_columns(
        source=pl.lit("invented"),
        source_id=pl.int_range(n).cast(pl.String).str.zfill(8),
        dialogue_id=pl.lit("invented:") + pl.int_range(n).cast(pl.String).str.zfill(8),
        turns=pl.Series(turns, dtype=like.schema["turns"]),
        n_rounds=pl.Series([len(one) // 2 for one in turns]),
    )


class Stopwatch:
    """Wall and CPU seconds of each thing that was done, by its name."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = defaultdict(list)
        self.cpu: dict[str, list[float]] = defaultdict(list)

    def __call__(self, name: str, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        self.cpu[name].append(time.process_time() - cpu)
        self.wall[name].append(time.perf_counter() - wall)


def one_round(folder: Path, frame: pl.DataFrame, watch: Stopwatch) -> None:
    """Write and read everything once, in `folder`."""
    plain, delta, root = folder / "plain.parquet", str(folder / "delta"), folder / "store"
    watch("polars write_parquet", lambda: frame.write_parquet(plain))
    watch("deltalake write_deltalake", lambda: write_deltalake(delta, frame))
    watch("Store.write", lambda: Store(root).write(TABLE, frame))
    watch("Store.write, the same content again", lambda: Store(root).write(TABLE, frame))
    ordered = SCHEMA.validate(frame, cast=True).sort(SCHEMA.key())
    watch("  of which the rules of the schema", lambda: SCHEMA.validate(frame, cast=True))
    watch("  of which sorting", lambda: ordered.sort(SCHEMA.key()))
    watch("  of which hashing the rows", lambda: version_of(SCHEMA, TABLE, ordered, Dropped.create_empty()))

    watch(
        "  of which writing Parquet", lambda: write_parquet(folder, "rows/part.parquet", ordered, SCHEMA.arrow_schema())
    )

    store = Store(root)
    watch("polars scan_parquet", lambda: pl.scan_parquet(plain).collect())
    watch("deltalake through polars", lambda: pl.read_delta(DeltaTable(delta)))
    watch("Store.read, first in a process", lambda: store.read(TABLE).collect())
    watch("Store.read, again", lambda: store.read(TABLE).collect())
    watch("  of which verifying the bytes", lambda: Store(root).read(TABLE))
    watch("Store.verify, rows and all", lambda: store.verify(store.version(TABLE)))


def measure(rows: int, rounds: int) -> dict[str, object]:
    frame, watch = dialogues(rows), Stopwatch()
    with tempfile.TemporaryDirectory() as scratch:
        one_round(Path(scratch), frame.head(100), Stopwatch())  # imports and caches
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            one_round(Path(scratch), frame, watch)
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("polars", "pyarrow", "deltalake", "dataframely")},
        "rows": rows,
        "megabytes": round(frame.estimated_size() / 1e6, 1),
        "rounds": rounds,
        "seconds": {
            name: {"wall": statistics.median(watch.wall[name]), "cpu": statistics.median(watch.cpu[name])}
            for name in watch.cpu
        },
    }


def printed(measured: dict[str, object]) -> Table:
    table = Table(title=f"{measured['rows']:,} dialogues, {measured['megabytes']} MB; median of {measured['rounds']}")
    for column in ("", "wall s", "CPU s", "CPU, ratio"):
        table.add_column(column, justify="left" if not column else "right")
    for name, seconds in measured["seconds"].items():
        if name.startswith("polars"):
            base = seconds["cpu"]
            table.add_section()
        table.add_row(name, f"{seconds['wall']:.2f}", f"{seconds['cpu']:.2f}", f"{seconds['cpu'] / base:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    measured = measure(given.rows, given.rounds)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    Console().print(printed(measured), f"written to {RESULTS}")


if __name__ == "__main__":
    main()
