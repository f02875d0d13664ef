"""The rules of the house (DESIGN §1, §6) that a reader should not have to check."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import absl.logging

from pipelines.settings import ROOT

TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
SOURCES = [path for path in TRACKED if path.endswith(".py")]


def test_imports_point_upstream():
    """The layers and forbidden modules of pyproject.toml."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout


def test_what_closes_the_output_it_was_imported_with_has_not_that_of_the_tests():
    """`tests/conftest.py` says why."""
    assert absl.logging.get_absl_handler().python_handler.stream is sys.__stderr__


def test_importing_a_package_pulls_in_nothing_heavy():
    packages = ("store", "clean", "ingest", "split", "release", "llm", "cli")
    names = ", ".join(["schemas", "schemas.reasoning", "crawlers", *(f"pipelines.{name}" for name in packages)])
    heavy = "{'polars', 'pandas', 'dagster', 'scipy', 'sklearn', 'openai', 'matplotlib', 'datasketch', 'numpy'}"
    code = f"import sys, {names}; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_benchmarks_name_nothing_that_is_gone():
    """mypy does not read them, and nobody runs them every day."""
    modules = [path for path in SOURCES if re.fullmatch(r"benchmarks/\w+\.py", path)]
    assert modules
    for path in modules:
        importlib.import_module(path.removesuffix(".py").replace("/", "."))


def test_no_two_modules_of_tests_have_one_name():
    """pytest would collect the first of them alone, and fail for the second."""
    names = [Path(path).name for path in SOURCES if re.fullmatch(r"tests/.*/test_\w+\.py", path)]
    assert len(names) > 200
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_no_postponed_annotations_in_defs():
    """`from __future__ import annotations` breaks Dagster's config there (spec/dagster.md)."""
    looked = {path: (ROOT / path).read_text(encoding="utf-8") for path in SOURCES if path.startswith("pipelines/defs/")}
    assert len(looked) > 5
    assert [path for path, source in looked.items() if "from __future__ import annotations" in source] == []


def test_no_error_is_swallowed():
    """No `except Exception: pass`, no bare except."""
    handlers = [
        (f"{path}:{node.lineno}", node)
        for path in SOURCES
        if not path.startswith(("tests/", "benchmarks/"))
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
    ]
    assert len(handlers) > 100
    assert [at for at, node in handlers if node.type is None or [*map(type, node.body)] == [ast.Pass]] == []


def test_nothing_of_a_machine_is_tracked():
    """No registry host, no path of a machine, no state, no large file."""
    hosts = re.compile(r"https?://[a-z.]*(py" r"pi|python" r"hosted|npm" r"js)\.|index-" r"url|/ro" r"ot/|/wo" r"rk/")
    assert TRACKED
    for path in TRACKED:
        file = ROOT / path
        assert file.stat().st_size < 1_000_000, path
        found = hosts.search(file.read_text(encoding="utf-8", errors="replace"))
        assert found is None, f"{path}: {found and found.group()}"


def test_nobody_else_spells_the_paths_of_a_home():
    """They are `pipelines.core.home.Home`'s; settings stand on the same floor, and spell the two files they read."""
    names = ("data", ".locks", ".dagster", "refresh.lock", "ledger.sqlite", "gongqing.toml", "author.key")
    spelled = re.compile(f'(home|folder).* / "({"|".join(names)})"')
    spellers = {
        (path, match[2])
        for path in SOURCES
        if path.startswith("pipelines/") and path != "pipelines/core/home.py"
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines()
        if (match := spelled.search(line))
    }
    assert spellers == {("pipelines/settings.py", "gongqing.toml"), ("pipelines/settings.py", "author.key")}


def test_every_pin_is_exact():
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "requirements").glob("*.txt")}
    assert files
    for name, text in files.items():
        assert re.fullmatch(r"([A-Za-z0-9._-]+==[^ \n]+( ; .*)?\n)+", text), name


def test_ci_runs_the_readmes_tests_and_all_others():
    assert "\nmake test-all\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^\$ make test\b.*\n\$ make test-all\b", readme, re.MULTILINE)


def test_nothing_of_the_default_home_can_be_committed():
    """The home is this folder where nobody says another."""
    paths = ["crawl/xinli001/seen.jsonl", "data/x", "index/x", "ledger.sqlite-wal"]
    paths += ["author.key", "takedown.txt", "gongqing.toml"]
    ignored = subprocess.run(["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ignored.stdout.split() == paths
