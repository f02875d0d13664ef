"""Tasks go to a server, where a team labels, and its labels come back: Potato, or Label Studio, one a person."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pipelines.errors import NoVersion, UnknownName
from pipelines.operations.review.exporting import sent_tasks
from pipelines.operations.review.importing import Imported, import_from_server
from pipelines.operations.review.judged import require_kind
from pipelines.operations.review.people import people
from pipelines.review import label_studio, potato

Target = Literal["potato", "label-studio"]
TARGETS: tuple[Target, ...] = ("potato", "label-studio")


class Pushed(NamedTuple):
    """How many tasks are new, were there, or were taken back; the passwords of those who had none, by pseudonym and
    name, to be shown once; and who has tasks and no server of Label Studio.
    """

    new: int
    known: int
    withdrawn: int
    passwords: dict[str, str]
    without: list[str]


def push(home: Path, name: str, target: str = "potato") -> Pushed:
    """Makes the servers ask the tasks of a kind that went out and have no label, and none that was taken back or is not
    to be shown any more; again, it changes nothing.

    Raises UnknownName for the kind and the target, RequestError for a name that Potato cannot have, GongqingError where
    a server of Label Studio does not answer, NoVersion where there is nothing to judge.
    """
    kind, called = require_kind(name), people(home)
    standing = {task.task_id for task in sent_tasks(home, kind, answered=True)}
    tasks = sent_tasks(home, kind)
    if _require_target(target) == "potato":
        made = potato.push(home, tasks, lambda task: task.kind == kind and task.task_id not in standing)
        passwords = {f"{called[one]} ({one})": password for one, password in made.passwords.items()}
        return Pushed(made.new, made.known, made.withdrawn, passwords, [])
    new = known = withdrawn = 0
    served = dict(_servers(home))
    for person, access in served.items():
        theirs = (task for task in tasks if task.annotator == person)
        done = label_studio.push(access, theirs, lambda of, task_id: of == kind and task_id not in standing)
        new, known, withdrawn = new + done.new, known + done.known, withdrawn + done.withdrawn
    without = sorted({called[task.annotator] for task in tasks if task.annotator not in served})
    return Pushed(new, known, withdrawn, {}, without)


def pull(home: Path, name: str, target: str = "potato") -> tuple[Imported, list[str]]:
    """Takes what people have answered of a kind so far into the tables; again, it changes nothing.

    Returns what was taken, and what the servers hold that is not: unfinished answers, and what is no label. Raises as
    `push`.
    """
    kind = require_kind(name)
    if _require_target(target) == "potato":
        labels, refused = potato.pull(home)
        others = [str(one) for one in refused]
    else:
        labels, others = [], []
        tasks = sent_tasks(home, kind, answered=True)
        for person, access in _servers(home):
            theirs, not_taken = label_studio.pull(access, (task for task in tasks if task.annotator == person))
            labels, others = [*labels, *theirs], [*others, *not_taken]
    of_kind = [label for label in labels if label.kind == kind]
    imported = import_from_server(home, kind, of_kind, target) if of_kind else Imported(0, 0, 0, [])
    return imported, [*others, *map(str, imported.refusals)]


def _servers(home: Path) -> Iterator[tuple[str, label_studio.Access]]:
    """The people who have a server of Label Studio. Raises NoVersion where nobody has."""
    folders = sorted(path.parent for path in label_studio.folder_of(home).glob(f"*/{label_studio.ACCESS}"))
    if not folders:
        raise NoVersion("nobody has a server of Label Studio", where=home, hint="make label-studio WHO=NAME")
    yield from ((folder.name, label_studio.access_of(folder)) for folder in folders)


def _require_target(name: str) -> Target:
    for known in TARGETS:
        if name == known:
            return known
    raise UnknownName("target of tasks", name, TARGETS)
