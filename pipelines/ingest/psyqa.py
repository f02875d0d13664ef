"""PsyQA (Sun et al., 2021): questions of Xinli001 with long answers, most of them with strategy spans."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from pipelines.ingest import jsons
from pipelines.ingest.forms import Form, Name, Number, OptionalText, Unfit, fill
from pipelines.ingest.records import Answer, Broken, Post, Record, Source, Span
from schemas.taxonomy import split_keywords


class _Label(Form):
    type: str
    start: Number
    end: Number


class _Answer(Form):
    answer_text: str
    labels_sequence: list[_Label] | None = None


class _Question(Form):
    question: str
    answers: list[Any]
    question_id: Annotated[Name, Field(alias="questionID")]
    description: OptionalText = None
    keywords: OptionalText = None


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of questions; an answer that does not fit is dropped alone."""
    return jsons.records(source, _Question, _post)


def _post(where: str, question: _Question) -> Post:
    answers: list[Answer] = []
    broken: list[Broken] = []
    for i, value in enumerate(question.answers):
        place = f"{where}.answers[{i}]"
        try:
            answer = fill(_Answer, value, "answer")
        except Unfit as unfit:
            broken.append(Broken(place, unfit.reason, unfit.detail, unit="answer"))
        else:
            spans = tuple(Span(label.type, label.start, label.end) for label in answer.labels_sequence or ())
            answers.append(Answer(place, answer.answer_text, spans=spans))
    topic, subtopics = split_keywords((question.keywords or "").replace("，", ",").split(","))
    return Post(
        where,
        question.question,
        question.description or "",
        tuple(answers),
        tuple(broken),
        source_id=question.question_id,
        topic=topic,
        subtopics=tuple(subtopics),
    )
