"""Prints the content version of every table that samples and real sets make: what a refactoring must keep.

    python -m tools.content_versions > before.txt    # then change code that should decide nothing
    python -m tools.content_versions | diff before.txt -

Needs ../shared/data. It knows the command line alone, so that it runs on any tree. What a crawl brings bears its time,
so the samples are imported here.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
REAL = {
    "smile": "zh_multiturn/smile_raw.tar.gz",
    "cpsycoun": "zh_multiturn/cpsycound_raw.tar.gz",
    "emollm": "noisy/emollm_aiwei_part.json",
    "psyqa": "zh_qa/PsyQA_example.json",
    "qa_csv": "zh_qa/medical_qa_gb18030.csv",
    "esconv": "en_strategy/FailedESConv.json",
}


def main() -> None:
    """Makes a home of the samples, in both scripts, and one of real sets; a line a table of each."""
    with tempfile.TemporaryDirectory() as folder:
        for name, imports in {"samples": _samples(Path(folder)), "real": _real()}.items():
            home = Path(folder) / name
            for arguments in imports:
                _run(home, "import", *arguments)
            _run(home, "refresh")
            for row in sorted(json.loads(_run(home, "tables", "--json")), key=lambda row: (row["table"], str(row))):
                values = (row[key] for key in ("table", "partition", "version", "rows", "dropped"))
                sys.stdout.write(" ".join([name, *(str(value) for value in values)]) + "\n")


def _samples(folder: Path) -> Iterator[tuple[str | Path, ...]]:
    from opencc import OpenCC

    for kind in ("posts", "dialogues"):
        path, mapping = (ROOT / "samples" / f"{kind}.{ending}" for ending in ("jsonl", "toml"))
        traditional = folder / path.name
        traditional.write_text(OpenCC("s2t").convert(path.read_text(encoding="utf-8")), encoding="utf-8")
        yield "mapped", path, "--mapping", mapping, "--as", "sample"
        yield "mapped", traditional, "--mapping", mapping, "--as", "sample_hant"


def _real() -> Iterator[tuple[str | Path, ...]]:
    for reader, path in REAL.items():
        yield reader, SHARED / path


def _run(home: Path, *arguments: str | Path) -> str:
    environment = os.environ | {"GONGQING_HOME": str(home), "GONGQING_AUTHOR_KEY": "content-versions-0123456789"}
    command = [Path(sys.executable).with_name("gongqing"), *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    main()
