"""Tasks of one person as one page that needs no network and no server: its answers are saved to a file of labels.

Texts are data for its one script, which shows them as text; the page's policy allows that script and no other, and no
address at all.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelines.core.files import write_whole
from pipelines.review.contract import Task
from pipelines.review.questions import batch_of, crisis, guideline_of, headings_of, screen_of, sections_of
from schemas.ids import digest

_FOLDER = Path(__file__).with_name("templates")
_ASIDE = re.compile(r"turn\d+|question|answer")  # texts that are read for the sake of the others


def write_page(tasks: Iterable[Task], path: Path, calibration: Iterable[Task] = ()) -> None:
    """Write the tasks of one person as an HTML page, those of `calibration` first.

    Raises RequestError for tasks of more than one kind or person, and for none.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    calibration = list(calibration)
    batch = batch_of(tasks, calibration)
    kind, annotator = batch[0].kind, batch[0].annotator
    words = guideline_of(kind)
    style, script = (_read(name) for name in ("page.css", "page.js"))
    items = [_item(task, heading) for task, heading in zip(batch, headings_of(batch, calibration), strict=True)]
    data = {
        "key": digest("\n".join(f"{task.task_id} {task.shown}" for task in batch)),
        "kind": kind,
        "annotator": annotator,
        "file": f"labels-{kind}-{annotator}.jsonl",
        "items": items,
    }
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    html = environment.from_string(_read("page.html.j2")).render(
        title=words.title,
        crisis=crisis(),
        sections=sections_of(kind, "page"),
        data=data,
        style=Markup(style),  # noqa: S704 -- both are files of ours
        script=Markup(script),  # noqa: S704
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    write_whole(path, html.encode())


def _item(task: Task, heading: str) -> dict[str, Any]:
    screen = screen_of(task)
    supporter = guideline_of(task.kind).passages.get("supporter")
    return {
        "heading": heading,
        "task_id": task.task_id,
        "shown": task.shown,
        "passages": [
            passage._asdict()
            | {"aside": bool(_ASIDE.fullmatch(passage.field)), "supporter": passage.title == supporter}
            for passage in screen.passages
        ],
        "questions": [question.model_dump() for question in screen.questions],
        "texts": [text._asdict() for text in screen.texts],
    }


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which a policy lets in exactly this script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
