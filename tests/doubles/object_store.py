"""A storage as an object store offers it: whole objects under flat keys, a put that compares, no renaming."""

import contextlib
import hashlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


class ConnectionLost(Exception):
    """The process can put no more."""


class ObjectStore:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.objects: dict[str, bytes] = {}
        self.puts_left = float("inf")
        self._generations: dict[str, int] = {}
        self._clock = itertools.count(1)

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            yield Path(folder)

    def publish(self, staged: Path, prefix: str, damaged: Callable[[], bool]) -> None:
        manifest = f"{prefix}/manifest.json"
        if manifest in self.objects:
            if not damaged():
                return
            del self.objects[manifest]  # what is half replaced must not look whole
        files = {f"{prefix}/{path.relative_to(staged)}": path for path in staged.rglob("*") if path.is_file()}
        for key in sorted(files, key=lambda key: key == manifest):
            self._put(key, files[key].read_bytes())

    def add(self, staged: Path, key: str) -> None:
        self._put(key, staged.read_bytes())

    def remove(self, key: str) -> None:
        self.objects.pop(key, None)

    def files(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(f"{prefix}/"))

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def swap(self, key: str, old: bytes | None, new: bytes) -> bool:
        if self.objects.get(key) != old:
            return False
        self._put(key, new)
        return True

    def children(self, prefix: str) -> list[str]:
        below = [key.removeprefix(f"{prefix}/") for key in self.objects if key.startswith(f"{prefix}/")]
        return sorted({key.split("/")[0] for key in below if "/" in key})

    def stat(self, key: str) -> tuple[int, int] | None:
        return (len(self.objects[key]), self._generations[key]) if key in self.objects else None

    def sha256(self, key: str) -> str:
        return hashlib.sha256(self.objects[key]).hexdigest()

    def uri(self, key: str) -> str:
        if key not in self.objects:
            return f"objects://{key}"
        path = self.scratch / f"{self.sha256(key)}.parquet"
        path.write_bytes(self.objects[key])
        return str(path)

    def _put(self, key: str, content: bytes) -> None:
        if self.puts_left <= 0:
            raise ConnectionLost(key)
        self.puts_left -= 1
        self.objects[key] = content
        self._generations[key] = next(self._clock)
