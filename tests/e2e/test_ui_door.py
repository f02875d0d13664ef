"""The web UI is the operator's alone: what a page of somebody else's, a foreign name, another user can do to it.

One `gongqing ui` for most of it, and one Chromium with the operator's cookie in its profile.
"""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
import pytest
from tiny_site import HTML, TinySite
from web_ui import (
    WebUi,
    chromium,
    command_of,
    environment_of,
    facts_of,
    free_port,
    member,
    tree,
    wait_for,
    wait_until,
    wait_until_gone,
    web_ui,
)

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
WITHOUT = LAUNCH.replace("($config: RunConfigData)", "").replace("$config", json.dumps(json.dumps(CONFIG)))
BY_GET = f"/graphql?query={quote(WITHOUT)}"
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
    """The port of another web server of this machine with an empty page: under whatever name the browser calls it."""
    page = b"<!doctype html><title>elsewhere</title><body>a page of somebody else's</body>"
    with TinySite({"/": (200, HTML, page)}) as site:
        yield int(site.url.rpartition(":")[2])


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


def listening(processes: set[int]) -> list[str]:
    """The addresses on which processes accept TCP connections, as Linux writes them."""
    sockets = set()
    for place in (Path(f"/proc/{process}/fd") for process in processes):
        with suppress(FileNotFoundError):  # a process that has ended
            for descriptor in list(place.iterdir()):
                with suppress(FileNotFoundError):  # one that was closed
                    sockets.add(str(descriptor.readlink()))
    lines = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return [cells[1] for cells in lines if cells[3] == "0A" and f"socket:[{cells[9]}]" in sockets]


# --- the operator's own window


def test_the_operators_window_shows_the_assets_and_its_address_has_no_token(ui, browser):
    browser.get(ui.address)
    assert browser.current_url.startswith(ui.url)
    assert ui.token not in browser.current_url
    browser.get(f"{ui.url}/assets")
    wait_for(browser, "grpo_cer")
    lines = [line["message"] for line in browser.get_log("browser")]
    assert not [line for line in lines if " 403 " in line or "CSP" in line]
    [cookie] = browser.get_cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (f"gongqing-{ui.port}", True, "Strict")
    assert browser.execute_script("return document.cookie") == ""


