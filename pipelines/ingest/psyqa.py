"""PsyQA (Sun et al., 2021): questions of Xinli001 with long answers, most of them with strategy spans."""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, Unfit
from pipelines.ingest.records import Answer, Broken, Post, Record, Source, Span
from schemas.taxonomy import split_keywords


def read(source: Source) -> Iterator[Record | Broken]:
    """A JSON list of `question`, `description`, `keywords`, `answers`, `questionID`."""
    return jsons.records(source, _post)


def _post(where: str, record: Node) -> Post:
    record.needs("question", "answers")
    topic, subtopics = split_keywords(_keywords(record))
    answers: list[Answer] = []
    broken: list[Broken] = []
    for i, value in enumerate(record.items("answers")):
        place = f"{where}.answers[{i}]"
        try:
            answers.append(_answer(place, Node({"answer": value}).node("answer")))
        except Unfit as unfit:
            broken.append(Broken(place, unfit.reason, unfit.detail, unit="answer"))
    return Post(
        where,
        title=record.text("question"),
        description=record.maybe_text("description") or "",
        answers=tuple(answers),
        broken_answers=tuple(broken),
        source_id=record.name("questionID"),
        topic=topic,
        subtopics=tuple(subtopics),
    )


def _keywords(record: Node) -> list[str]:
    """Main topic and subtopics, in one text with commas between them."""
    return (record.maybe_text("keywords") or "").replace("，", ",").split(",")


def _answer(where: str, record: Node) -> Answer:
    labels = record.nodes("labels_sequence") if record.has("labels_sequence") else []
    return Answer(
        where,
        record.text("answer_text"),
        spans=tuple(Span(label.text("type"), label.number("start"), label.number("end")) for label in labels),
    )
