"""What a newcomer does, in order, from the README and the pages it leads to: the demo, the commands, the web UI."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from web_ui import chromium, wait_for, web_ui

from pipelines import settings
from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("newcomer")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
USING, SETTINGS, PYTHON = (
    (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("using", "settings", "python")
)
BIN = Path(sys.executable).parent
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GONGQING_", "COV"))}
    return {**kept, "GONGQING_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}"}


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


def _commands(page: str) -> list[str]:
    """Without what a comment says of them."""
    lines = [line for block in _blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ").split("  # ")[0].rstrip() for line in lines]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home after `make demo`, and what it printed."""
    home = tmp_path_factory.mktemp("demo-home")
    ran = subprocess.run(["make", "demo"], cwd=ROOT, env=_environment(home), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return home, ran.stdout


def test_the_demo_makes_every_table_and_says_where_to_look(demo):
    _, printed = demo
    annotated = ("coherent_dialogues", "topics", "emotions", "ecot_chains", "coe_chains", "cer_candidates")
    for table in ("clean_posts", "unique_dialogues", "splits", "sampled_turns", *annotated, "grpo_ecot", "grpo_coe"):
        assert re.search(rf"│ {table} +│", printed), table
    assert "invented" in printed
    assert "gongqing ui" in printed


def test_the_demo_can_be_run_again_and_changes_nothing(demo):
    home, _ = demo

    def tables() -> str:
        listed = [BIN / "gongqing", "tables", "--versions", "--json"]
        return subprocess.run(listed, env=_environment(home), capture_output=True, text=True, check=True).stdout

    before = tables()
    again = subprocess.run(["make", "demo"], cwd=ROOT, env=_environment(home), capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "everything is up to date" in again.stdout
    assert tables() == before


def test_every_command_of_the_manual_works(tmp_path):
    """As one shell session."""
    home = tmp_path / "corpus"
    script = [line.replace("~/corpus", str(home)) for line in _commands(USING)]
    assert sum(line.startswith("gongqing ") for line in script) >= 9
    ran = subprocess.run(
        ["bash", "-euxc", "\n".join(script)], cwd=ROOT, env=_environment(home), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "everything else is up to date" in ran.stdout, "what needs a model waits"
    assert "same text as sample:p012" in ran.stdout


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [line.removeprefix("make ") for line in _commands(README)]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_settings_of_the_manual_are_the_defaults(tmp_path):
    (block,) = _blocks(SETTINGS, "toml")
    (tmp_path / "gongqing.toml").write_text(block, encoding="utf-8")
    assert settings.load(tmp_path).model_dump() == settings.Settings().model_dump()
    assert set(tomllib.loads(block)) == set(settings.Settings.model_fields)


def test_the_python_of_the_manual_runs(demo):
    home, _ = demo
    blocks = _blocks(PYTHON, "python")
    assert len(blocks) == 2
    for block in blocks:
        subprocess.run([sys.executable, "-W", "error", "-c", block], cwd=home, env=_environment(home), check=True)


def test_every_command_line_command_is_in_the_manual():
    from pipelines.cli import app

    assert app.registered_commands
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert re.search(rf"gongqing {name}|make {name}", README + USING), name


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", *DOCS])
def test_every_link_of_a_page_leads_somewhere(page: str):
    linked = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert not [link for link in linked if "://" not in link and not ((ROOT / page).parent / link).exists()]


def test_both_readmes_say_the_same_commands_and_lead_to_the_same_pages():
    chinese = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
    assert _commands(chinese) == _commands(README)
    assert {*re.findall(r"\]\((docs/[^)]+)", chinese)} == {*re.findall(r"\]\((docs/[^)]+)", README)}


# The web UI


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    """Chromium, headless, of the machine."""
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.mark.timeout(600)
def test_three_assets_look_right_in_a_real_browser(demo, browser, tmp_path):
    """Columns with descriptions, counts and drop reasons can be read, and the picture shows."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    home, _ = demo
    listed = subprocess.run(
        [BIN / "gongqing", "tables", "--json"], env=_environment(home), capture_output=True, text=True, check=True
    )
    counts = {row["table"]: (row["rows"], row["dropped"]) for row in json.loads(listed.stdout)}
    expected = {
        "clean_posts": ("share of Chinese characters among those of text", "too_short"),
        "unique_posts": ("posts that were one and the same", "duplicate"),
        "sampled_turns": ("p(i) of C eq. 1 for this round", "not_sampled"),
    }
    with web_ui(home, environment=_environment(home)) as ui:
        url = ui.url
        browser.get(ui.address)
        for table, (description, reason) in expected.items():
            rows, dropped = counts[table]
            browser.get(f"{url}/assets/{table}?view=overview")
            wait_for(browser, description)
            wait_for(browser, f"Row count\n{rows}")
            browser.get(f"{url}/assets/{table}?view=events")
            wait_for(browser, reason)
            wait_for(browser, f"dropped\n{dropped}")
            browser.find_element(By.XPATH, "//a[contains(text(), '[Show Markdown]')]").click()
            WebDriverWait(browser, 60).until(
                lambda page: any(
                    image.get_property("naturalWidth") > 300
                    for image in page.find_elements(By.XPATH, "//img[starts-with(@src, 'data:image/png')]")
                ),
                "the picture does not show",
            )
            browser.save_screenshot(str(tmp_path / f"{table}.png"))
            assert (tmp_path / f"{table}.png").stat().st_size > 20_000
