"""Tasks to Potato and labels back: what lies in the folder of a home's projects.

::

    <home>/review/potato/<project>/tasks.jsonl     every task that was pushed, as the contract has it
                                   items.jsonl     what Potato shows
                                   config.yaml     its configuration, with the keys of its sessions
                                   users.jsonl     who may sign in, passwords hashed
                                   page.css
                                   output/         Potato's own: a folder a person
    <home>/review/potato/passwords.txt             a line a person; for the operator alone

The assignment is ours: a task is one person's, and nobody else can open it. Potato stores whatever it is sent, so that
every label is checked here; its figures of agreement are never read. An adjudicator gets a task like anybody else, with
neither names nor others' labels in it.
"""

import datetime as dt
import hashlib
import json
import math
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from pipelines.core.files import held, write_whole
from pipelines.core.home import Home
from pipelines.errors import Busy, GongqingError, RequestError
from pipelines.review.contract import Label, Task
from pipelines.review.potato_page import (
    CONFIG,
    ITEMS,
    OUTPUT,
    STYLE,
    USERS,
    as_written,
    choice_name,
    configuration,
    item_id,
    item_of,
    project_of,
    schema_name,
    style,
)
from pipelines.review.questions import answers_of, screen_of

TASKS, PASSWORDS = "tasks.jsonl", "passwords.txt"
SERVING = ".serving"  # in a project's folder: the lock that its server holds
_PUSHING = ".pushing"
_NAME = re.compile(r"\w[\w.@-]{0,63}")  # of a person: it names a folder of Potato's
_TAKEN = ("pocket",)  # folders that Potato makes itself beside those of people
_ITEM_ID = re.compile(r'"([0-9a-f]{16})"')  # as JSON has it
_ROUNDS = 100_000  # of PBKDF2, as Potato has it
_KEYS = ("secret_key", "admin_api_key")


@dataclass(frozen=True)
class Pushed:
    """What a push did: how many tasks are `new`, how many were `known` and how many were `withdrawn`, in which
    `projects`; the `passwords` of those who had none, to be shown once. What has changed is seen once the servers of
    `restart` are started again, which `make review` does by itself.
    """

    new: int
    known: int
    withdrawn: int
    projects: tuple[str, ...]
    passwords: Mapping[str, str] = field(repr=False)
    restart: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """A label that is not taken over, and why; the reason repeats nothing that somebody wrote."""

    project: str
    annotator: str
    task_id: str
    reason: str

    def __str__(self) -> str:
        return f"{self.project}, {self.annotator}, {self.task_id or 'no task of ours'}: {self.reason}"


class RefusedAnswer(Exception):
    """Raised within `pipelines.review` for an answer of a server that is not taken over, with the reason."""


class _Unfinished(RefusedAnswer):
    """Raised for one in which a question has no answer yet."""


def folder_of(home: Path) -> Path:
    """The folder of all projects of a home."""
    return Home(home).review / "potato"


def projects_of(home: Path) -> list[Path]:
    """The folders of the projects of a home, by name."""
    return sorted(path.parent for path in folder_of(home).glob(f"*/{TASKS}"))


def push(home: Path, tasks: Iterable[Task], is_over: Callable[[Task], bool] = lambda _: False) -> Pushed:
    """Gives tasks to Potato, each to the person that it names, and takes back what `is_over`, with all answers to
    it. The same tasks again change nothing.

    Raises RequestError for a name that Potato cannot have.
    """
    by_project: dict[str, list[Task]] = {}
    for task in tasks:
        by_project.setdefault(project_of(task), []).append(task)
    folder = folder_of(home)
    _require_names({task.annotator for some in by_project.values() for task in some} | passwords_of(folder).keys())
    with held(folder / _PUSHING):
        fresh: dict[str, str] = {}
        new = known = withdrawn = 0
        restart = []
        for name in sorted({*by_project, *(project.name for project in projects_of(home))}):
            before, asked = _read_tasks(folder / name), by_project.get(name, [])
            left = {item_id(task): task for task in before if not is_over(task)}
            added = {item_id(task): task for task in asked if item_id(task) not in left}
            new, known = new + len(added), known + len(asked) - len(added)
            withdrawn += len(before) - len(left)
            if added or len(left) < len(before):
                if is_running := serving(folder / name):
                    restart.append(name)
                fresh |= _make_passwords(folder, {task.annotator for task in asked})
                _write(folder / name, [*left.values(), *added.values()], passwords_of(folder), is_running=is_running)
    return Pushed(new, known, withdrawn, tuple(sorted(by_project)), fresh, tuple(restart))


