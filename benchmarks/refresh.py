"""What a refresh costs when everything is new, and when nothing is: the real command, as a person runs it.

    python benchmarks/refresh.py [--repeat 3]

Imports the four public sets of ../shared/data where they are there, the samples otherwise, then times the first
`gongqing refresh` and those after it. CPU seconds; median; the ratio is what counts.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
GONGQING = Path(sys.executable).with_name("gongqing")
SETS = {
    "smile": "zh_multiturn/smile_raw.tar.gz",
    "cpsycoun": "zh_multiturn/cpsycound_raw.tar.gz",
    "psyqa": "zh_qa/PsyQA_example.json",
    "esconv": "en_strategy/FailedESConv.json",
}


def gongqing(home: Path, *arguments: str) -> float:
    """CPU seconds of a call, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "GONGQING_HOME": str(home), "GONGQING_AUTHOR_KEY": "of the benchmark alone"}
    subprocess.run([GONGQING, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _import(home: Path) -> None:
    if SHARED.is_dir():
        for name, path in SETS.items():
            gongqing(home, "import", name, str(SHARED / path))
        return
    for kind in ("posts", "dialogues"):
        path = ROOT / "samples" / f"{kind}.jsonl"
        gongqing(home, "import", "mapped", str(path), "--mapping", str(path.with_suffix(".toml")), "--as", "sample")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    first, again = [], []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _import(home)
        imported = {place.name for place in (home / "data").iterdir()}
        for _ in range(repeat):
            first.append(gongqing(home, "refresh"))
            again.append(gongqing(home, "refresh"))
            for place in (home / "data").iterdir():
                if place.name not in imported:
                    shutil.rmtree(place)
    table = Table(title=f"gongqing refresh ({'the four shared sets' if SHARED.is_dir() else 'the samples'})")
    for name in ("", "CPU s", "ratio"):
        table.add_column(name, justify="left" if not name else "right")
    new, none = statistics.median(first), statistics.median(again)
    table.add_row("everything is new", f"{new:.2f}", f"{new / none:.1f} ×")
    table.add_row("nothing is", f"{none:.2f}", "1 ×")
    Console().print(table)


if __name__ == "__main__":
    main()
