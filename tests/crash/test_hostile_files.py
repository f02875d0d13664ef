"""Files that mean harm, imported by the command itself: refused or dropped in words, within bounded memory."""

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.settings import ROOT

pytestmark = pytest.mark.drill("data")

MB = 1 << 20
# Measured from outside: the greatest memory that the command ever had.
MEASURE = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"
)
COMMAND = "from pipelines.cli import main; main()"
TALK = json.dumps([{"conversation": [{"input": "我失眠三周了。", "output": "我在听。"}]}], ensure_ascii=False).encode()


def importing(home: Path, path: Path) -> tuple[int, str, int]:
    """Exit code, all that was said, and the greatest memory in bytes."""
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, sys.executable, "-c", COMMAND, "import", "emollm", str(path)],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    *said, peak = ran.stderr.splitlines()
    return ran.returncode, ran.stdout + "\n".join(said), int(peak) * (1 if sys.platform == "darwin" else 1024)


def tar_of_gz(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(f"{name}.gz")
            entry.size = len(packed := gzip.compress(data, 1))
            archive.addfile(entry, io.BytesIO(packed))
    return path.with_suffix(".tar")


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path.with_suffix(".zip")


@pytest.mark.parametrize("make", [tar_of_gz, zipped])
def test_of_an_archive_one_file_at_a_time_is_in_memory(
    tmp_path: Path, make: Callable[[Path, dict[str, bytes]], Path]
) -> None:
    """Three files of 100 MB weigh less than 2 MB, are no records, and cost the fourth nothing."""
    code, said, plain = importing(tmp_path / "plain", make(tmp_path / "plain", {"a.json": TALK}))
    assert code == 0, said
    bomb = b"0" * (100 * MB)
    path = make(tmp_path / "bomb", {"a.json": TALK} | {f"{i}.json": bomb for i in range(3)})
    assert path.stat().st_size < 2 * MB
    code, said, peak = importing(tmp_path / "home", path)
    assert code == 0, said
    assert "1 kept, 3 dropped" in said
    assert "too_long" in said
    assert peak - plain < 350 * MB


def test_a_record_of_fifty_million_characters_is_a_drop(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    huge = json.dumps({"conversation": [{"input": "长" * 50_000_000, "output": "嗯"}]}, ensure_ascii=False)
    path.write_text(json.dumps(json.loads(TALK)[0]) + "\n" + huge + "\n", encoding="utf-8")
    code, said, peak = importing(tmp_path / "home", path)
    assert code == 0, said
    assert "1 kept, 1 dropped" in said
    assert "too_long" in said
    assert peak < 1200 * MB
