"""`gongqing ui` as a process of its own, and a real browser to look at it with."""

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import HTTPCookieProcessor, Request, build_opener

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


_SPAN = 10  # a server of several projects takes the ports that follow, one a project
_FIRST = 20_000 + 1000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 12)  # each worker has its own
_begins = itertools.cycle(range(_FIRST, _FIRST + 1000, _SPAN))


def free_port() -> int:
    """A port that is free, as are the nine behind it, and that nobody gets who asks the system for any: it gives those
    from 32768 on, to every connection too, so that one of them could be taken before the server is there.
    """
    return next(port for port in _begins if all(_free(each) for each in range(port, port + _SPAN)))


def _free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return True
    return False


def environment_of(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GONGQING_"))}
    path = f"{GONGQING.parent}:{os.environ['PATH']}"
    return {**kept, "GONGQING_HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": path}


@contextmanager
def web_ui(home: Path) -> Iterator[WebUi]:
    """On a free port, in a session of its own; ended with the block, unless it was ended in it."""
    port, log = free_port(), home / "ui.log"
    with log.open("w+", encoding="utf-8") as words:
        command = [GONGQING, "ui", "--port", str(port)]  # not in the repository: the instance is found all the same
        streams = {"stdout": words, "stderr": subprocess.STDOUT, "start_new_session": True}
        process = subprocess.Popen(command, cwd=home, env=environment_of(home), **streams)
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


def wait_until(ready: Callable[[], Any], patience: float, reason: Callable[[], object] = lambda: "") -> Any:
    """What `ready` gives once it gives something."""
    until = time.monotonic() + patience
    while not (found := ready()):
        assert time.monotonic() < until, reason()
        time.sleep(0.1)
    return found


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    def printed() -> re.Match[str] | None:
        found = re.search(r"^http://\S+/\?token=\S+$", log.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert found or process.poll() is None, log.read_text(encoding="utf-8")
        return found

    return wait_until(printed, _PATIENCE, lambda: log.read_text(encoding="utf-8"))[0]


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


def wait_for(browser: Any, text: str) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    reason = f"{text!r} is not on {browser.current_url}"
    WebDriverWait(browser, 90).until(lambda page: text in page.find_element(By.TAG_NAME, "body").text, reason)


def tree(process: int) -> set[int]:
    """A process with all that it has started, and what those have."""
    children = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            children += map(int, path.read_text().split())
    return {process}.union(*map(tree, children))


def alive(processes: set[int]) -> set[int]:
    """Those that are still there; one that only waits to be asked how it ended is not."""
    found = set()
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}:
                found.add(process)
    return found


def facts_of(process: int, file: str) -> bytes:
    """What Linux says of a process (`cmdline`, `environ`); nothing of one that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/{file}").read_bytes()
    return b""


def command_of(process: int) -> list[str]:
    return facts_of(process, "cmdline").decode().split("\0")


def member(ui: WebUi, command: str) -> int:
    """The one process that the web UI has started by such a command."""
    [process] = [one for one in tree(ui.process.pid) if command in " ".join(command_of(one))]
    return process


_LAUNCH = """mutation { launchRun(executionParams: {selector: {repositoryName: "__repository__", jobName: "JOB",
 repositoryLocationName: "PLACE"}, runConfigData: "{}"}) { __typename } }""".replace("PLACE", ROOT.name)


def launch(ui: WebUi, job: str) -> None:
    """Puts a run of a job into the queue, as its page does."""
    browser = build_opener(HTTPCookieProcessor())
    browser.open(ui.address).close()
    body = json.dumps({"query": _LAUNCH.replace("JOB", job)}).encode()
    asked = Request(f"{ui.url}/graphql", body, {"Content-Type": "application/json", "Origin": ui.url})
    with browser.open(asked) as answer:
        assert json.load(answer)["data"]["launchRun"]["__typename"] == "LaunchRunSuccess"


def wait_until_gone(processes: set[int]) -> None:
    left = lambda: [facts_of(one, "cmdline").decode() for one in alive(processes)]  # noqa: E731
    wait_until(lambda: not alive(processes), 90, left)
