"""What a person reads and is asked of a task, the same on a sheet and on a page: in the words of guidelines/*.toml."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from pipelines.errors import RequestError
from pipelines.review.contract import CONTENTS, CerContent, CoeContent, Kind, RankContent, Task
from schemas.labels import SENTIMENTS, STAGES, STRATEGIES

COMMENT = "comment"
EDIT = "edit."  # before the level that a free text is the new text of
_FOLDER = Path(__file__).with_name("guidelines")


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(_Words):
    """One answer to a question: its value in the contract, its name, and what it means."""

    value: bool | str | int
    label: str
    means: str = ""


class Question(_Words):
    """A question with a closed answer; it stands beside the passage that it is `about`, or at the end."""

    field: str
    ask: str
    choices: tuple[Choice, ...]
    about: str | None = None


class Passage(NamedTuple):
    """A text that is to be read."""

    field: str
    title: str
    text: str


class FreeText(NamedTuple):
    """A text that may be written, beside the passage that it is `about`, or at the end."""

    field: str
    ask: str
    about: str | None


class Screen(NamedTuple):
    """All of a task: texts in the order of reading, questions in the order of answering, what may be written."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    texts: tuple[FreeText, ...]


class Section(NamedTuple):
    """A part of the guidelines: its heading, and its paragraphs."""

    title: str
    lines: tuple[str, ...]


class Crisis(_Words):
    """What to do in a crisis, as docs/crisis.md says it."""

    title: str
    opening: tuple[str, ...]
    numbers: tuple[tuple[str, str], ...]
    elsewhere: tuple[str, ...]
    if_somebody: tuple[str, ...]


class _Places(_Words):
    ask: str
    label: str


class Guideline(_Words):
    """The words of a kind: the texts' titles and meanings, the questions, what may be written."""

    title: str
    intro: tuple[str, ...]
    comment: str
    passages: Mapping[str, str]
    meanings: Mapping[str, str] = {}
    edits: Mapping[str, str] = {}
    questions: tuple[Question, ...] = ()
    places: _Places | None = None


@cache
def guideline_of(kind: Kind) -> Guideline:
    """The words of a kind."""
    words = Guideline.model_validate(_read(kind))
    named = {"stages": STAGES.explained("zh"), "sentiments": "、".join(SENTIMENTS.zh)}
    named["strategies"] = STRATEGIES.explained("zh")
    return words.model_copy(update={"meanings": {key: text.format(**named) for key, text in words.meanings.items()}})


@cache
def crisis() -> Crisis:
    """What to do in a crisis."""
    return Crisis.model_validate(_read("crisis"))


def sections_of(kind: Kind, medium: Literal["sheet", "page"]) -> tuple[Section, ...]:
    """The guidelines of a kind: how a sheet or a page is filled in, what to look at, what each choice means."""
    words = guideline_of(kind)
    meanings = (f"{words.passages[field]}：{text}" for field, text in words.meanings.items())
    choices = (
        f"{question.ask}{''.join(f'【{choice.label}】{choice.means}' for choice in question.choices)}"
        for question in words.questions
    )
    return (
        Section("怎么填", tuple(_read("working")[medium])),
        Section("看什么", (*words.intro, *meanings)),
        *([Section("怎么选", tuple(choices))] if words.questions else []),
    )


def screen_of(task: Task) -> Screen:
    """What a person sees of a task."""
    words = guideline_of(task.kind)
    content = CONTENTS[task.kind].model_validate(task.content)
    questions = words.questions
    match content:
        case CoeContent():
            passages = [Passage(field, title, getattr(content, field)) for field, title in words.passages.items()]
        case CerContent():
            passages = [
                *(
                    Passage(f"turn{n}", words.passages[turn.role], turn.text)
                    for n, turn in enumerate(content.history, 1)
                ),
                *(_titled(words, f"step{n}", text) for n, text in enumerate(content.steps, 1)),
                *(_titled(words, f"reply{n}", text) for n, text in enumerate(content.replies, 1)),
            ]
        case RankContent():
            answers = [
                Passage(f"answer{n}", words.passages["answer"].format(n=n), text)
                for n, text in enumerate(content.answers, 1)
            ]
            passages = [_titled(words, "question", content.question), *answers]
            if words.places:
                questions = tuple(_place(words.places, n, len(answers)) for n in range(1, len(answers) + 1))
        case _:
            raise TypeError(task.kind)
    if content.suggestion is not None:
        passages.append(_suggested(content.suggestion, questions))
    edits = (FreeText(f"{EDIT}{field}", ask, field) for field, ask in words.edits.items())
    return Screen(tuple(passages), questions, (*edits, FreeText(COMMENT, words.comment, None)))


def answers_of(kind: Kind, chosen: Mapping[str, Any], written: Mapping[str, str]) -> dict[str, Any]:
    """The answers of a task in the form of the contract, from a value a question and what was written, if any."""
    answers: dict[str, Any] = dict(chosen)
    if kind == "rank":
        answers = {"places": [chosen[f"place{n}"] for n in range(1, len(chosen) + 1)]}
    if kind == "coe":
        answers["edits"] = {
            field.removeprefix(EDIT): text for field, text in written.items() if field != COMMENT and text.strip()
        }
    return {**answers, "comment": written.get(COMMENT, "").strip()}


def batch_of(tasks: Iterable[Task], calibration: Iterable[Task]) -> list[Task]:
    """Tasks in the order in which a person meets them, those of `calibration` first, each once.

    Raises RequestError where there is none, or where they are of more than one kind or person.
    """
    batch = {task.task_id: task for task in (*calibration, *tasks)}
    kinds = {(task.kind, task.annotator) for task in batch.values()}
    if len(kinds) != 1:
        what = "the tasks are of more than one kind or person" if kinds else "there is no task to show"
        raise RequestError(what, hint="a sheet, or a page, is for one person and one kind of task")
    return list(batch.values())


def headings_of(batch: Sequence[Task], calibration: Iterable[Task]) -> list[str]:
    """How each task of a batch is headed, with its number among those of its sort."""
    first = len({task.task_id for task in calibration})
    rest = len(batch) - first
    return [
        *(f"练习 {n} / {first}" for n in range(1, first + 1)),
        *(f"第 {n} 题 / 共 {rest} 题" for n in range(1, rest + 1)),
    ]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _titled(words: Guideline, field: str, text: str) -> Passage:
    return Passage(field, words.passages[field], text)


def _suggested(answers: Mapping[str, Any], questions: Iterable[Question]) -> Passage:
    """What a model suggests, marked as a model's, below all that is to be judged."""
    words = _read("working")["suggestion"]
    chosen = {**answers, **{f"place{n}": place for n, place in enumerate(answers.get("places", ()), 1)}}
    lines = [
        f"{question.ask}{next(choice.label for choice in question.choices if choice.value == chosen[question.field])}"
        for question in questions
    ]
    lines += [f"{level}：{text}" for level, text in answers.get("edits", {}).items()]
    return Passage("suggestion", words["title"], "\n".join((words["note"], *lines)))


def _place(words: _Places, n: int, many: int) -> Question:
    choices = tuple(Choice(value=place, label=words.label.format(n=place)) for place in range(1, many + 1))
    return Question(field=f"place{n}", ask=words.ask.format(n=n), choices=choices, about=f"answer{n}")
