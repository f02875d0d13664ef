"""What a newcomer does, in order, from the README: the demo, the commands, the web UI in a real browser."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines import settings
from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("newcomer")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GONGQING_", "COV"))}
    return {**kept, "GONGQING_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}"}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def _commands() -> list[str]:
    return [line.removeprefix("$ ") for block in _blocks("console") for line in block.splitlines()]


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


def test_every_command_of_the_readme_works(tmp_path):
    """As one shell session; `make` targets are run by the other tests here and by whoever runs this one."""
    home = tmp_path / "corpus"
    script = [line.replace("~/corpus", str(home)) for line in _commands() if not line.startswith("make ")]
    assert sum(line.startswith("gongqing ") for line in script) >= 9
    ran = subprocess.run(
        ["bash", "-euxc", "\n".join(script)], cwd=ROOT, env=_environment(home), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "everything is up to date" in ran.stdout
    assert "same text as sample:p012" in ran.stdout


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z]+)", README)) - {"and"}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_settings_of_the_readme_are_the_defaults(tmp_path):
    (block,) = _blocks("toml")
    (tmp_path / "gongqing.toml").write_text(block, encoding="utf-8")
    assert settings.load(tmp_path).model_dump() == settings.Settings().model_dump()
    assert set(tomllib.loads(block)) == set(settings.Settings.model_fields)


def test_the_python_of_the_readme_runs(demo):
    home, _ = demo
    blocks = _blocks("python")
    assert len(blocks) == 2
    for block in blocks:
        subprocess.run([sys.executable, "-W", "error", "-c", block], cwd=home, env=_environment(home), check=True)


def test_every_command_line_command_is_in_the_readme():
    from pipelines.cli import app

    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert re.search(rf"gongqing {name}|make {name}", README), name


# The web UI


@contextmanager
def _web_ui(home: Path) -> Iterator[str]:
    """`gongqing ui` on a free port, in a session of its own that is ended as a group."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (home / "ui.log").open("w+", encoding="utf-8")
    server = subprocess.Popen(
        [BIN / "gongqing", "ui", "--port", str(port)],
        cwd=home,  # not the repository: the instance is found all the same
        env=_environment(home),
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            assert server.poll() is None, (home / "ui.log").read_text(encoding="utf-8")
            try:
                with urllib.request.urlopen(f"{url}/server_info", timeout=2):
                    break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.fail((home / "ui.log").read_text(encoding="utf-8"))
        yield url
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        log.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory):
    """Chromium, headless, of the machine."""
    from selenium import webdriver

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--window-size=1500,2400",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(switch)
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


def _wait_for(browser, text: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60).until(
        lambda page: text in page.find_element(By.TAG_NAME, "body").text, f"{text!r} is not on {browser.current_url}"
    )


@pytest.mark.timeout(300)
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
    with _web_ui(home) as url:
        for table, (description, reason) in expected.items():
            rows, dropped = counts[table]
            browser.get(f"{url}/assets/{table}?view=overview")
            _wait_for(browser, description)
            _wait_for(browser, f"Row count\n{rows}")
            browser.get(f"{url}/assets/{table}?view=events")
            _wait_for(browser, reason)
            _wait_for(browser, f"dropped\n{dropped}")
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
