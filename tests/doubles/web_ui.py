"""`gongqing ui` as a process of its own, and a real browser to look at it with."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipelines.settings import ROOT

GONGQING = Path(sys.executable).with_name("gongqing")
_PATIENCE = 300  # seconds until it can be opened, on a machine with much else to do


class WebUi(NamedTuple):
    """One that is served. `address` has the token, `url` has not."""

    process: "subprocess.Popen[bytes]"
    port: int
    address: str
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def environment_of(home: Path) -> dict[str, str]:
    return {**os.environ, "GONGQING_HOME": str(home), "PYTHONPATH": str(ROOT)}


@contextmanager
def web_ui(home: Path, *, environment: Mapping[str, str] | None = None) -> Iterator[WebUi]:
    """On a free port, in a session of its own; ended with the block, unless it was ended in it."""
    port, log = free_port(), home / "ui.log"
    with log.open("w+", encoding="utf-8") as words:
        process = subprocess.Popen(
            [GONGQING, "ui", "--port", str(port)],
            cwd=home,  # not the repository: the instance is found all the same
            env=dict(environment or environment_of(home)),
            stdout=words,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield WebUi(process, port, _address(process, log), log)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=120)
        except subprocess.TimeoutExpired:  # what it has started ends with it
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        written = log.read_text(encoding="utf-8")
        if printed := re.search(r"^(http://\S+/\?token=\S+)$", written, flags=re.MULTILINE):
            return printed.group(1)
        assert process.poll() is None, written
        time.sleep(0.1)
    return pytest.fail(log.read_text(encoding="utf-8"))


@contextmanager
def chromium(profile: Path, *switches: str) -> Iterator[Any]:
    """Chromium of the machine, headless, with a profile of its own."""
    from selenium import webdriver

    found, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not found or not driver:
        pytest.skip("needs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for switch in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--window-size=1500,2400",
        f"--user-data-dir={profile}", *switches,
    ):  # fmt: skip
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield started
    finally:
        started.quit()


def wait_for(browser: Any, text: str, patience: float = 90) -> None:
    """Waits until a text stands on the page."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, patience).until(
        lambda page: text in page.find_element(By.TAG_NAME, "body").text, f"{text!r} is not on {browser.current_url}"
    )


def alive(processes: set[int]) -> set[int]:
    """Those that are still there; one that only waits to be asked how it ended is not."""
    found = set()
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}:
                found.add(process)
    return found


def wait_until_gone(processes: set[int]) -> None:
    until = time.monotonic() + 90
    while left := alive(processes):
        assert time.monotonic() < until, [Path(f"/proc/{one}/cmdline").read_text() for one in left]
        time.sleep(0.1)
