"""The web UI is the operator's alone: what a page of somebody else's, a foreign name, another user can do to it.

One `gongqing ui` for most of it, and one Chromium with the operator's cookie in its profile.
"""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
import pytest
from web_ui import GONGQING, WebUi, chromium, environment_of, free_port, wait_for, web_ui

from pipelines.settings import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("web-ui"),
    pytest.mark.timeout(900),
    pytest.mark.drill("web UI"),
]

LAUNCH = """mutation($config: RunConfigData) { launchRun(executionParams: {selector: {repositoryName: "__repository__",
 repositoryLocationName: "LOCATION", jobName: "publish_release"}, runConfigData: $config}) {
 __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
 ... on RunConfigValidationInvalid { errors { message } } } }""".replace("LOCATION", ROOT.name)
CONFIG = {"ops": {"publication": {"config": {"repo": "attacker/loot", "public": True}}}}
# Without variables, as it stands in an address.
BY_GET = "/graphql?query=" + quote(
    LAUNCH.replace("($config: RunConfigData)", "").replace("$config", json.dumps(json.dumps(CONFIG)))
)
READ = "{ assetsOrError { __typename ... on AssetConnection { nodes { key { path } } } } }"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui-home")


@pytest.fixture(scope="module")
def ui(home: Path) -> Iterator[WebUi]:
    with web_ui(home) as served:
        yield served


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """A web server with an empty page, on another port of this machine: under whatever name the browser calls it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><body>a page of somebody else's</body>")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def browser(ui: WebUi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The operator's: it has opened the address that was printed. Foreign names lead to this machine."""
    names = "--host-resolver-rules=MAP evil.example 127.0.0.1,MAP rebind.example 127.0.0.1"
    with chromium(tmp_path_factory.mktemp("chromium"), names) as started:
        started.set_script_timeout(60)
        started.get(ui.address)
        yield started


def runs(home: Path) -> int:
    """How many there are, read from Dagster's own database."""
    with dg.DagsterInstance.from_config(str(home)) as standing:
        return standing.get_runs_count()


