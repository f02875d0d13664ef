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
# It attaches a record and changes no function; what the record holds stands in the module of the step.
_DECORATOR = "pipelines.core.stage"
_DATA = {".md", ".toml", ".txt", ".json", ".yaml"}
# Where a statement has statements within, or branches that have some.
_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def code_version(*modules: str) -> str:
    """12 hex digits over the modules, all modules of ours that they import, and the data files beside them."""
    seen, found, waiting = set[str](), set[Path](), list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or name == _DECORATOR:
            continue
        seen.add(name)
        if module := _file_of(name):
            found.add(module)
            waiting += _imports(module.read_bytes())
    files = {*found, *(data for folder in {module.parent for module in found} for data in _data_below(folder))}
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
    names, waiting = [], list[ast.AST](ast.parse(source).body)
    for node in waiting:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:  # statements alone: no expression holds an import
            for within in _STATEMENTS:
                waiting += getattr(node, within, ())
    return [name for name in names if name.split(".", 1)[0] in _OURS]


def _data_below(parent: Path) -> Iterator[Path]:
    """Lexicons and prompts: the data files in the folders below a module's own."""
    if parent.name in _OURS:
        return
    for folder in parent.iterdir():
        if folder.is_dir():
            yield from (data for data in folder.iterdir() if data.suffix in _DATA)