def _write(project: Path, tasks: Sequence[Task], passwords: Mapping[str, str], *, is_running: bool) -> None:
    """Writes a project; removes one of no tasks. What a server that runs has to forget goes when it starts again."""
    if tasks:
        write_project(project, tasks, passwords)
        if not is_running:
            prepare(project)
        return
    (project / TASKS).unlink()  # with it the project is gone, and its server ends
    if not is_running:
        shutil.rmtree(project)


def write_project(folder: Path, tasks: Sequence[Task], passwords: Mapping[str, str]) -> None:
    """Writes the files of a project with these tasks, all of one project, in the order in which people see them. Files
    that are right already stay untouched.
    """
    people = sorted({task.annotator for task in tasks})
    config = configuration(tasks, people, _keys(folder))
    _write_file(folder / STYLE, style())
    _write_file(folder / USERS, _lines(_users(folder, people, passwords)))
    _write_file(folder / ITEMS, _lines(map(item_of, tasks)))
    _write_file(folder / CONFIG, json.dumps(config, indent=1) + "\n")  # JSON is YAML as well
    # Last, for with it the project is there.
    _write_file(folder / TASKS, _lines(task.model_dump(mode="json") for task in tasks))


def pull(home: Path) -> tuple[list[Label], list[Refusal]]:
    """What people have answered so far, in every project: labels in the form of the contract, and what is no label.

    Nothing is marked as pulled, so that the same labels come again. An item that somebody is still at is among the
    refusals, as unfinished.
    """
    labels: list[Label] = []
    refusals: list[Refusal] = []
    for project in projects_of(home):
        tasks = {item_id(task): task for task in _read_tasks(project)}
        for state in sorted((project / OUTPUT).glob("*/user_state.json")):
            for one in _pull_person(project.name, state, tasks):
                (labels if isinstance(one, Label) else refusals).append(one)  # type: ignore[arg-type]
    return labels, refusals


def prepare(project: Path) -> None:
    """Makes what Potato has stored fit the tasks as they are now.

    What is no task any more is forgotten. Those are led back to labelling whom Potato told that they are through,
    though they have items again, or one that they left by halves: what has any answer is done for Potato, and who is
    done stays so. Half an answer is dropped.

    Only while no server of the project runs.
    """
    tasks = {item_id(task): task for task in _read_tasks(project)}
    for path in (project / OUTPUT).glob("*/*"):
        if path.name == "annotation_history.jsonl":
            lines = path.read_text(encoding="utf-8").split("\n")
            _write_file(path, "\n".join(line for line in lines if _item_ids(line) <= tasks.keys()))
    for path in (project / OUTPUT).glob("*/user_state.json"):
        stored = path.read_text(encoding="utf-8")
        if not _item_ids(stored) <= tasks.keys():
            write_whole(path, json.dumps(_without(json.loads(stored), tasks), ensure_ascii=False, indent=2).encode())
        state = _read_state(path)
        if state["current_phase_and_page"][0] != "done":
            continue
        given = state["instance_id_to_label_to_value"]
        halves = [item for item, stored in given.items() if item in tasks and _is_unfinished(tasks[item], stored)]
        for item in halves:
            del given[item]
        theirs = {item for item, task in tasks.items() if task.annotator == path.parent.name}
        if halves or not theirs <= given.keys():
            state["current_phase_and_page"] = ["annotation", None]
            write_whole(path, json.dumps(state, ensure_ascii=False, indent=2).encode())


def require_stopped(folders: Iterable[Path]) -> None:
    """Raises Busy while a server of one of these folders runs: it would write again what is taken away."""
    for folder in folders:
        if serving(folder):
            raise Busy("people are labelling", where=folder, hint="end their server first, with Ctrl-C")


