"""A step's code version: another as soon as anything that the step rests on is another, and only then."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.core import code_version as module
from pipelines.core.code_version import code_version
from pipelines.flow.runner import code_of
from pipelines.flow.stages import STAGES
from pipelines.settings import ROOT

FILES = {
    "__init__.py": "",
    "step.py": "import json\nfrom numpy import array\nfrom tinytree.lower import helper\nfrom tinytree import beside\n",
    "lower/__init__.py": "",
    "lower/helper.py": "import tinytree.lower.deep\n\nclass One:\n    pass\n",
    "lower/deep.py": "def late():\n    from tinytree import inside_a_function\n",
    "lower/lexicons/words.toml": "a = 1\n",
    "lower/lexicons/words.bin": "b",
    "beside.py": "from tinytree.lower.helper import One\n",
    "inside_a_function.py": "",
    "unrelated.py": "from tinytree import step\n",
    "other/__init__.py": "",
    "other/room.py": "",
    "other/lexicons/words.toml": "a = 1\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small package of ours: `step` rests on `lower.helper`, `beside`, `lower.deep` and what that imports late."""
    root = tmp_path / "tinytree"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "_OURS", ("tinytree",))
    code_version.cache_clear()
    yield root
    code_version.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "tinytree"]:
        del sys.modules[name]


def version_after(*names: str) -> str:
    code_version.cache_clear()
    return code_version(*names or ("tinytree.step",))


def test_it_follows_what_the_step_rests_on_and_not_the_rest(tree: Path):
    before = version_after()
    rests_on = ("step.py", "lower/helper.py", "lower/deep.py", "beside.py", "inside_a_function.py")
    for name in (*rests_on, "lower/lexicons/words.toml"):
        (tree / name).write_text(FILES[name] + "# changed\n", encoding="utf-8")
        assert version_after() != before, name
        (tree / name).write_text(FILES[name], encoding="utf-8")
    others = ("unrelated.py", "other/room.py", "other/lexicons/words.toml", "lower/lexicons/words.bin", "new.py")
    for name in others:
        (tree / name).write_text("changed = 1\n", encoding="utf-8")
        assert version_after() == before, name


def test_a_new_lexicon_counts_and_so_does_its_name_but_neither_times_nor_order(tree: Path):
    names = ("tinytree.step", "tinytree.other.room")
    versions = [version_after(*names)]
    for name in ("more.toml", "most.toml"):
        (tree / "lower" / "lexicons" / name).write_text("b = 1\n", encoding="utf-8")
        versions.append(version_after(*names))
        (tree / "lower" / "lexicons" / name).unlink()
    assert len(set(versions)) == 3
    for name in reversed(FILES):
        (tree / name).touch()
    assert version_after(*reversed(names)) == versions[0]


# --- the real stages

RESTS_ON = {
    "clean_posts": ["text/lexicons/risk.toml", "text/keys.py", "../schemas/posts.py"],
    "unique": ["dedup/unique.py", "split/splits.py", "text/keys.py"],
    "sft_cer": ["trainsets/prompts/cer.en.md", "rewrite/scripts.py", "../schemas/reasoning.py"],
    "rm_unified": ["judge/prompts/rm_unified.zh.md", "judge/turns.py"],
}


@pytest.mark.parametrize("name", RESTS_ON)
def test_a_stage_follows_its_rules_its_lexicons_and_its_prompts_and_neither_other_rooms_nor_its_decorator(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    [stage] = [stage for stage in STAGES if stage.name == name]
    read = Path.read_bytes
    versions = [code_of(stage)]
    assert len(versions[0]) == 12
    for ending in (*RESTS_ON[name], "cli/app.py", "core/stage.py"):
        changed = (ROOT / "pipelines" / ending).resolve()
        assert changed.is_file()
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_bytes", lambda path, changed=changed: read(path) + b"#" * (path == changed))
            versions.append(code_version.__wrapped__(stage.function.__module__))
    assert len(set(versions)) == len(versions) - 2
    assert versions[-2:] == [versions[0]] * 2
