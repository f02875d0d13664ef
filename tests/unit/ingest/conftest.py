"""Files of a test, and the import of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.ingest.importing import Imported, read


@pytest.fixture
def importing(tmp_path: Path) -> Callable[..., Imported]:
    """Writes one file (text, bytes, or anything as JSON), or several by name, and imports them."""

    def run(name: str, content: Any, file: str = "set.json", **settings: Any) -> Imported:
        if isinstance(content, dict) and all(isinstance(key, str) and "." in key for key in content):
            folder = tmp_path / "set"
            for each, inner in content.items():
                _write(folder / each, inner)
            return read(name, folder, **settings)
        return read(name, _write(tmp_path / file, content), **settings)

    return run


def _write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path
