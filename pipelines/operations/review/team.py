"""Tasks go to Potato, where a team labels, and its labels come back."""

from pathlib import Path

from pipelines.operations.review.exporting import sent_tasks
from pipelines.operations.review.importing import Imported, import_from_server
from pipelines.operations.review.judged import require_kind
from pipelines.operations.review.people import people
from pipelines.review import potato


def push(home: Path, name: str) -> tuple[potato.Pushed, dict[str, str]]:
    """Makes Potato ask the tasks of a kind that went out and have no label, and none that was taken back, or is not to
    be shown any more; again, it changes nothing.

    Returns what was done, and the passwords of those who had none, by pseudonym and name, to be shown once.

    Raises UnknownName for the kind, RequestError for a name that Potato cannot have, NoVersion where there is nothing
    to judge.
    """
    kind = require_kind(name)
    standing = {task.task_id for task in sent_tasks(home, kind, answered=True)}
    pushed = potato.push(home, sent_tasks(home, kind), lambda task: task.kind == kind and task.task_id not in standing)
    called = people(home)
    return pushed, {f"{called[one]} ({one})": password for one, password in pushed.passwords.items()}


def pull(home: Path, name: str) -> tuple[Imported, list[str]]:
    """Takes what people have said of a kind so far into the tables; again, it changes nothing.

    Returns what was taken, and what Potato holds that is not: unfinished answers, and what is no label.
    """
    kind = require_kind(name)
    labels, refused = potato.pull(home)
    of_kind = [label for label in labels if label.kind == kind]
    imported = import_from_server(home, kind, of_kind, "Potato") if of_kind else Imported(0, 0, 0, [])
    return imported, [*map(str, refused), *map(str, imported.refusals)]
