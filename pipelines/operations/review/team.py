"""Tasks go to Potato, where a team labels, and its labels come back."""

from pathlib import Path

from pipelines.operations.review.exporting import sent_tasks
from pipelines.operations.review.importing import Imported, import_texts
from pipelines.operations.review.judged import require_kind
from pipelines.operations.review.people import people
from pipelines.review import potato


def push(home: Path, name: str) -> tuple[potato.Pushed, dict[str, str]]:
    """Gives the tasks of a kind that went out and have no label to Potato; again, it changes nothing.

    Returns what was done, and the passwords of those who had none, by pseudonym and name, to be shown once.

    Raises UnknownName for the kind, RequestError for a name that Potato cannot have, NoVersion where there is nothing
    to judge.
    """
    pushed = potato.push(home, sent_tasks(home, name))
    called = people(home)
    return pushed, {f"{called[one]} ({one})": password for one, password in pushed.passwords.items()}


def pull(home: Path, name: str) -> tuple[Imported, list[str]]:
    """Takes what people have said of a kind so far into the tables; again, it changes nothing.

    Returns what was taken, and what Potato holds that is no label, unfinished ones among them. Raises LabelsRefused
    with all that cannot be taken: then nothing is.
    """
    kind = require_kind(name)
    labels, refused = potato.pull(home)
    lines = [label.model_dump_json() for label in labels if label.kind == kind]
    if not lines:
        return Imported(0, 0, []), [str(one) for one in refused]
    return import_texts(home, kind, {"Potato": "".join(f"{line}\n" for line in lines)}), [str(one) for one in refused]
