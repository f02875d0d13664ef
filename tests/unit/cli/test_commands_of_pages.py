"""What stands in the pages for a terminal or a file is what the command line and a home take; tests/e2e/test_pages.py
runs it.
"""

import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path

import pages
import pytest
import typer
from test_examples import command_of

from pipelines.llm.profiles import profiles
from pipelines.settings import ROOT, Settings, load
from pipelines.train.experiment import read_experiment

USAGE_ERROR = typer.BadParameter.__bases__[0]  # typer has it under no name of its own

# Who reads the blocks of a page that are for no shell, and by which words.
READ_BY = {
    ("asking.md", "toml"): ("unit/cli/test_commands_of_pages.py", '"asking.md"'),
    ("calibrating.md", "json"): ("e2e/test_pages.py", 'blocks("calibrating.md", "json")'),
    ("calibrating.md", "toml"): ("unit/cli/test_commands_of_pages.py", '"calibrating.md"'),
    ("how-to.md", "python"): ("verl/test_how_to_page.py", 'blocks("how-to.md", "python")'),
    ("how-to.md", "toml"): ("unit/cli/test_commands_of_pages.py", '"how-to.md"'),
    ("judging.md", "toml"): ("unit/cli/test_commands_of_pages.py", '"judging.md"'),
    ("mapping.md", "toml"): ("unit/ingest/test_mapped.py", 'blocks("mapping.md", "toml")'),
    ("object-storage.md", "toml"): ("unit/store/test_object_storage.py", 'blocks("object-storage.md", "toml")'),
    ("operating.md", "dockerfile"): ("unit/cli/test_commands_of_pages.py", 'blocks("operating.md", "dockerfile")'),
    ("operating.md", "ini"): ("e2e/test_operating_page.py", 'blocks("operating.md", "ini")'),
    ("operating.md", "nginx"): ("e2e/test_operating_page.py", 'blocks("operating.md", "nginx")'),
    ("operating.md", "yaml"): ("e2e/test_postgres.py", 'blocks("operating.md", "yaml")'),
    ("python.md", "python"): ("e2e/test_newcomer.py", 'blocks("python.md", "python")'),
    ("ray.md", "python"): ("e2e/test_on_ray.py", 'blocks("ray.md", "python")'),
    ("reviewing.md", "json"): ("unit/review/test_reviewing_page.py", 'blocks("reviewing.md", "json")'),
    ("settings.md", "toml"): ("e2e/test_newcomer.py", 'blocks("settings.md", "toml")'),
    ("training.md", "toml"): ("unit/cli/test_commands_of_pages.py", 'blocks("training.md", "toml")'),
}


def problem(command: str) -> str | None:
    """Why the command line does not take it."""
    words = [*takewhile(lambda word: word not in {"|", ">", "&&"}, shlex.split(command, comments=True))]
    called, arguments = command_of(words)
    if arguments == words:
        return "no command"
    try:
        with called.make_context("gongqing", arguments):
            return None
    except USAGE_ERROR as error:
        return error.format_message()


def test_every_command_of_a_page_is_one_that_there_is_with_arguments_that_it_takes():
    ours = re.compile(r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?gongqing (.*)")
    found = {(page, match[1]) for page in pages.PAGES for one in pages.commands(page) if (match := ours.match(one))}
    assert len(found) > 100
    assert {one: why for one in found if (why := problem(one[1]))} == {}
    assert problem("refresh --no-such-option") is not None
    assert problem("no-such-command") == "no command"


@pytest.mark.parametrize("page", pages.PAGES)
def test_a_line_with_a_prompt_is_a_command(page: str):
    assert {*pages.prompted(page)} <= {*pages.commands(page)}


def test_every_block_that_is_for_no_shell_is_read_by_a_test():
    found = {(page, language) for page in pages.PAGES for language in pages.languages(page) - {"console", "sh", "text"}}
    assert found == {*READ_BY}
    for test, words in READ_BY.values():
        assert words in (ROOT / "tests" / test).read_text(encoding="utf-8"), test


def test_settings_and_profiles_of_the_pages_are_read_by_a_home(tmp_path: Path):
    names = ("asking.md", "calibrating.md", "how-to.md", "judging.md")
    found = [(page, block) for page in names for block in pages.blocks(page, "toml")]
    found += [("rewriting.md", block) for block in pages.indented("rewriting.md", "[")]
    assert len(found) == 10
    for page, block in found:
        if re.search(r"^(model|base_url) = ", block, re.MULTILINE):
            (tmp_path / "profiles.toml").write_text(block, encoding="utf-8")
            assert {*tomllib.loads(block)} <= {*profiles(tmp_path / "profiles.toml")}, page
        else:
            (tmp_path / "gongqing.toml").write_text(block, encoding="utf-8")
            assert load(tmp_path).model_dump() != Settings().model_dump(), page


def test_the_container_file_installs_what_the_checkout_does_but_for_the_tests():
    """It is built by hand: that takes minutes and a network."""
    [block] = pages.blocks("operating.md", "dockerfile")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("$(STAMP): ")[2].partition("\n\n")[0]
    assert "pip install --no-cache-dir -r requirements/base.txt" in block
    installs = "--no-deps --no-build-isolation -e ."
    assert installs in recipe
    assert installs in block
    places = dict(re.findall(r"^(WORKDIR|USER|VOLUME|ENV) (.*)$", block, re.MULTILINE))
    assert places["ENV"] == f"GONGQING_HOME={places['VOLUME']}"
    assert f"install -d -o {places['USER']} -m 700 {places['VOLUME']}" in block
    assert (ROOT / ".dockerignore").exists()


def test_the_experiment_of_the_page_is_one(tmp_path: Path):
    (tmp_path / "ablations.toml").write_text(*pages.blocks("training.md", "toml"), encoding="utf-8")
    assert len(read_experiment(tmp_path / "ablations.toml").ablations) == 2
