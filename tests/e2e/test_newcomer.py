"""What a newcomer does, in order, from the README and the pages it leads to: the demo, the commands, the web UI."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pages import blocks, text_of
from web_ui import chromium, environment_of, wait_for, web_ui

from pipelines import settings
from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("newcomer")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
USING = text_of("using.md")
BIN = Path(sys.executable).parent


def _commands(page: str) -> list[str]:
    """Without what a comment says of them."""
    found = re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)
    lines = [line for block in found for line in block.splitlines()]
    return [line.removeprefix("$ ").split("  # ")[0].rstrip() for line in lines]


def _run(home: Path, *command: object, cwd: Path = ROOT) -> str:
    """What a command that succeeds prints."""
    environment = {name: value for name, value in environment_of(home).items() if not name.startswith("COV")}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home after `make demo`, and what it printed."""
    home = tmp_path_factory.mktemp("demo-home")
    return home, _run(home, "make", "demo")


def test_the_demo_makes_every_table_says_where_to_look_and_changes_nothing_when_run_again(demo):
    home, printed = demo
    annotated = ("coherent_dialogues", "topics", "emotions", "ecot_chains", "coe_chains", "cer_candidates")
    for table in ("clean_posts", "unique_dialogues", "splits", "sampled_turns", *annotated, "grpo_ecot", "grpo_coe"):
        assert re.search(rf"(?m)^ *{table}(/\S+)? ", printed), table
    assert "invented" in printed
    assert "gongqing ui" in printed
    tables = (BIN / "gongqing", "tables", "--versions", "--json")
    before = _run(home, *tables)
    assert "everything is up to date" in _run(home, "make", "demo")
    assert _run(home, *tables) == before


def test_every_command_of_the_manual_works(tmp_path):
    """As one shell session."""
    home = tmp_path / "corpus"
    script = [line.replace("~/corpus", str(home)) for line in _commands(USING)]
    assert sum(line.startswith("gongqing ") for line in script) >= 9
    printed = _run(home, "bash", "-euxc", "\n".join(script))
    assert "everything else is up to date" in printed, "what needs a model waits"
    assert "same text as sample:p012" in printed


def test_every_command_of_the_first_page_works(demo, tmp_path):
    """On what the demo made; those on a corpus of one's own begin the manual, which is run above."""
    made, look, own = blocks("index.md", "console")
    assert made.strip() == "$ make demo"
    assert _run(demo[0], "bash", "-euxc", look.replace("$ ", "").replace("~/", f"{tmp_path}/"))
    assert (tmp_path / "demo-data" / "README.md").exists()
    lines = [line.removeprefix("$ ") for line in own.splitlines()]
    assert lines
    assert [line for line in lines if line not in _commands(USING)] == []


def test_the_make_targets_of_the_readme_exist_and_the_chinese_one_names_the_same_commands_and_pages():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [line.removeprefix("make ") for line in _commands(README)]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    chinese = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    assert _commands(chinese) == _commands(README)
    pages = {page.replace(".zh.md", ".md") for page in re.findall(r"\]\((docs/[^)]+)", chinese)}
    assert pages == {*re.findall(r"\]\((docs/[^)]+)", README)}


def test_the_settings_of_the_manual_are_the_defaults(tmp_path):
    (block,) = blocks("settings.md", "toml")
    (tmp_path / "gongqing.toml").write_text(block, encoding="utf-8")
    assert settings.load(tmp_path).model_dump() == settings.Settings().model_dump()
    assert set(tomllib.loads(block)) == set(settings.Settings.model_fields)


def test_the_python_of_the_manual_runs(demo):
    home, _ = demo
    found = blocks("python.md", "python")
    assert len(found) == 2
    for block in found:
        _run(home, sys.executable, "-W", "error", "-c", block, cwd=home)


def test_the_drills_run_by_their_name_and_end_with_their_table(tmp_path):
    printed = _run(tmp_path, "make", "drill", "ARGS=tests/unit/core/test_durable.py -p no:cacheprovider")
    assert re.search(r"^sum +2 +2 +0 +0$", printed, re.MULTILINE)


def test_every_command_line_command_is_in_the_manual():
    from pipelines.cli import app

    assert app.registered_commands
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert re.search(rf"gongqing {name}|make {name}", README + USING), name


def test_every_link_of_a_page_leads_somewhere():
    links = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        links += [page.parent / link for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]
    assert links
    assert [link for link in links if not link.exists()] == []


@pytest.mark.timeout(600)
def test_three_assets_look_right_in_a_real_browser(demo, tmp_path):
    """Columns with descriptions, counts and drop reasons can be read, and the picture shows."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    home, _ = demo
    counts = {row["table"]: row for row in json.loads(_run(home, BIN / "gongqing", "tables", "--json"))}
    expected = {
        "clean_posts": ("share of Chinese characters among those of text", "too_short"),
        "unique_posts": ("posts that were one and the same", "duplicate"),
        "sampled_turns": ("p(i) of C eq. 1 for this round", "not_sampled"),
    }
    with chromium(tmp_path / "profile") as browser, web_ui(home) as ui:
        browser.get(ui.address)
        for table, (description, reason) in expected.items():
            browser.get(f"{ui.url}/assets/{table}?view=overview")
            wait_for(browser, description)
            wait_for(browser, f"Row count\n{counts[table]['rows']}")
            browser.get(f"{ui.url}/assets/{table}?view=events")
            wait_for(browser, reason)
            wait_for(browser, f"dropped\n{counts[table]['dropped']}")
            browser.find_element(By.XPATH, "//a[contains(text(), '[Show Markdown]')]").click()
            WebDriverWait(browser, 60).until(
                lambda page: any(
                    image.get_property("naturalWidth") > 300
                    for image in page.find_elements(By.XPATH, "//img[starts-with(@src, 'data:image/png')]")
                ),
                "the picture does not show",
            )
