"""Two people label in the real Label Studio, a server each, on loopback: what comes back, and what is refused of it."""

import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import review_tasks
from potato_people import stored
from potato_tasks import GOOD
from web_ui import free_port

from pipelines.errors import GongqingError
from pipelines.operations.erase.files import erase_from_review
from pipelines.operations.erase.traces import ErasedIds, Scrub, TextTraces
from pipelines.review.contract import Task
from pipelines.review.label_studio import (
    ACCESS,
    DATA,
    Access,
    access_of,
    ask,
    folder_of,
    projects_of,
    pull,
    push,
    rows_of,
)
from pipelines.review.label_studio_server import PROGRAM, Server
from pipelines.review.potato_page import choice_name, schema_name
from pipelines.review.questions import screen_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("label-studio")]

ONE, OTHER = "p1", "p2"
DATABASE = "label_studio.sqlite3"


def batch(who: str) -> list[Task]:
    tasks = [task for kind in GOOD for task in review_tasks.batch(kind, 2)]
    return [task.model_copy(update={"annotator": who, "task_id": f"{task.item_id}.{who}"}) for task in tasks]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def servers(home: Path) -> Iterator[dict[str, Server]]:
    if not PROGRAM.exists():
        pytest.fail("there is no .venv-label-studio: make label-studio-env")
    with Server(folder_of(home) / ONE, free_port()) as one:
        copy_database(one.folder / DATA, folder_of(home) / OTHER / DATA)
        with Server(folder_of(home) / OTHER, free_port()) as other:
            yield {ONE: one, OTHER: other}


def copy_database(made: Path, folder: Path) -> None:
    """To make one takes half a minute. The person of the first is in the copy, too, where her token is another."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(made / DATABASE)) as one, closing(sqlite3.connect(folder / DATABASE)) as other:
        one.backup(other)
        with other:
            assert other.execute("UPDATE authtoken_token SET key = ?", [secrets.token_hex(20)]).rowcount == 1


@pytest.fixture(scope="module")
def access(servers: dict[str, Server]) -> dict[str, Access]:
    return {who: access_of(server.folder) for who, server in servers.items()}


def result_of(task: Task, answers: dict[str, Any], first: str) -> list[dict[str, Any]]:
    """Answers as the page sends them: what is chosen by its label."""
    labels = {
        (schema_name(question.field), choice_name(choice)): choice.label
        for question in screen_of(task).questions
        for choice in question.choices
    }
    sent = []
    for key, value in stored(answers).items():
        name, _, choice = key.partition(":")
        is_text = choice == "text_box"
        given = {"text": [value]} if is_text else {"choices": [labels.get((name, choice), choice)]}
        sent.append({"from_name": name, "to_name": first, "type": "textarea" if is_text else "choices", "value": given})
    return sent


def label(access: Access, task: Task, result: list[dict[str, Any]]) -> None:
    """Submits an annotation over the interface that the page uses."""
    row = row_of(access, task)
    ask(access, f"/api/tasks/{row['id']}/annotations/", {"result": result, "lead_time": 12.5})


def row_of(access: Access, task: Task) -> dict[str, Any]:
    rows = [row for project in projects_of(access).values() for row in rows_of(access, project)]
    [row] = [row for row in rows if row["data"]["task_id"] == task.task_id]
    return row


def first_of(task: Task) -> str:
    return {"cer": "text_turns", "coe": "text_question", "rank": "text_question", "compare": "text_question"}[task.kind]


def never(*_: str) -> bool:
    return False


def test_what_two_people_say_comes_back_once_and_whatever_else_is_stored_is_refused(
    access: dict[str, Access], servers: dict[str, Server]
) -> None:
    tasks = {who: batch(who) for who in access}
    for who, mine in access.items():
        assert push(mine, tasks[who], never) == (8, 0, 0)
        assert push(mine, tasks[who], never) == (0, 8, 0)
    for task in tasks[ONE][::2]:
        label(access[ONE], task, result_of(task, GOOD[task.kind], first_of(task)))
    labels, refused = pull(access[ONE], tasks[ONE])
    assert {one.task_id: one.answers for one in labels} == {task.task_id: GOOD[task.kind] for task in tasks[ONE][::2]}
    assert refused == []
    assert {one.shown for one in labels} == {task.shown for task in tasks[ONE][::2]}
    assert all(one.seconds == 12.5 and one.at and one.at.tzinfo for one in labels)
    assert pull(access[ONE], tasks[ONE]) == (labels, refused)

    # Stored with 201, whatever it is: an undefined choice, a missing answer, a second annotation, what was not asked.
    half, wrong = (task for task in tasks[OTHER] if task.kind == "cer")
    label(access[OTHER], half, result_of(half, {"step1": True}, "text_turns"))
    label(access[OTHER], wrong, result_of(wrong, {**GOOD["cer"], "preference": "A"}, "text_turns"))
    twice, odd = (task for task in tasks[OTHER] if task.kind == "compare")
    for _ in range(2):
        label(access[OTHER], twice, result_of(twice, GOOD["compare"], "text_question"))
    label(access[OTHER], odd, [{"from_name": "x", "to_name": "y", "type": "rating", "value": {"rating": "王小明"}}])
    labels, refused = pull(access[OTHER], tasks[OTHER])
    assert labels == []
    assert len(refused) == 4
    assert not any("王小明" in line for line in refused)

    # Nobody's labels, and nobody's token, are on another's server.
    with pytest.raises(GongqingError, match="401"):
        projects_of(access[OTHER]._replace(token=access[ONE].token))
    assert {
        row["data"]["task_id"]
        for project in projects_of(access[OTHER]).values()
        for row in rows_of(access[OTHER], project)
    } == {task.task_id for task in tasks[OTHER]}
    assert (servers[ONE].folder / ACCESS).stat().st_mode & 0o777 == 0o600

    # What is over is taken back.
    gone = tasks[ONE][0]
    assert push(access[ONE], [], lambda kind, task_id: (kind, task_id) == (gone.kind, gone.task_id)) == (0, 0, 1)
    left, _ = pull(access[ONE], tasks[ONE])
    assert gone.task_id not in {one.task_id for one in left}


def test_neither_password_nor_token_can_be_read_by_others_on_the_machine(
    servers: dict[str, Server], access: dict[str, Access]
) -> None:
    for who, server in servers.items():
        assert server.alive()
        commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        assert not any(access[who].token.encode() in one or access[who].password.encode() in one for one in commands)
    assert servers[ONE].url.startswith("http://127.0.0.1:")


def test_an_erasure_reaches_its_database_and_what_it_exported(servers: dict[str, Server], tmp_path: Path) -> None:
    folder = tmp_path / "label-studio"
    shutil.copytree(servers[OTHER].folder, folder, ignore=shutil.ignore_patterns(".serving"))
    said = [text for _, text in review_tasks.TURNS]

    def holding() -> list[str]:
        forms = [form for text in said for form in (text.encode(), text.encode("unicode_escape"))]
        files = [path for path in folder.rglob("*") if path.is_file()]
        return sorted({path.suffix for path in files if any(form in path.read_bytes() for form in forms)})

    assert holding() == [".json", ".sqlite3"]
    erase_from_review(tmp_path, Scrub(TextTraces.of(said), ErasedIds(["cer-0"]), lambda _: "erased"))
    assert holding() == []