def test_the_operators_window_launches_a_run_and_follows_it(ui, browser, home):
    browser.get(f"{ui.url}/runs")
    before = runs(home)
    seen = browser.execute_async_script(
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
    assert seen["status"] == 200
    assert seen["opened"]
    launched = seen["body"]["data"]["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    assert runs(home) == before + 1
    with dg.DagsterInstance.from_config(str(home)) as standing:
        find = partial(standing.get_run_by_id, launched["run"]["runId"])
        run = wait_until(lambda: (one := find()).is_finished and one, 240, find)
        events = [one.dagster_event for one in standing.all_logs(run.run_id) if one.dagster_event]
    [failed] = [event for event in events if event.is_step_failure]
    # It came through queue, code location and process to its step, which publishes to nobody that is not named.
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert "'attacker/loot' is none that a job may publish to" in str(failed.step_failure_data.error)


# --- pages of others, in the operator's own browser

ATTACK = """
const [target, byGet, query, config, done] = arguments;
const seen = {};
const json = JSON.stringify({query, variables: {config}});
const tried = (name, made) => made.then(value => { seen[name] = value; }, error => { seen[name] = String(error); });
const loaded = (name, element) => new Promise(resolve => {
    element.onload = () => resolve('loaded'); element.onerror = () => resolve('error');
    document.body.append(element); setTimeout(() => resolve('nothing'), 8000);
}).then(value => { seen[name] = value; });
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
]).then(() => done(seen));
"""


@pytest.mark.parametrize(
    ("name", "target"), [("evil.example", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("localhost", "localhost")]
)
def test_a_page_of_another_origin_reads_nothing_and_starts_nothing(ui, browser, elsewhere, home, name, target):
    """Of another site, and of this machine on another port, which is the same site to a browser."""
    before = runs(home)
    browser.get(f"http://{name}:{elsewhere}/")
    seen = browser.execute_async_script(ATTACK, f"http://{target}:{ui.port}", BY_GET, LAUNCH, json.dumps(CONFIG))
    failed = dict.fromkeys(("get", "read", "post", "post json"), "TypeError: Failed to fetch")
    refused = failed | dict.fromkeys(("image", "own image", "script"), "error") | {"socket": "closed"}
    assert {kind: seen[kind] for kind in refused} == refused
    assert runs(home) == before


def test_a_link_on_a_page_of_another_origin_starts_nothing(ui, browser, elsewhere, home):
    before = runs(home)
    form = "const form = Object.assign(document.createElement('form'), {action: arguments[0], method: 'POST'});"
    sent = f"{form}document.body.append(form); form.submit()"
    for name, follow in product(("evil.example", "127.0.0.1"), ("location.href = arguments[0]", sent)):
        browser.get(f"http://{name}:{elsewhere}/")
        browser.execute_script(follow, f"{ui.url}{BY_GET}")
        wait_for(browser, "gongqing: this came from a page of somebody else's")
    assert runs(home) == before


def test_a_foreign_name_that_leads_to_this_machine_shows_nothing(ui, browser, home):
    """DNS rebinding: to the browser the page and the server are one origin."""
    before = runs(home)
    for path in ("/", "/assets", f"/?token={ui.token}"):
        browser.get(f"http://rebind.example:{ui.port}{path}")
        wait_for(browser, "gongqing: this server goes by another name")
    seen = browser.execute_async_script(
        """
        const [byGet, query, config, done] = arguments;
        const answers = [fetch(byGet), fetch('/assets'),
            fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'},
                               body: JSON.stringify({query, variables: {config}})})];
        Promise.all(answers.map(one => one.then(answer => answer.status))).then(done);
        """,
        BY_GET, LAUNCH, json.dumps(CONFIG),
    )  # fmt: skip
    assert seen == [403, 403, 403]
    assert runs(home) == before


# --- without a browser: another user of the machine. Which headers are refused: tests/unit/cli/test_guard.py


def test_whoever_has_no_token_gets_a_hint_and_with_the_cookie_the_same_is_answered(ui):
    headers = {"Content-Type": "application/json", "Origin": ui.url}
    answers = []
    for more in ({}, {"Cookie": f"gongqing-{ui.port}={ui.token}"}):
        connection = http.client.HTTPConnection("127.0.0.1", ui.port, timeout=60)
        connection.request("POST", "/graphql", json.dumps({"query": READ}), headers | more)
        answer = connection.getresponse()
        answers.append((answer.status, answer.read().decode()))
        connection.close()
    refused, (status, content) = answers
    hint = "gongqing: open the address that `gongqing ui` has printed: the whole of it, with its token\n"
    assert refused == (401, hint)
    assert status == 200
    assert json.loads(content)["data"]["assetsOrError"]["__typename"] == "AssetConnection"


# --- processes


def test_one_port_is_listened_on_and_the_token_is_on_no_command_line(ui):
    processes = tree(ui.process.pid)
    assert listening(processes) == [f"0100007F:{ui.port:04X}"]
    # At least itself, what ends the others, the code location and the daemon; one may end while it is looked at.
    for file in ("cmdline", "environ"):
        read = list(filter(None, (facts_of(process, file) for process in processes)))
        assert len(read) >= 4
        assert not [facts for facts in read if ui.token.encode() in facts]
    assert ui.log.read_text(encoding="utf-8").count(ui.token) == 1
    arguments = command_of(member(ui, "dagster api grpc"))
    place = Path(arguments[arguments.index("--socket") + 1])
    assert place.is_socket()
    assert place.parent.stat().st_mode & 0o777 == 0o700


def refused(home: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and message of a second `gongqing ui`."""
    ran = subprocess.run(["gongqing", "ui", *arguments], env=environment_of(home), capture_output=True, text=True)
    return ran.returncode, ran.stderr


def test_a_second_one_on_the_same_home_or_an_address_that_cannot_be_is_refused(ui, home, tmp_path):
    code, message = refused(home, "--port", str(free_port()))
    assert (code, f"process {ui.process.pid}, 127.0.0.1 port {ui.port}" in message) == (1, True), message
    for host, reason in {"0.0.0.0": "every address", "no.such.name.invalid": "cannot be listened on"}.items():
        code, message = refused(tmp_path, "--host", host)
        assert (code, reason in message) == (2, True), message


def test_sigterm_ends_everything(ui):
    """The last of the tests that share it. A daemon that has not come up yet would tell where it was interrupted."""
    wait_until(lambda: "Instance is configured with" in ui.log.read_text(encoding="utf-8"), 120)
    processes, folder = tree(ui.process.pid), Path(command_of(member(ui, "pipelines.cli.ui.group"))[-2])
    ui.process.send_signal(signal.SIGTERM)
    assert ui.process.wait(timeout=120) == 0
    wait_until_gone(processes)
    assert not folder.exists()
    assert "Traceback" not in ui.log.read_text(encoding="utf-8")


def test_sigkill_of_the_command_ends_everything(home):
    with web_ui(home) as ui:
        processes, folder = tree(ui.process.pid), Path(command_of(member(ui, "pipelines.cli.ui.group"))[-2])
        ui.process.kill()
        ui.process.wait()
        wait_until_gone(processes)
        assert not folder.exists()
