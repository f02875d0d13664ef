"""Posts with answers: PsyQA, and tables of questions and answers."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from pipelines.ingest import jsons
from pipelines.ingest.delimited import Delimited, Row
from pipelines.ingest.forms import Form, Name, Number, OptionalText, fill
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


def read_psyqa(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of PsyQA (Sun et al., 2021); an answer that does not fit is dropped alone."""
    return jsons.records(source, _Question, _psyqa)


def _psyqa(where: str, question: _Question) -> Post:
    topic, subtopics = split_keywords((question.keywords or "").replace("，", ",").split(","))
    places = ((f"{where}.answers[{i}]", value) for i, value in enumerate(question.answers))
    return Post(
        where,
        question.question,
        question.description or "",
        *jsons.answers(places, _psyqa_answer),
        source_id=question.question_id,
        topic=topic,
        subtopics=tuple(subtopics),
    )


def _psyqa_answer(where: str, value: object) -> Answer:
    answer = fill(_Answer, value, "answer")
    spans = (Span(label.type, label.start, label.end) for label in answer.labels_sequence or ())
    return Answer(where, answer.answer_text, spans=tuple(spans))


_COLUMNS = {
    "title": ("title", "question", "标题", "问题"),
    "description": ("description", "ask", "content", "描述", "提问"),
    "answer": ("answer", "answer_text", "reply", "response", "回答", "答案"),
    "topic": ("department", "topic", "category", "科室", "主题", "类别"),
}


def read_qa_csv(source: Source) -> Iterator[Record | Broken]:
    """Reads a CSV file of a header and an answer a row; the description and the topic may be missing.

    Rows with exactly the same title and description are one post. A record is such a post, or a row that cannot be
    read; a second equal answer to a post is an answer dropped.
    """
    posts: dict[tuple[str, str], list[Row]] = {}
    for row in Delimited(source).named_rows(_COLUMNS, required=("title", "answer")):
        if isinstance(row, Broken):
            yield row
        else:
            posts.setdefault((row.values["title"], row.values.get("description", "")), []).append(row)
    for (title, description), rows in posts.items():
        topics = dict.fromkeys(topic for row in rows if (topic := row.values.get("topic", "").strip()))
        yield Post(
            rows[0].where,
            title,
            description,
            tuple(Answer(row.where, row.values["answer"]) for row in rows),
            topic=next(iter(topics), None),
            subtopics=tuple(topics)[1:],
        )
