"""A step's code version: another as soon as anything that the step rests on is another, and only then."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.core import code_version as module
from pipelines.core.code_version import code_version
from pipelines.flow.runner import code_of
from pipelines.flow.stages import STAGES

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


@pytest.mark.parametrize(
    "name",
    [
        "step.py",
        "lower/helper.py",
        "lower/deep.py",
        "beside.py",
        "inside_a_function.py",
        "lower/lexicons/words.toml",
    ],
)
def test_it_follows_what_the_step_rests_on(tree: Path, name: str):
    before = version_after()
    path = tree / name
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    changed = version_after()
    assert changed != before
    path.write_text(FILES[name], encoding="utf-8")
    assert version_after() == before


@pytest.mark.parametrize(
    "name", ["unrelated.py", "other/room.py", "other/lexicons/words.toml", "lower/lexicons/words.bin", "new.py"]
)
def test_it_does_not_follow_the_rest(tree: Path, name: str):
    before = version_after()
    (tree / name).write_text("changed = 1\n", encoding="utf-8")
    assert version_after() == before


def test_a_new_lexicon_counts_and_so_does_its_name(tree: Path):
    versions = [version_after()]
    new = tree / "lower" / "lexicons" / "more.toml"
    new.write_text("b = 1\n", encoding="utf-8")
    versions.append(version_after())
    new.rename(new.with_name("most.toml"))
    versions.append(version_after())
    new.with_name("most.toml").unlink()
    versions.append(version_after())
    assert len(set(versions)) == 3
    assert versions[0] == versions[3]


def test_it_depends_on_content_alone_not_on_times_or_order(tree: Path):
    before = version_after("tinytree.step", "tinytree.other.room")
    for name in reversed(FILES):
        (tree / name).touch()
    assert version_after("tinytree.other.room", "tinytree.step") == before


# --- the real stages


def version_if(monkeypatch: pytest.MonkeyPatch, ending: str, modules: tuple[str, ...]) -> str:
    """The version that `modules` would have if the file whose path ends so had one line more."""
    read = Path.read_bytes

    def changed(path: Path) -> bytes:
        return read(path) + (b"\n# changed\n" if path.as_posix().endswith(ending) else b"")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", changed)
        return code_version.__wrapped__(*modules)


RESTS_ON = {
    "clean_posts": ["pipelines/text/lexicons/risk.toml", "pipelines/text/keys.py", "schemas/posts.py"],
    "clean_dialogues": ["pipelines/text/lexicons/risk.toml", "pipelines/text/script.py", "schemas/labels.py"],
    "unique": ["pipelines/dedup/merge.py", "pipelines/split/splits.py", "pipelines/text/keys.py"],
    "sampled_turns": ["pipelines/split/gaussian.py", "schemas/ids.py"],
    "grpo_ecot": [
        "pipelines/trainsets/prompts/ecot.md",
        "pipelines/trainsets/prompt_sets.py",
        "pipelines/llm/prompts.py",
    ],
    "grpo_coe": ["pipelines/trainsets/prompts/coe.md"],
    "grpo_cer": ["pipelines/trainsets/prompts/cer.zh.md", "schemas/labels.py"],
    "sft_cer": ["pipelines/trainsets/prompts/cer.en.md", "pipelines/rewrite/scripts.py", "schemas/reasoning.py"],
    "rm_triplets": [
        "pipelines/trainsets/negatives.py",
        "pipelines/split/eligible.py",
    ],
    "rm_unified": ["pipelines/judge/prompts/rm_unified.zh.md", "pipelines/judge/turns.py"],
}


@pytest.mark.parametrize("name", RESTS_ON)
def test_a_stage_follows_its_rules_its_lexicons_and_its_prompts(monkeypatch: pytest.MonkeyPatch, name: str):
    [stage] = [stage for stage in STAGES if stage.name == name]
    assert len(code_of(stage)) == 12
    changed = [version_if(monkeypatch, path, (stage.function.__module__,)) for path in RESTS_ON[name]]
    assert len({code_of(stage), *changed}) == len(changed) + 1


def test_a_stage_does_not_follow_another_room(monkeypatch: pytest.MonkeyPatch):
    [stage] = [stage for stage in STAGES if stage.name == "sampled_turns"]
    for path in ("pipelines/trainsets/prompt_sets.py", "pipelines/cli/app.py", "pipelines/text/lexicons/risk.toml"):
        assert version_if(monkeypatch, path, (stage.function.__module__,)) == code_of(stage)
