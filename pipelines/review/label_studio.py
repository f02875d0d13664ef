"""Tasks to Label Studio and labels back, over HTTP: a server a person, for its community edition shows all labels to
anybody with a token.

::

    <home>/review/label-studio/<person>/access.json     address, token and password; for the operator alone
                                        data/           Label Studio's own: its database, its files

A task is one of its tasks, with nothing but what is shown; a kind is a project. It stores whatever it is sent, so that
every label is checked here, as those of Potato are.
"""

import datetime as dt
import html
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from pydantic import ValidationError

from pipelines.core.home import Home
from pipelines.errors import GongqingError, UnreadableFile
from pipelines.review.contract import Label, Task
from pipelines.review.potato import RefusedAnswer, read_pairs
from pipelines.review.potato_page import choice_name, item_id, project_of, schema_name
from pipelines.review.questions import crisis, guideline_of, screen_of, sections_of

ACCESS, DATA = "access.json", "data"
_TIMEOUT = 60.0  # seconds
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # it is on this machine


class Access(NamedTuple):
    """How a person's server is reached."""

    url: str
    token: str
    password: str


class Exchanged(NamedTuple):
    """What a push did with the tasks of a person."""

    new: int
    known: int
    withdrawn: int


def folder_of(home: Path) -> Path:
    """The folder of all servers of a home."""
    return Home(home).review / "label-studio"


