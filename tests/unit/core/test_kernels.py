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


def test_beside_a_source_that_may_not_be_written_the_home_keeps_them_and_without_a_home_nothing_does(tmp_path: Path):
    package = tmp_path / "house"
    (package / "core").mkdir(parents=True)
    (package / "core" / "kernels.py").write_bytes(Path(kernels.__file__).read_bytes())
    (package / "part.py").write_text(PART.format("2 * x"))
    (package / "whole.py").write_text(WHOLE)
    script = "import numba, os; os.access = lambda *_: False; import house.whole"

    def answered(*variables: str) -> str:
        command = [
            "env",
            "-u",
            "NUMBA_CACHE_DIR",
            "-u",
            "GONGQING_HOME",
            *variables,
            sys.executable,
            "-B",
            "-c",
            script,
        ]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    home = tmp_path / "home"
    assert [answered(f"GONGQING_HOME={home}") for _ in range(2)] == ["41 0", "41 1"]
    assert list((home / ".kernels").rglob("*.nbi"))
    assert [answered() for _ in range(2)] == ["41 0", "41 0"]
    assert not list(package.rglob("__pycache__"))