def forget_missing(home: Path) -> None:
    """Takes away what lies in the projects of items that are in no list of tasks any more: an erasure has shortened it.

    Only while no server runs.
    """
    for project in projects_of(home):
        _write(project, _read_tasks(project), passwords_of(folder_of(home)), is_running=False)


def serving(project: Path) -> bool:
    """Whether a server of this project is running."""
    try:
        with held(project / SERVING, wait=False):
            return False
    except BlockingIOError:
        return True


def _item_ids(text: str) -> set[str]:
    """All that may be the id of an item in a text of Potato's."""
    return set(_ITEM_ID.findall(text))


def _without(node: Any, tasks: Collection[str]) -> Any:
    """What Potato has stored, without anything that is kept under the id of an item that is no task."""
    if isinstance(node, dict):
        return {key: _without(value, tasks) for key, value in node.items() if _is_kept(key, tasks)}
    if isinstance(node, list):
        return [_without(one, tasks) for one in node if _is_kept(one, tasks)]
    return node


def _is_kept(node: Any, tasks: Collection[str]) -> bool:
    if isinstance(node, dict):
        node = node.get("instance_id")
    return not (isinstance(node, str) and _ITEM_ID.fullmatch(f'"{node}"') and node not in tasks)


def _pull_person(project: str, path: Path, tasks: Mapping[str, Task]) -> Iterator[Label | Refusal]:
    person, state = path.parent.name, _read_state(path)
    given, times = state["instance_id_to_label_to_value"], state["instance_id_to_behavioral_data"]
    last = _last_times(path.with_name("annotation_history.jsonl"))
    for item, stored in given.items():
        if not stored:  # an answer that was taken back
            continue
        task = tasks.get(item)
        if task is None:
            yield Refusal(project, person, "", "it is of no task that was pushed")
            continue
        try:
            yield _label(task, person, stored, times.get(item), last.get(item))
        except RefusedAnswer as error:
            yield Refusal(project, person, task.task_id, str(error))


def _read_state(path: Path) -> dict[str, Any]:
    """What Potato has stored of a person; it replaces the file whole."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        for key in ("instance_id_to_label_to_value", "instance_id_to_behavioral_data"):
            if not isinstance(state[key], dict):
                raise TypeError(key)
        _ = state["current_phase_and_page"][0]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        hint = "nothing was taken over; look at the file, of which Potato keeps no copy"
        raise GongqingError("what Potato has stored of somebody cannot be read", where=path, hint=hint) from error
    return dict(state)


def _label(task: Task, person: str, stored: Any, times: Any, at: dt.datetime | None) -> Label:
    if person != task.annotator:
        raise RefusedAnswer("it was given by another person than was asked")
    answers = read_pairs(task, stored)
    named = {"kind": task.kind, "task_id": task.task_id, "annotator": person, "shown": task.shown}
    try:
        return Label(**named, answers=answers, seconds=_seconds(times), at=at)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise RefusedAnswer(": ".join(filter(None, (where, first["msg"])))) from None


def read_pairs(task: Task, stored: Any) -> dict[str, Any]:
    """The answers to a task, of pairs of what was asked and chosen, and its value, as Potato stores them.

    Raises RefusedAnswer.
    """
    screen = screen_of(task)
    questions = {schema_name(one.field): one for one in screen.questions}
    texts = {schema_name(one.field): one for one in screen.texts}
    chosen: dict[str, Any] = {}
    written: dict[str, str] = {}
    for schema, name, value in _stored(stored):
        if text := texts.get(schema):
            if not isinstance(value, str) or text.field in written:
                raise RefusedAnswer(f"{text.field}: it is no text")
            written[text.field] = as_written(value)
        elif question := questions.get(schema):
            values = {choice_name(choice): choice.value for choice in question.choices}
            if name not in values or value not in (name, True):
                raise RefusedAnswer(f"{question.field}: an undefined choice")
            if question.field in chosen:
                raise RefusedAnswer(f"{question.field}: two choices")
            chosen[question.field] = values[name]
        else:
            raise RefusedAnswer("an answer to what was not asked")
    if missing := [one.field for one in screen.questions if one.field not in chosen]:
        raise _Unfinished(f"unfinished: {', '.join(missing)} without an answer")
    return answers_of(task.kind, chosen, written)


def _is_unfinished(task: Task, stored: Any) -> bool:
    try:
        read_pairs(task, stored)
    except RefusedAnswer as error:
        return isinstance(error, _Unfinished)
    return False


def _stored(stored: Any) -> Iterator[tuple[str, str, Any]]:
    try:
        for label, value in stored:
            yield str(label["schema"]), str(label["name"]), value
    except (TypeError, ValueError, KeyError) as error:
        raise RefusedAnswer("it is not in the form that Potato stores") from error


def _seconds(times: Any) -> float | None:
    """How long somebody was at an item; Potato counts a pause as a minute at most."""
    spent = times.get("total_time_ms") if isinstance(times, dict) else None
    if isinstance(spent, bool) or not isinstance(spent, int | float) or not math.isfinite(spent) or spent <= 0:
        return None
    return spent / 1000


def _last_times(history: Path) -> dict[str, dt.datetime]:
    """When something was last chosen of each item. The server's clock is UTC (`potato_server`)."""
    last: dict[str, dt.datetime] = {}
    for line in history.read_text(encoding="utf-8").split("\n") if history.exists() else []:
        try:
            action = json.loads(line)
            at = dt.datetime.fromisoformat(action["timestamp"])
            last[action["instance_id"]] = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
        except (ValueError, KeyError, TypeError):  # a line that is being written: the label has no time then
            continue
    return last