def access_of(folder: Path) -> Access:
    """How the server of a person's folder is reached. Raises UnreadableFile."""
    try:
        return Access(**json.loads((folder / ACCESS).read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        hint = "make label-studio WHO=NAME writes it anew"
        raise UnreadableFile("no address of a Label Studio", where=folder / ACCESS, hint=hint) from error


def push(access: Access, tasks: Iterable[Task], is_over: Callable[[str, str], bool]) -> Exchanged:
    """Makes a person's server ask `tasks`, all of that person, and takes back what is over. The same again changes
    nothing.

    `is_over` says it of the kind and the id of a task that is there. Raises GongqingError where the server does not
    answer.
    """
    asked: dict[str, list[Task]] = {}
    for task in tasks:
        asked.setdefault(project_of(task), []).append(task)
    projects = projects_of(access)
    new = known = withdrawn = 0
    for name in sorted({*asked, *projects}):
        there = {row["data"]["id"]: row for row in rows_of(access, projects[name])} if name in projects else {}
        gone = [row for row in there.values() if is_over(name.partition("-")[0], row["data"]["task_id"])]
        for row in gone:
            ask(access, f"/api/tasks/{row['id']}/", method="DELETE")
        left = there.keys() - {row["data"]["id"] for row in gone}
        fresh = [task for task in asked.get(name, []) if item_id(task) not in left]
        if fresh:
            project = projects.get(name) or _make_project(access, name, fresh[0])
            ask(access, f"/api/projects/{project}/import", [{"data": data_of(task)} for task in fresh])
        new, known = new + len(fresh), known + len(asked.get(name, [])) - len(fresh)
        withdrawn += len(gone)
    return Exchanged(new, known, withdrawn)


def pull(access: Access, tasks: Iterable[Task]) -> tuple[list[Label], list[str]]:
    """The person's answers to `tasks`: labels in the form of the contract, and what is no label, with the reason, which
    repeats nothing that somebody wrote. Again, the same.
    """
    labels, refused = list[Label](), list[str]()
    known = {item_id(task): task for task in tasks}
    for name, project in sorted(projects_of(access).items()):
        for row in rows_of(access, project):
            task = known.get(row["data"].get("id"))
            given = [one for one in row["annotations"] if not one.get("was_cancelled")]
            if task is None or not given:
                continue
            try:
                labels.append(_label(task, given))
            except RefusedAnswer as error:
                refused.append(f"Label Studio, {name}, {task.annotator}, {task.task_id}: {error}")
    return labels, refused


def data_of(task: Task) -> dict[str, str]:
    """A task as Label Studio's: nothing but its ids and what is shown."""
    shown = {passage.field: f"{passage.title}\n{passage.text}" for passage in screen_of(task).passages}
    turns = "\n\n".join(text for field, text in shown.items() if field.startswith("turn"))
    texts = {field: text for field, text in shown.items() if not field.startswith("turn")}
    return {"id": item_id(task), "task_id": task.task_id, **({"turns": turns} if turns else {}), **texts}


def configuration(task: Task) -> str:
    """The labelling interface of the project of a task: the texts, then what is asked about each."""
    screen = screen_of(task)
    fields = [name for name in data_of(task) if name not in ("id", "task_id")]
    parts = [f'<Header size="4" value={quoteattr(guideline_of(task.kind).title)}/>']
    asked: dict[str | None, list[str]] = {}
    for question in screen.questions:
        choices = "".join(f"<Choice value={quoteattr(one.label)}/>" for one in question.choices)
        name = schema_name(question.field)
        asked.setdefault(question.about, []).append(
            f'<Header size="5" value={quoteattr(question.ask)}/>'
            f'<Choices name="{name}" toName="text_{fields[0]}" choice="single-radio" showInline="true" required="true">'
            f"{choices}</Choices>"
        )
    for text in screen.texts:
        asked.setdefault(text.about, []).append(
            f'<TextArea name="{schema_name(text.field)}" toName="text_{fields[0]}" rows="2" editable="true" '
            f'maxSubmissions="1" placeholder={quoteattr(text.ask)}/>'
        )
    for field in fields:
        parts.append(f'<View style="white-space: pre-wrap"><Text name="text_{field}" value="${field}"/></View>')
        parts += asked.pop(field, [])
    parts += [one for some in asked.values() for one in some]
    return f"<View>{''.join(parts)}</View>"


def _instruction(task: Task) -> str:
    """The guidelines, and whom to call, as Label Studio shows them before the first task: as HTML."""
    help_ = crisis()
    numbers = [f"{number}　{what}" for number, what in help_.numbers]
    lines = [help_.title, *help_.opening, *numbers]
    for section in sections_of(task.kind, "page")[1:]:
        lines += ["", section.title, *section.lines]
    return "<br/>".join(map(html.escape, lines))


def _label(task: Task, given: Sequence[dict[str, Any]]) -> Label:
    if len(given) > 1:
        raise RefusedAnswer("it was answered more than once")
    [one] = given
    answers = read_pairs(task, _pairs(task, one.get("result")))
    seconds = one.get("lead_time")
    try:
        return Label(
            kind=task.kind,
            task_id=task.task_id,
            annotator=task.annotator,
            shown=task.shown,
            answers=answers,
            seconds=seconds if isinstance(seconds, int | float) and seconds >= 0 else None,
            at=dt.datetime.fromisoformat(one["updated_at"]),
        )
    except (ValidationError, KeyError, TypeError, ValueError):
        raise RefusedAnswer("it has not the form of a label") from None


def _pairs(task: Task, result: Any) -> Iterator[tuple[dict[str, str], Any]]:
    """The answers as pairs of what was asked and chosen, and its value, as Potato stores them. What is chosen is stored
    by its label: an alias such as `true` is read as a truth value by the page, which then shows nothing.
    """
    names = {
        (schema_name(question.field), choice.label): choice_name(choice)
        for question in screen_of(task).questions
        for choice in question.choices
    }
    try:
        for one in result:
            value = one["value"]
            if one["type"] == "textarea":
                yield {"schema": one["from_name"], "name": "text_box"}, "\n".join(value["text"])
                continue
            for chosen in value["choices"]:
                name = names.get((one["from_name"], chosen), f"no choice: {chosen}")
                yield {"schema": one["from_name"], "name": name}, name
    except (TypeError, KeyError):
        raise RefusedAnswer("it is not in the form that Label Studio stores") from None


def ask(access: Access, path: str, body: Any = None, method: str | None = None) -> Any:
    """The JSON that a server answers. Raises GongqingError."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Token {access.token}", "Content-Type": "application/json"}
    address = f"{access.url}{path}"  # written by our own server
    request = urllib.request.Request(address, data=data, headers=headers, method=method)  # noqa: S310
    try:
        with _OPEN(request, timeout=_TIMEOUT) as answer:
            return json.loads(answer.read() or b"null")
    except (OSError, ValueError) as error:  # an HTTPError is an OSError
        hint = "make label-studio WHO=NAME starts it"
        raise GongqingError(f"Label Studio does not answer: {error}", where=access.url, hint=hint) from error


def projects_of(access: Access) -> dict[str, int]:
    """The ids of a server's projects, by name."""
    return {one["title"]: one["id"] for one in ask(access, "/api/projects/?page_size=100")["results"]}


def rows_of(access: Access, project: int) -> list[dict[str, Any]]:
    """All tasks of a project as Label Studio has them, with the answers to each."""
    return list(ask(access, f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true"))


def _make_project(access: Access, name: str, task: Task) -> int:
    """Makes the project of a task; its id."""
    body = {
        "title": name,
        "label_config": configuration(task),
        "expert_instruction": _instruction(task),
        "show_instruction": True,
        "show_skip_button": False,
        "enable_empty_annotation": False,
        "maximum_annotations": 1,
    }
    return int(ask(access, "/api/projects/", body)["id"])
