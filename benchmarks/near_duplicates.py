"""Near-duplicates: ours beside datasketch, rensa, text-dedup, datatrove and Data-Juicer, in the same run.

    python -m benchmarks.near_duplicates [--documents 100000] [--repeat 5] [--no-peers] [--no-large]

Speed is documents per CPU-second, user and system, of one thread: the whole job, from texts to the rows kept. Each tool
runs in a process of its own, in turn, and the median counts; slow ones run less often. Missed is the share of the pairs
with J ≥ 0.8 that were both kept; wrong is a document that was removed though none is so similar to it. Memory is what
the peak grew by. `make bench-peers` makes the environments of the peers, which get fewer documents. A second table has
what is asked of ours beside what it reaches.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "benchmarks" / "peers"
RESULTS = ROOT / "benchmarks" / "results" / "near_duplicates.json"
MODES = ("exact", "fast")
PEER_DOCUMENTS = 5_000
TIMES = 10  # what many documents take is measured with as many times the documents
PATIENCE = 600  # seconds a run may take
ONE_THREAD = dict.fromkeys(
    (
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "RAYON_NUM_THREADS",
    ),
    "1",
)
OFFLINE = {"HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}  # a peer may install what it misses


@dataclass
class Tool:
    """One script of peers/ with one of its settings, and what was measured of it."""

    name: str
    script: str
    setting: str
    home: str | None = None  # the environment peers/.venv-home; our own if None
    every: int = 1  # runs in every so-manieth round
    runs: list[dict] = field(default_factory=list)
    failure: str | None = None

    @property
    def title(self) -> str:
        return f"{self.name}, {self.setting}"

    @property
    def python(self) -> Path:
        return PEERS / f".venv-{self.home}" / "bin" / "python" if self.home else Path(sys.executable)

    def median(self, measure: str) -> float:
        return statistics.median(run[measure] for run in self.runs)

    @property
    def speed(self) -> float:
        """Documents per CPU-second."""
        return self.runs[0]["documents"] / self.median("cpu_seconds")


OURS = [Tool("ours", "ours.py", mode) for mode in MODES]
ALWAYS = [
    *OURS,
    Tool("rensa", "rensa_lsh.py", "default"),
    Tool("datasketch", "datasketch_lsh.py", "16x8", every=3),
]
OTHERS = [
    Tool("text-dedup", "text_dedup_minhash.py", "characters", "text-dedup"),
    Tool("text-dedup", "text_dedup_minhash.py", "default", "text-dedup"),
    Tool("datatrove", "datatrove_minhash.py", "characters", "datatrove"),
    Tool("datatrove", "datatrove_minhash.py", "mandarin", "datatrove"),
    Tool("datatrove", "datatrove_minhash.py", "default", "datatrove"),
    Tool("Data-Juicer", "data_juicer_minhash.py", "characters", "data-juicer"),
    Tool("Data-Juicer", "data_juicer_minhash.py", "default", "data-juicer"),
]


def why_not(home: str) -> str | None:
    """Why a peer has no environment; None where it has one."""
    place = PEERS / f".venv-{home}"
    if (place / "why-not.txt").exists():
        return last_words((place / "why-not.txt").read_text()) or "could not be installed"
    return None if (place / ".installed").exists() else "no environment: make bench-peers"


def last_words(text: str) -> str:
    """The last line of a complaint, without the paths of this machine."""
    return re.sub(r"\S*/\S*/\S*", "…", text.strip().rpartition("\n")[2])[:200]


def call(command: list[object], folder: Path) -> str | None:
    """Runs a measuring process with one thread. Returns why it failed, None if it did not."""
    environment = {**os.environ, **ONE_THREAD, **OFFLINE, "NUMBA_CACHE_DIR": str(folder / "numba")}
    try:
        ran = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"still running after {PATIENCE} s"
    if ran.returncode:
        return last_words(ran.stderr) or f"ended with {ran.returncode}"
    return None


@dataclass
class Corpus:
    """Documents in a file, with the pairs of rows that are near-duplicates."""

    path: Path
    pairs: np.ndarray

    @classmethod
    def made(cls, folder: Path, documents: int) -> "Corpus":
        """Built by another process: a child's peak memory starts from its parent's, so this one stays small."""
        path, pairs = folder / f"{documents}.parquet", folder / f"{documents}.npy"
        command = [sys.executable, "-m", "benchmarks.corpus", path, "--documents", str(documents), "--pairs", pairs]
        subprocess.run(command, cwd=ROOT, check=True)
        return cls(path, np.load(pairs))

    def scored(self, measured: dict) -> dict:
        """The measures, with what was kept turned into what was missed and what was wrong."""
        kept = np.zeros(measured["documents"], bool)
        kept[measured.pop("kept")] = True
        similar = np.zeros(len(kept), bool)
        similar[self.pairs] = True
        missed = int(kept[self.pairs].all(axis=1).sum())
        wrong = int((~kept & ~similar).sum())
        return measured | {
            "removed": int((~kept).sum()),
            "missed_pairs": missed,
            "missed_share": missed / max(1, len(self.pairs)),
            "wrongly_removed": wrong,
        }


def run(tool: Tool, corpus: Corpus, folder: Path) -> None:
    """Measures a tool once more; after a failure never again."""
    tool.failure = tool.failure or (why_not(tool.home) if tool.home else None)
    if tool.failure:
        return
    result = folder / "result.json"
    tool.failure = call([tool.python, PEERS / tool.script, corpus.path, result, tool.setting], folder)
    if tool.failure is None:
        tool.runs.append(corpus.scored(json.loads(result.read_text())))


def at_scale(folder: Path, corpus: Corpus, console: Console) -> dict[str, dict]:
    """By mode: what ten times the corpus takes, in one process, with the texts in memory and with them on the disk."""
    many = folder / "many.parquet"
    documents = int(corpus.path.stem)
    command = [sys.executable, "-m", "benchmarks.corpus", many, "--documents", str(documents), "--times", str(TIMES)]
    subprocess.run(command, cwd=ROOT, check=True)
    result = folder / "result.json"
    measured: dict[str, dict] = {}
    for mode in MODES:
        found = measured[mode] = {"documents": documents * TIMES}
        for name, script, path in (
            ("at_once", "ours.py", many),
            ("memory", "ours_memory.py", corpus.path),
            ("memory_of_many", "ours_memory.py", many),
        ):
            console.print(f"{documents * TIMES:,} documents: {name.replace('_', ' ')}, {mode}")
            failure = call([sys.executable, PEERS / script, path, result, mode], folder)
            found[name] = {"failure": failure} if failure else json.loads(result.read_text())
        for name in ("pass_1_megabytes", "peak_megabytes"):
            grown = [found[run].get(name) for run in ("memory", "memory_of_many")]
            found[f"added_{name}"] = None if None in grown else max(0.0, grown[1] - grown[0])
    return measured


def measure(documents: int, repeat: int, peers: bool, scale: bool, console: Console) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        console.print(f"building {documents:,} documents and all their similar pairs …")
        corpus = Corpus.made(folder, documents)
        for i in range(repeat):
            for tool in ALWAYS:
                if i % tool.every == 0:
                    console.print(f"round {i + 1} of {repeat}: {tool.title}")
                    run(tool, corpus, folder)
        if peers:
            few = Corpus.made(folder, min(documents, PEER_DOCUMENTS))
            for tool in OTHERS:
                console.print(tool.title)
                run(tool, few, folder)
        large = at_scale(folder, corpus, console) if scale else {}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "architecture": platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "versions": versions(),
        "similar_pairs": len(corpus.pairs),
        "tools": [summary(tool) for tool in (*ALWAYS, *(OTHERS if peers else []))],
        "large": large,
    }


def versions() -> dict[str, str]:
    pinned = re.compile(r"^(text-dedup|datatrove|py-data-juicer)==(.+)$", re.M)
    peers = (pinned.findall(path.read_text()) for path in sorted(PEERS.glob("*.txt")))
    own = ("datasketch", "rensa", "numba", "numpy", "polars", "pyarrow")
    return {name: version(name) for name in own} | {name: number for found in peers for name, number in found}


def summary(tool: Tool) -> dict:
    described = {"tool": tool.name, "setting": tool.setting}
    if not tool.runs:
        return described | {"failure": tool.failure}
    last = tool.runs[-1]
    return described | {
        "documents": last["documents"],
        "runs": len(tool.runs),
        "documents_per_cpu_second": tool.speed,
        "slowest_and_fastest": [
            last["documents"] / pick(run["cpu_seconds"] for run in tool.runs) for pick in (max, min)
        ],
        "warm_up_seconds": [tool.runs[0]["warm_up_seconds"], min(run["warm_up_seconds"] for run in tool.runs)],
        "peak_megabytes": tool.median("peak_megabytes"),
        **{name: last[name] for name in ("removed", "missed_pairs", "missed_share", "wrongly_removed")},
    }


def speeds(measured: dict) -> Table:
    tools = measured["tools"]
    first = tools[0]
    table = Table(
        title=f"{first.get('documents', 0):,} documents, {measured['similar_pairs']:,} pairs with J ≥ 0.8; one thread",
        caption="median of n runs; warm-up: the first time, with the compiler, and later; "
        f"peers on {min(PEER_DOCUMENTS, first.get('documents', 0)):,} documents",
    )
    for name in ("", "n", "docs/CPU-s", "exact is", "fast is", "missed", "wrong", "MB", "warm-up s"):
        table.add_column(name, justify="right" if name else "left")
    ours = [tool.get("documents_per_cpu_second") for tool in tools[:2]]
    for place, tool in enumerate(tools):
        if place in (len(OURS), len(ALWAYS)):
            table.add_section()
        title = f"{tool['tool']}, {tool['setting']}"
        if "failure" in tool:
            table.add_row(title, "0", f"[yellow]{tool['failure']}")
            continue
        speed = tool["documents_per_cpu_second"]
        table.add_row(
            title,
            str(tool["runs"]),
            f"{speed:,.0f}",
            *(f"{own / speed:.1f} ×" if own and place >= len(OURS) else "" for own in ours),
            f"{tool['missed_share']:.2%}",
            f"{tool['wrongly_removed']:,} of {tool['removed']:,}",
            f"{tool['peak_megabytes']:,.0f}",
            " / ".join(f"{seconds:.1f}" for seconds in tool["warm_up_seconds"]),
        )
    return table


def aims(measured: dict) -> Iterator[tuple[str, str, float | None, str, bool | None]]:
    """What is asked of each mode: the aim, the mode, the figure (None: not measured), how it reads, whether reached."""
    found = {(tool["tool"], tool["setting"]): tool for tool in measured["tools"]}

    def judged(what: str, mode: str, value: float | None, form: str, bound: float, least: bool) -> tuple:
        wanted = f"{'≥' if least else '≤'} {form.format(bound)}"
        reached = None if value is None else (value >= bound if least else value <= bound)
        return f"{what} {wanted}", mode, value, "" if value is None else form.format(value), reached

    for mode, bounds in (("exact", (60, 4)), ("fast", (100, 9))):
        ours = found["ours", mode]
        own = ours.get("documents_per_cpu_second")
        for other, bound in zip((("datasketch", "16x8"), ("rensa", "default")), bounds, strict=True):
            speed = found[other].get("documents_per_cpu_second")
            ratio = own / speed if own and speed else None
            yield judged(f"times {other[0]}", mode, ratio, "{:.1f} ×", bound, least=True)
        yield judged("pairs missed", mode, ours.get("missed_share"), "{:.2%}", 0.001, least=False)
        yield judged("documents wrongly removed", mode, ours.get("wrongly_removed"), "{:,.0f}", 0, least=False)
        many = measured["large"].get(mode, {})
        for what, name in (("pass 1", "added_pass_1_megabytes"), ("all passes", "added_peak_megabytes")):
            aim = f"memory added by {TIMES} times as many, {what}"
            yield judged(aim, mode, many.get(name), "{:.0f} MB", 100, least=False)


def verdicts(measured: dict) -> Table:
    at_once = {mode: many["at_once"] for mode, many in measured["large"].items() if "failure" not in many["at_once"]}
    taken = ", ".join(
        f"{mode} {run['cpu_seconds']:.1f} s of CPU, {run['peak_megabytes']:,.0f} MB" for mode, run in at_once.items()
    )
    table = Table(
        title="What is asked, and what was reached",
        caption=f"{TIMES} times as many documents in one process: {taken}" if taken else None,
    )
    for name in ("mode", "aim", "measured", ""):
        table.add_column(name, justify="right" if name == "measured" else "left")
    words = {True: "[green]reached", False: "[bold red]not reached", None: "[yellow]not measured"}
    mode_before = None
    for aim, mode, _, reads, reached in aims(measured):
        if mode_before not in (None, mode):
            table.add_section()
        table.add_row("" if mode == mode_before else mode, aim, reads, words[reached])
        mode_before = mode
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="run text-dedup, …")
    parser.add_argument("--large", action=argparse.BooleanOptionalAction, default=True, help="ten times as many")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    measured = measure(given.documents, given.repeat, given.peers, given.large, console)
    measured["aims"] = [
        {"aim": aim, "mode": mode, "value": value, "reached": reached}
        for aim, mode, value, _, reached in aims(measured)
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    console.print(speeds(measured), verdicts(measured), f"written to {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