def _read_tasks(project: Path) -> list[Task]:
    path = project / TASKS
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [Task.model_validate_json(line) for line in lines if line]


def _require_names(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in sorted(names):
        if not _NAME.fullmatch(name) or name.casefold() in _TAKEN:
            hint = f"a pseudonym has letters, digits and . _ @ -, at most 64, and is none of: {', '.join(_TAKEN)}"
            raise RequestError(f"Potato cannot have a person {name!r}", hint=hint)
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise RequestError(
                f"Potato cannot tell the person {name!r} from {other!r}", hint="give one of them another pseudonym"
            )


def passwords_of(folder: Path) -> dict[str, str]:
    """The password of each person, of the folder of all projects."""
    path = folder / PASSWORDS
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n")
    return {name: word for name, _, word in (line.partition("\t") for line in lines if line)}


def _make_passwords(folder: Path, people: Iterable[str]) -> dict[str, str]:
    """Makes a password for each person who has none; gives those that are new."""
    known = passwords_of(folder)
    fresh = {name: secrets.token_urlsafe(12) for name in sorted(people) if name not in known}
    if fresh:
        listed = "".join(f"{name}\t{word}\n" for name, word in (known | fresh).items())
        write_whole(folder / PASSWORDS, listed.encode())
    return fresh


def usernames_of(project: Path) -> list[str]:
    """Who may sign in to a project."""
    return [user["username"] for user in _accounts(project)]


def _accounts(project: Path) -> list[dict[str, str]]:
    path = project / USERS
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [json.loads(line) for line in lines if line]


def _users(folder: Path, people: Iterable[str], passwords: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The accounts of a project. Those that are there stay, for their hashes have a salt."""
    there = {user["username"]: user for user in _accounts(folder)}
    for name in people:
        yield there.get(name) or {"username": name, "password": _hashed(passwords[name])}


def _hashed(password: str) -> str:
    """A password as Potato keeps it: a salt, `$`, PBKDF2 of both."""
    salt = secrets.token_hex(16)
    return f"{salt}${hashlib.pbkdf2_hmac('sha256', password.encode(), salt.encode(), _ROUNDS).hex()}"


def _keys(folder: Path) -> dict[str, str]:
    """The keys of a project, made once."""
    path = folder / CONFIG
    if path.exists():
        config = json.loads(path.read_text(encoding="utf-8"))
        return {name: config[name] for name in _KEYS}
    return {name: secrets.token_urlsafe(32) for name in _KEYS}


def _lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)  # ASCII: nothing in a text ends a line for anybody


def _write_file(path: Path, text: str) -> None:
    content = text.encode()
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
