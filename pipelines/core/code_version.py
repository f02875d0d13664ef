"""The version of a step's code: a hash of every file of ours that it rests on.

Nobody has to remember to raise a number. A file that changes without effect costs one more run of a step, and its
content, thus its version, stays the same.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_OURS = ("schemas", "pipelines", "crawlers")
_DATA = {".md", ".toml", ".txt", ".json", ".yaml"}


@cache
def code_version(*modules: str) -> str:
    """12 hex digits over the modules, all modules of ours that they import, and the data files beside them."""
    modules_seen: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        module = _file_of(name)
        if module is None or name in modules_seen:
            continue
        modules_seen[name] = module
        waiting += _imports(module.read_bytes())
    files = {*modules_seen.values(), *(data for module in modules_seen.values() for data in _data_beside(module))}
    hashed = hashlib.sha256()
    for path in sorted(files):
        hashed.update(path.name.encode() + path.read_bytes())
    return hashed.hexdigest()[:12]


def _file_of(module: str) -> Path | None:
    if module.split(".", 1)[0] not in _OURS:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a name inside a module, not a module
        return None
    return Path(spec.origin) if spec and spec.origin else None


@cache
def _imports(source: bytes) -> list[str]:
    """All that a module may import, by name. Many stages rest on one module, and to parse it takes milliseconds."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".", 1)[0] in _OURS]


def _data_beside(path: Path) -> Iterator[Path]:
    """Lexicons and prompts: the data files in the folders below a module's own."""
    if path.parent.name in _OURS:
        return
    for folder in path.parent.iterdir():
        if folder.is_dir():
            yield from (data for data in folder.iterdir() if data.suffix in _DATA)
