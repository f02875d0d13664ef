"""What Potato shows and asks: a task as an item of its data file, a kind as its configuration.

Potato is GPL-3: files and HTTP lead to it, never an import. A project of Potato has the same questions for all its
items, so that rankings of three answers and of four are two projects. Its words are those of sheets and pages
(`questions`).
"""

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.review.contract import Task
from pipelines.review.questions import EDIT, Choice, crisis, guideline_of, screen_of, sections_of
from schemas.ids import digest

# In the folder of a project. Potato adds `output` and files of its own.
CONFIG, ITEMS, USERS, STYLE, OUTPUT = "config.yaml", "items.jsonl", "users.jsonl", "page.css", "output"
WHOSE = "annotators"  # of an item: who is to see it
_JOINER = "\u2060"
_STYLE = Path(__file__).with_name("potato.css")
_WORKING = (
    "一屏一题，题目只有您自己的。左边读，右边答；答案点了就存，可以随时停下，下次登录接着做。",
    "答完点“下一个”。要改前面的，用顶上的箭头或题号回去改。最后一题答完，页面会说已经完成。",
    "请不要把题里的文字转发给别人：它们可能出自真实的求助。",
)


def project_of(task: Task) -> str:
    """The project of a task: its kind, of a ranking how many answers there are, and whether a model suggests any."""
    name = f"rank-{len(task.content['answers'])}" if task.kind == "rank" else task.kind
    return f"{name}-suggested" if task.content.get("suggestion") else name


def item_id(task: Task) -> str:
    """The id of a task in Potato: it says nothing to who sees it, and another text has another."""
    return digest(f"{task.task_id}\n{task.shown}")


def item_of(task: Task) -> dict[str, Any]:
    """A task as a line of Potato's data file. The page has all of it in its source: so nothing but what is shown."""
    passages = screen_of(task).passages
    turns = [{"speaker": one.title, "text": _inert(one.text)} for one in passages if _is_turn(one.field)]
    texts = {one.field: _inert(one.text) for one in passages if not _is_turn(one.field)}
    return {"id": item_id(task), WHOSE: [task.annotator], **({"dialogue": turns} if turns else {}), **texts}


def _inert(text: str) -> str:
    """A text that cannot end or begin a script. Potato writes items into a script of the page, and escapes nothing
    there; so after a `<` that might begin a tag comes a joiner of words, which nobody sees.
    """
    return re.sub(r"<(?=[^\W\d_]|[/!?])", f"<{_JOINER}", text)


def as_written(text: str) -> str:
    """What somebody wrote, who may have copied it from the page."""
    return text.replace(f"<{_JOINER}", "<")


def schema_name(field: str) -> str:
    """The name of a question in Potato, which makes ids of HTML of it."""
    return field.replace(EDIT, "edit_")


def choice_name(choice: Choice) -> str:
    """The name of a choice in Potato: text, as all that it stores."""
    return choice.value if isinstance(choice.value, str) else json.dumps(choice.value)


def configuration(tasks: Sequence[Task], people: Sequence[str], keys: dict[str, str]) -> dict[str, Any]:
    """The configuration of a project with these tasks, all of one project.

    `keys` are the signing key of its sessions (`secret_key`) and the key of its administrator (`admin_api_key`), which
    nobody is given.
    """
    first = tasks[0]
    return {
        "annotation_task_name": guideline_of(first.kind).title,
        "task_dir": ".",
        "output_annotation_dir": OUTPUT,
        "data_files": [ITEMS],
        # The field `text_key` of any item is read by whoever knows its id (/api/spans): so it is the id.
        "item_properties": {"id_key": "id", "text_key": "id"},
        "host": "127.0.0.1",
        "require_password": True,
        "authentication": {"method": "in_memory", "user_config_path": USERS},
        "user_config": {"allow_all_users": False, "users": list(people)},
        **keys,
        # A restart, for what is pushed while people work, logs nobody out.
        "persist_sessions": True,
        "session_lifetime_days": 30,
        "assignment_strategy": "batch",
        "batch_assignment": {"annotator_key": WHOSE},
        "max_annotations_per_item": 1,
        "max_annotations_per_user": -1,
        "ui_language": "zh",
        "ui": {"theme": "light"},
        "base_css": STYLE,
        "annotation_instructions": _instructions(first),
        "custom_footer_html": _crisis_line(),
        # Of what people do on the page it keeps how long they take, and no copy of the texts to search in.
        "interaction_tracking": {"enabled": False},
        "search": {"enabled": False},
        "pocket": {"enabled": False},
        "instance_display": {"resizable": False, "fields": list(_fields(first))},
        "annotation_schemes": list(_schemes(first)),
    }


def style() -> str:
    """The stylesheet of the page."""
    return _STYLE.read_text(encoding="utf-8")


def _is_turn(field: str) -> bool:
    return field.startswith("turn")


def _fields(task: Task) -> Iterable[dict[str, Any]]:
    passages = screen_of(task).passages
    if any(_is_turn(one.field) for one in passages):
        yield {"key": "dialogue", "type": "dialogue", "label": "对话"}
    yield from ({"key": one.field, "type": "text", "label": one.title} for one in passages if not _is_turn(one.field))


def _schemes(task: Task) -> Iterable[dict[str, Any]]:
    screen = screen_of(task)
    for question in screen.questions:
        yield {
            "annotation_type": "radio",
            "name": schema_name(question.field),
            "description": question.ask,
            "label_requirement": {"required": True},
            "labels": [{"name": choice_name(one), "displayed_label": one.label} for one in question.choices],
        }
    for text in screen.texts:
        yield {
            "annotation_type": "text",
            "name": schema_name(text.field),
            "description": text.ask,
            "multiline": True,
            "rows": 1,
        }


def _instructions(task: Task) -> str:
    """The guidelines and what to do in a crisis, folded: one line each until somebody opens them."""
    _, *sections = sections_of(task.kind, "page")
    rules = [("怎么填", _WORKING), *((section.title, section.lines) for section in sections)]
    help_ = crisis()
    numbers = tuple(f"{number}　{what}" for number, what in help_.numbers)
    lines = [(help_.title, (*help_.opening, *numbers, *help_.elsewhere)), (help_.if_somebody[0], help_.if_somebody[1:])]
    return _folded("标注说明（点开）", rules) + _folded(f"{help_.title}（点开）", lines)


def _folded(title: str, sections: Iterable[tuple[str, Iterable[str]]]) -> str:
    parts = (
        f"<p><strong>{html.escape(heading)}</strong></p>"
        f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
        for heading, lines in sections
    )
    return f"<details><summary>{html.escape(title)}</summary>{''.join(parts)}</details>"


def _crisis_line() -> str:
    numbers = "　".join(f"{number} {what}" for number, what in crisis().numbers[:3])
    return f'<div class="review-crisis">觉得撑不住时请停下来，找人说话：{html.escape(numbers)}</div>'
