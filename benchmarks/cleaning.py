"""Cleaning: our chain beside Data-Juicer's nearest operators, in the same run.

    python -m benchmarks.cleaning [--documents 100000] [--repeat 5] [--no-peers]

Speed is documents per CPU-second, user and system, of one thread: characters and artefacts, script, language, length,
share of Han, exact duplicates; then the same behind the rules for contact data, and behind those for names and places
too. Each runs in a process of its own, in turn, and the median counts; the first run of a process, with the compiler,
is its warm-up. `make bench-peers` makes Data-Juicer's environment; it gets fewer documents. A second table has what is
asked of ours beside what it reaches. Two threads are compared by the clock, so on a machine that does nothing else.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.near_duplicates import PEERS, ROOT, Tool, call, why_not

RESULTS = ROOT / "benchmarks" / "results" / "cleaning.json"
PEER_DOCUMENTS = 10_000
OURS = [Tool("ours", "ours_cleaning.py", setting) for setting in ("default", "contact", "names", "paper")]
OTHERS = [Tool("Data-Juicer", "data_juicer_cleaning.py", setting, "data-juicer") for setting in ("default", "contact")]
AIMS = {"default": 100_000, "contact": 25_000}
THREADS_AIM = 1.7


def run(tool: Tool, corpus: Path, folder: Path) -> None:
    """Measures a tool once more; after a failure never again."""
    tool.failure = tool.failure or (why_not(tool.home) if tool.home else None)
    if tool.failure is None:
        result = folder / "result.json"
        tool.failure = call([tool.python, PEERS / tool.script, corpus, result, tool.setting], folder)
        if tool.failure is None:
            tool.runs.append(json.loads(result.read_text()))


def by_the_clock(corpus: Path, folder: Path, threads: int) -> float | None:
    """Seconds that the chain takes with so many threads; None where it fails."""
    result = folder / "threads.json"
    command = [sys.executable, PEERS / "ours_cleaning.py", corpus, result, "default"]
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "NUMBA_CACHE_DIR": str(folder / "numba")}
    ran = subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=False)
    return None if ran.returncode else json.loads(result.read_text())["wall_seconds"]


def measure(documents: int, repeat: int, peers: bool, console: Console) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        corpus, few = folder / "corpus.parquet", folder / "few.parquet"
        console.print(f"building {documents:,} documents …")
        command = [sys.executable, "-m", "benchmarks.corpus", corpus, "--documents", str(documents)]
        subprocess.run(command, cwd=ROOT, check=True)
        pl.read_parquet(corpus).head(PEER_DOCUMENTS).write_parquet(few)
        clocks: dict[int, list[float | None]] = {1: [], 2: []}
        for i in range(repeat):
            for tool in OURS:
                console.print(f"round {i + 1} of {repeat}: {tool.title}")
                run(tool, corpus, folder)
            for tool in OTHERS if peers and i == 0 else []:
                console.print(tool.title)
                run(tool, few, folder)
            for threads, clock in clocks.items():
                clock.append(by_the_clock(corpus, folder, threads))
    # The fastest of each, not the median: whatever else runs on the machine only adds to it.
    fastest = [min((one for one in clock if one), default=None) for clock in clocks.values()]
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "architecture": platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "load": os.getloadavg()[1],
        },
        "versions": {name: version(name) for name in ("polars", "numba", "numpy", "pyarrow", "opencc")},
        "tools": [summary(tool) for tool in (*OURS, *(OTHERS if peers else []))],
        "two_threads": None if None in fastest else fastest[0] / fastest[1],
    }


def summary(tool: Tool) -> dict:
    described = {"tool": tool.name, "setting": tool.setting}
    if not tool.runs:
        return described | {"failure": tool.failure}
    first = tool.runs[0]
    steps = {
        name: statistics.median(run["seconds_by_operator"][name] for run in tool.runs) / first["documents"]
        for name in first["seconds_by_operator"]
    }
    return described | {
        "documents": first["documents"],
        "kept": len(first["kept"]),
        "runs": len(tool.runs),
        "documents_per_cpu_second": tool.speed,
        "slowest_and_fastest": [
            first["documents"] / pick(run["cpu_seconds"] for run in tool.runs) for pick in (max, min)
        ],
        "warm_up_seconds": [first["warm_up_seconds"], min(run["warm_up_seconds"] for run in tool.runs)],
        "peak_megabytes": tool.median("peak_megabytes"),
        "microseconds_by_step": {name: 1e6 * one for name, one in steps.items()},
    }


def speeds(measured: dict) -> Table:
    tools = measured["tools"]
    table = Table(title="Cleaning, one thread", caption="median of n runs; warm-up: the first time, and later")
    for name in ("", "n", "documents", "kept", "docs/CPU-s", "ours is", "MB", "warm-up s"):
        table.add_column(name, justify="right" if name else "left")
    own = {tool["setting"]: tool.get("documents_per_cpu_second") for tool in tools[: len(OURS)]}
    for place, tool in enumerate(tools):
        if place == len(OURS):
            table.add_section()
        title = f"{tool['tool']}, {tool['setting']}"
        if "failure" in tool:
            table.add_row(title, "0", f"[yellow]{tool['failure']}")
            continue
        speed = tool["documents_per_cpu_second"]
        ours = own.get(tool["setting"])
        table.add_row(
            title,
            str(tool["runs"]),
            f"{tool['documents']:,}",
            f"{tool['kept']:,}",
            f"{speed:,.0f}",
            f"{ours / speed:.0f} ×" if ours and place >= len(OURS) else "",
            f"{tool['peak_megabytes']:,.0f}",
            " / ".join(f"{seconds:.1f}" for seconds in tool["warm_up_seconds"]),
        )
    return table


def steps(measured: dict) -> Table:
    table = Table(title="Of which, in µs a document")
    table.add_column("")
    ours = [tool for tool in measured["tools"][: len(OURS)] if "failure" not in tool]
    for tool in ours:
        table.add_column(tool["setting"], justify="right")
    for name in dict.fromkeys(name for tool in ours for name in tool["microseconds_by_step"]):
        spent = [tool["microseconds_by_step"].get(name) for tool in ours]
        table.add_row(name, *("" if one is None else f"{one:.1f}" for one in spent))
    return table


def aims(measured: dict) -> Iterator[tuple[str, float | None, str, bool | None]]:
    """What is asked: the aim, the figure (None: not measured), how it reads, and whether it is reached."""
    found = {tool["setting"]: tool.get("documents_per_cpu_second") for tool in measured["tools"][: len(OURS)]}
    for setting, bound in AIMS.items():
        value = found[setting]
        reads = "" if value is None else f"{value:,.0f}"
        yield f"docs/CPU-s, {setting} ≥ {bound:,}", value, reads, None if value is None else value >= bound
    value = measured["two_threads"]
    reads = "" if value is None else f"{value:.2f} ×"
    yield f"two threads ≥ {THREADS_AIM} × one", value, reads, None if value is None else value >= THREADS_AIM


def verdicts(measured: dict) -> Table:
    table = Table(title="What is asked, and what was reached")
    for name in ("aim", "measured", ""):
        table.add_column(name, justify="right" if name == "measured" else "left")
    words = {True: "[green]reached", False: "[bold red]not reached", None: "[yellow]not measured"}
    for aim, _, reads, reached in aims(measured):
        table.add_row(aim, reads, words[reached])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="run Data-Juicer")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    measured = measure(given.documents, given.repeat, given.peers, console)
    measured["aims"] = [{"aim": aim, "value": value, "reached": reached} for aim, value, _, reached in aims(measured)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    console.print(speeds(measured), steps(measured), verdicts(measured), f"written to {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
