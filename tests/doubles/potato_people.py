"""People who label in Potato, over HTTP as a browser does, and the routes that it has."""

import http.cookiejar
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipelines.review.contract import Task
from pipelines.review.potato import folder_of
from pipelines.review.potato_page import CONFIG, item_id, schema_name
from pipelines.review.potato_server import PROGRAM

# The application as `potato start` makes it, asked for its routes where it would begin to serve.
_LIST = """
import json, sys
import flask
def tell(app, *_, **__):
    routes = [[rule.rule, sorted(rule.methods - {"HEAD", "OPTIONS"})] for rule in app.url_map.iter_rules()]
    print("\\nROUTES " + json.dumps(routes))
flask.Flask.run = tell
from potato.flask_server import main
sys.argv = ["potato", "start", sys.argv[1], "--host", "127.0.0.1"]
main()
"""


def require_review_env() -> None:
    """Fails where there is no Potato, which `make test-all` installs: nothing is left out without it."""
    if not PROGRAM.exists():
        pytest.fail("there is no .venv-review: make review-env")


def list_routes(project: Path) -> list[tuple[str, list[str]]]:
    """The routes of Potato with a project, each with its methods."""
    command = [PROGRAM.with_name("python"), "-c", _LIST, CONFIG]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    [line] = [line for line in ran.stdout.splitlines() if line.startswith("ROUTES ")]
    return [(rule, methods) for rule, methods in json.loads(line.removeprefix("ROUTES "))]


class Reply(NamedTuple):
    status: int
    text: str


class Person:
    """Somebody with a browser; signed in once `sign_in` was called."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._open = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()), urllib.request.ProxyHandler({})
        ).open

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str = "", form: bool = False) -> Reply:
        """What is answered to a request; a body goes as JSON, or as a form."""
        data = None
        headers = {}
        if body is not None:
            data = (urllib.parse.urlencode(body) if form else json.dumps(body)).encode()
            headers = {} if form else {"Content-Type": "application/json"}
        words = method or ("GET" if body is None else "POST")
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=words)
        try:
            with self._open(request, timeout=60) as answer:
                return Reply(answer.status, answer.read().decode(errors="replace"))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.read().decode(errors="replace"))

    def sign_in(self, name: str, password: str) -> Reply:
        return self.ask("/auth", {"action": "login", "email": name, "pass": password}, form=True)

    def store(self, item: str, annotations: dict[str, str]) -> Reply:
        return self.ask("/updateinstance", {"instance_id": item, "annotations": annotations})

    def label(self, task: Task, answers: dict[str, Any]) -> None:
        """Answers a task as the page does, and goes to the next."""
        item = item_id(task)
        if (on := self._on_screen()) != item:  # the last one of those who are asked again
            self._next(on)
        assert self._on_screen() == item
        assert self.store(item, stored(answers)).status == 200
        self._next(item)

    def _on_screen(self) -> str:
        found = re.search(r'name="instance_id"[^>]*value="([^"]*)"', self.ask("/annotate").text)
        assert found, "no item is shown"
        return found[1]

    def _next(self, item: str) -> None:
        assert self.ask("/annotate", {"action": "next_instance", "instance_id": item}).status == 200


def stored(answers: dict[str, Any]) -> dict[str, str]:
    """Answers in the form that the page sends."""
    sent: dict[str, str] = {}
    for field, value in answers.items():
        match field, value:
            case "edits", dict():
                sent |= {f"edit_{level}:text_box": text for level, text in value.items()}
            case "places", list():
                sent |= {f"place{n}:{place}": str(place) for n, place in enumerate(value, 1)}
            case "comment", str():
                sent |= {"comment:text_box": value} if value else {}
            case _:
                name = value if isinstance(value, str) else json.dumps(value)
                sent[f"{schema_name(field)}:{name}"] = name
    return sent


def pairs(annotations: dict[str, Any]) -> list[Any]:
    """What the page sends, as Potato stores it."""
    return [[dict(zip(("schema", "name"), key.split(":"), strict=True)), value] for key, value in annotations.items()]


def store(home: Path, who: str, given: dict[str, Any], project: str = "cer", **more: Any) -> Path:
    """The file of a person, by ids of items what was stored."""
    path = folder_of(home) / project / "output" / who / "user_state.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "user_id": who,
        "instance_id_ordering": list(given),
        "current_phase_and_page": ["annotation", None],
        "instance_id_to_behavioral_data": {},
        "instance_id_to_label_to_value": given,
    }
    path.write_text(json.dumps(state | more), encoding="utf-8")
    return path
