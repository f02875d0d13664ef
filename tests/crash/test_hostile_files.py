"""Files that mean harm, imported by the command itself: refused or dropped in words, within bounded memory."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import measured

pytestmark = pytest.mark.drill("data")

MB = 1 << 20
MOST = 600  # MB that the command has, Dagster and polars within
TALK = json.dumps([{"conversation": [{"input": "我失眠三周了。", "output": "我在听。"}]}], ensure_ascii=False).encode()


def require_dropped(home: Path, path: Path, dropped: int) -> None:
    """One record is kept, the others are dropped in words, and the memory is bounded."""
    code, printed, megabytes = measured(home, "import", "emollm", str(path))
    assert code == 0, printed
    assert f"1 kept, {dropped} dropped" in printed
    assert "too_long" in printed
    assert megabytes < MOST


def tar_of_gz(path: Path, data: bytes, bombs: int) -> None:
    with tarfile.open(path, "w") as archive:
        for n in range(bombs + 1):
            packed = gzip.compress(data if n else TALK, 1)
            entry = tarfile.TarInfo(f"{n}.json.gz")
            entry.size = len(packed)
            archive.addfile(entry, io.BytesIO(packed))


def zipped(path: Path, data: bytes, bombs: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for n in range(bombs + 1):
            archive.writestr(f"{n}.json", data if n else TALK)


@pytest.mark.parametrize(("make", "suffix"), [(tar_of_gz, "tar"), (zipped, "zip")])
def test_of_an_archive_one_file_at_a_time_is_in_memory(tmp_path: Path, make: Callable[..., None], suffix: str) -> None:
    """Three files of 100 MB weigh less than 2 MB, are no records, and cost the fourth nothing."""
    path = tmp_path / f"bomb.{suffix}"
    make(path, b"0" * (100 * MB), 3)
    assert path.stat().st_size < 2 * MB
    require_dropped(tmp_path / "home", path, 3)


def test_a_record_of_fifteen_million_characters_is_a_drop(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    huge = json.dumps({"conversation": [{"input": "长" * 15_000_000, "output": "嗯"}]}, ensure_ascii=False)
    path.write_text(json.dumps(json.loads(TALK)[0]) + "\n" + huge + "\n", encoding="utf-8")
    require_dropped(tmp_path / "home", path, 1)