def tree(process: int) -> set[int]:
    """A process with all that it has started, and what those have."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(processes: set[int]) -> set[int]:
    """Those that are still there; one that only waits to be asked how it ended is not."""
    found = set()
    for process in processes:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in {"Z", "X"}:
            found.add(process)
    return found


def wait_until_gone(processes: set[int]) -> None:
    until = time.monotonic() + 90
    while left := alive(processes):
        assert time.monotonic() < until, [Path(f"/proc/{one}/cmdline").read_text() for one in left]
        time.sleep(0.1)


def listening(processes: set[int]) -> list[tuple[str, int]]:
    """The addresses on which processes accept TCP connections."""
    sockets = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            try:
                sockets.add(str(descriptor.readlink()))
            except FileNotFoundError:
                continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets:
                address, _, port = cells[1].partition(":")
                packed = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
                family = socket.AF_INET if table == "tcp" else socket.AF_INET6
                found.append((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def member(processes: set[int], command: str) -> int:
    [found] = [one for one in processes if command in Path(f"/proc/{one}/cmdline").read_text().replace("\0", " ")]
    return found


# --- the operator's own window


def test_the_operators_window_shows_the_assets_and_its_address_has_no_token(ui, browser, tmp_path):
    browser.get(ui.address)
    assert browser.current_url.startswith(ui.url)
    assert ui.token not in browser.current_url
    browser.get(f"{ui.url}/assets")
    wait_for(browser, "grpo_cer")
    browser.save_screenshot(str(tmp_path / "assets.png"))
    assert (tmp_path / "assets.png").stat().st_size > 20_000
    refused = [
        line["message"] for line in browser.get_log("browser") if " 403 " in line["message"] or "CSP" in line["message"]
    ]
    assert not refused
    [cookie] = browser.get_cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (f"gongqing-{ui.port}", True, "Strict")
    assert browser.execute_script("return document.cookie") == ""


def test_the_operators_window_launches_a_run_and_follows_it(ui, browser, home):
    browser.get(f"{ui.url}/runs")
    before = runs(home)
    told = browser.execute_async_script(
        """
        const [query, config, done] = arguments;
        const socket = new WebSocket(`ws://${location.host}/graphql`, 'graphql-ws');
        const opened = new Promise(resolve => {
            socket.onopen = () => resolve(true);
            socket.onerror = () => resolve(false);
        });
        fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'},
                           body: JSON.stringify({query, variables: {config}})})
            .then(async answer => done({status: answer.status, body: await answer.json(), opened: await opened}))
            .catch(error => done(String(error)));
        """,
        LAUNCH, json.dumps(CONFIG),
    )  # fmt: skip
    assert told["status"] == 200
    assert told["opened"]
    launched = told["body"]["data"]["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    assert runs(home) == before + 1
    with dg.DagsterInstance.from_config(str(home)) as standing:
        until = time.monotonic() + 240
        while not (run := standing.get_run_by_id(launched["run"]["runId"])).is_finished:
            assert time.monotonic() < until, run.status
            time.sleep(0.5)
        errors = [
            str(one.dagster_event.step_failure_data.error)
            for one in standing.all_logs(run.run_id)
            if one.dagster_event and one.dagster_event.is_step_failure
        ]
    # It came through queue, code location and process to its step, which publishes to nobody that is not named.
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert "'attacker/loot' is none that a job may publish to" in errors[0]


# --- pages of others, in the operator's own browser

ATTACK = """
const [target, byGet, query, config, done] = arguments;
const told = {};
const json = JSON.stringify({query, variables: {config}});
const tried = (name, made) => made.then(value => { told[name] = value; }, error => { told[name] = String(error); });
const loaded = (name, element) => new Promise(resolve => {
    element.onload = () => resolve('loaded'); element.onerror = () => resolve('error');
    document.body.append(element); setTimeout(() => resolve('nothing'), 8000);
}).then(value => { told[name] = value; });
const made = (tag, more) => Object.assign(document.createElement(tag), more);
const include = {credentials: 'include'};
const frame = made('iframe', {name: 'hidden'});
document.body.append(frame);
const post = (action, type) => {
    const form = made('form', {action, method: 'POST', target: 'hidden', enctype: type});
    form.append(made('input', {name: 'query', value: query}));
    document.body.append(form);
    form.submit();
};
post(target + byGet, 'application/x-www-form-urlencoded');
post(target + '/graphql', 'text/plain');
Promise.all([
    tried('get', fetch(target + byGet, include).then(answer => answer.text())),
    tried('read', fetch(target + '/assets', include).then(answer => answer.text())),
    tried('blind get', fetch(target + byGet, {...include, mode: 'no-cors'}).then(answer => answer.type)),
    tried('blind post', fetch(target + byGet, {...include, mode: 'no-cors', method: 'POST', body: json,
        headers: {'Content-Type': 'text/plain'}}).then(answer => answer.type)),
    tried('post', fetch(target + '/graphql', {...include, method: 'POST', body: json,
        headers: {'Content-Type': 'text/plain'}}).then(answer => answer.text())),
    tried('post json', fetch(target + '/graphql', {...include, method: 'POST', body: json,
        headers: {'Content-Type': 'application/json'}}).then(answer => answer.text())),
    tried('beacon', Promise.resolve(navigator.sendBeacon(target + byGet, json))),
    loaded('image', made('img', {src: target + byGet})),
    loaded('own image', made('img', {src: target + '/favicon.png'})),
    loaded('script', made('script', {src: target + byGet})),
    tried('socket', new Promise((resolve, reject) => {
        const socket = new WebSocket(target.replace('http', 'ws') + '/graphql', 'graphql-ws');
        socket.onopen = () => resolve('open');
        socket.onclose = () => reject('closed');
    })),
]).then(() => done(told));
"""


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1", "localhost"])
@pytest.mark.parametrize("target", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_reads_nothing_and_starts_nothing(ui, browser, elsewhere, home, name, target):
    """Of another site, and of this machine on another port, which is the same site to a browser."""
    before = runs(home)
    browser.get(f"http://{name}:{elsewhere}/")
    told = browser.execute_async_script(ATTACK, f"http://{target}:{ui.port}", BY_GET, LAUNCH, json.dumps(CONFIG))
    for kind in ("get", "read", "post", "post json"):
        assert told[kind] == "TypeError: Failed to fetch", kind
    for kind in ("image", "own image", "script"):
        assert told[kind] == "error", kind
    assert told["socket"] == "closed"
    assert runs(home) == before


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1"])
def test_a_link_on_a_page_of_another_origin_starts_nothing(ui, browser, elsewhere, home, name):
    before = runs(home)
    browser.get(f"http://{name}:{elsewhere}/")
    browser.execute_script("location.href = arguments[0]", f"{ui.url}{BY_GET}")
    wait_for(browser, "gongqing: this came from a page of somebody else's")
    browser.get(f"http://{name}:{elsewhere}/")
    browser.execute_script(
        "const form = Object.assign(document.createElement('form'), {action: arguments[0], method: 'POST'});"
        "document.body.append(form); form.submit()",
        f"{ui.url}{BY_GET}",
    )
    wait_for(browser, "gongqing: this came from a page of somebody else's")
    assert runs(home) == before


def test_a_foreign_name_that_leads_to_this_machine_shows_nothing(ui, browser, home):
    """DNS rebinding: to the browser the page and the server are one origin."""
    before = runs(home)
    for path in ("/", "/assets", f"/?token={ui.token}"):
        browser.get(f"http://rebind.example:{ui.port}{path}")
        wait_for(browser, "gongqing: this server goes by another name")
    told = browser.execute_async_script(
        """
        const [byGet, query, config, done] = arguments;
        const answers = [fetch(byGet), fetch('/assets'),
            fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'},
                               body: JSON.stringify({query, variables: {config}})})];
        Promise.all(answers.map(one => one.then(answer => answer.status))).then(done);
        """,
        BY_GET, LAUNCH, json.dumps(CONFIG),
    )  # fmt: skip
    assert told == [403, 403, 403]
    assert runs(home) == before


# --- without a browser: another user of the machine, and headers that no browser would send


def asked(ui: WebUi, method: str, target: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", ui.port, timeout=60)
    connection.putrequest(method, target, skip_host="host" in headers)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(body or "")))
    connection.endheaders((body or "").encode())
    answer = connection.getresponse()
    told = answer.status, answer.read().decode()
    connection.close()
    return told


def cookie(ui: WebUi) -> dict[str, str]:
    return {"Cookie": f"gongqing-{ui.port}={ui.token}"}


def test_whoever_has_no_token_gets_a_hint(ui, home):
    before = runs(home)
    query = json.dumps({"query": READ})
    for method, target, body in (("GET", "/", None), ("GET", "/server_info", None), ("GET", BY_GET, None)):
        assert asked(ui, method, target, body)[0] in {401, 405}
    told = asked(ui, "POST", "/graphql", query, Content_Type="application/json", Origin=ui.url)
    assert told == (401, "gongqing: open the address that `gongqing ui` has printed: the whole of it, with its token\n")
    assert runs(home) == before


def test_with_the_cookie_the_same_is_answered(ui):
    """So what the other tests see refused is refused by the guard, and not for want of something else."""
    query = json.dumps({"query": READ})
    status, told = asked(ui, "POST", "/graphql", query, Content_Type="application/json", Origin=ui.url, **cookie(ui))
    assert status == 200
    assert json.loads(told)["data"]["assetsOrError"]["__typename"] == "AssetConnection"


def test_not_even_the_operator_launches_by_get(ui, home):
    before = runs(home)
    assert asked(ui, "GET", BY_GET, Accept="image/*", **cookie(ui))[0] == 405
    assert runs(home) == before


def test_foreign_names_and_pages_are_refused_with_the_cookie(ui, home):
    before = runs(home)
    json_query = json.dumps({"query": LAUNCH, "variables": {"config": json.dumps(CONFIG)}})
    foreign = {"Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site"}
    for headers in (
        {"host": f"rebind.evil.example:{ui.port}"},
        foreign,
        {"Origin": "null"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        given = {**cookie(ui), **headers}
        assert asked(ui, "GET", "/assets", **given)[0] == 403
        assert asked(ui, "POST", "/graphql", json_query, Content_Type="application/json", **given)[0] == 403
        assert asked(ui, "POST", BY_GET, "a=b", Content_Type="application/x-www-form-urlencoded", **given)[0] == 403
        upgrade = {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
            "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec_WebSocket_Protocol": "graphql-ws",
        }  # fmt: skip
        assert asked(ui, "GET", "/graphql", **given, **upgrade)[0] == 403
    assert runs(home) == before


# --- processes


def test_one_port_is_listened_on_and_the_token_is_on_no_command_line(ui):
    processes = tree(ui.process.pid)
    assert len(processes) >= 4  # itself, what ends the others, the code location, the daemon
    assert listening(processes) == [("127.0.0.1", ui.port)]
    for process in processes:
        for told in ("cmdline", "environ"):
            assert ui.token.encode() not in Path(f"/proc/{process}/{told}").read_bytes()
    assert ui.log.read_text(encoding="utf-8").count(ui.token) == 1


def test_the_code_location_listens_in_a_folder_that_is_nobody_elses(ui):
    code = member(tree(ui.process.pid), "dagster api grpc")
    arguments = Path(f"/proc/{code}/cmdline").read_text().split("\0")
    place = Path(arguments[arguments.index("--socket") + 1])
    assert place.is_socket()
    assert place.parent.stat().st_mode & 0o777 == 0o700


def test_a_second_one_on_the_same_home_is_refused(ui, home):
    second = subprocess.run(
        [GONGQING, "ui", "--port", str(free_port())], env=environment_of(home), capture_output=True, text=True
    )
    assert second.returncode == 1
    assert f"process {ui.process.pid}, 127.0.0.1 port {ui.port}" in second.stderr


@pytest.mark.parametrize(
    ("host", "told"), [("0.0.0.0", "every address"), ("no.such.name.invalid", "cannot be listened on")]
)
def test_an_address_that_cannot_be_is_refused(tmp_path, host, told):
    ran = subprocess.run([GONGQING, "ui", "--host", host], env=environment_of(tmp_path), capture_output=True, text=True)
    assert ran.returncode == 2
    assert told in ran.stderr


def test_sigterm_ends_everything(ui):
    """The last of the tests that share it. A daemon that has not come up yet would tell where it was interrupted."""
    until = time.monotonic() + 120
    while "Instance is configured with" not in ui.log.read_text(encoding="utf-8"):
        assert time.monotonic() < until
        time.sleep(0.1)
    processes = tree(ui.process.pid)
    folder = Path(f"/proc/{member(processes, 'pipelines.cli.ui.group')}/cmdline").read_text().split("\0")[-2]
    ui.process.send_signal(signal.SIGTERM)
    assert ui.process.wait(timeout=120) == 0
    wait_until_gone(processes)
    assert not Path(folder).exists()
    assert "Traceback" not in ui.log.read_text(encoding="utf-8")


def test_where_the_daemon_dies_the_command_ends_with_an_error(home):
    with web_ui(home) as ui:
        processes = tree(ui.process.pid)
        os.kill(member(processes, "dagster._daemon"), signal.SIGKILL)
        assert ui.process.wait(timeout=120) == 1
        assert "the web UI has ended, for the daemon, process" in ui.log.read_text(encoding="utf-8")
        wait_until_gone(processes)


def test_sigkill_of_the_command_ends_everything(home):
    with web_ui(home) as ui:
        processes = tree(ui.process.pid)
        folder = Path(f"/proc/{member(processes, 'pipelines.cli.ui.group')}/cmdline").read_text().split("\0")[-2]
        ui.process.kill()
        ui.process.wait()
        wait_until_gone(processes)
        assert not Path(folder).exists()
