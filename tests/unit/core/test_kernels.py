"""A kernel is compiled once, and anew when it or a part of it changes, in whatever file that stands."""

import subprocess
import sys
from pathlib import Path

from pipelines.core import kernels

PART = "from house.core.kernels import part\n\n\n@part\ndef doubled(x):\n    return {}\n"
WHOLE = """from house.core.kernels import kernel
from house.part import doubled


@kernel
def answer(x):
    return doubled(x) + 1


print(answer(20), sum(answer.stats.cache_hits.values()))
"""


def test_a_change_in_one_file_reaches_the_kernels_of_another(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "core").mkdir(parents=True)
    (package / "core" / "kernels.py").write_bytes(Path(kernels.__file__).read_bytes())
    (package / "whole.py").write_text(WHOLE)

    def answered(doubled: str) -> str:
        (package / "part.py").write_text(PART.format(doubled))
        command = ["env", "-u", "NUMBA_CACHE_DIR", sys.executable, "-m", "house.whole"]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    assert answered("2 * x") == "41 0"
    assert answered("2 * x") == "41 1"
    assert answered("x + x + 1") == "42 0"
    assert answered("2 * x") == "41 1"
