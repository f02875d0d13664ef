"""ESConv and FailedESConv (Liu et al., 2021): crowd workers' dialogues with the supporter's strategies."""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, Unfit, rest
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance

_COLUMNS = ("dialog", "situation", "emotion_type", "problem_type")


def read(source: Source) -> Iterator[Record | Broken]:
    """A JSON list of `dialog`, `situation`, `emotion_type`, `problem_type`, `experience_type`, `survey_score`.

    A turn has `speaker` (speaker or seeker, listener or supporter, usr or sys), `content`, and `annotation` with
    `strategy` or `feedback`. All other fields of a dialogue become attributes with dotted names.
    """
    return jsons.records(source, _dialogue)


def _dialogue(where: str, record: Node) -> Dialogue:
    record.needs("dialog")
    turns = record.nodes("dialog")
    for turn in turns[:1]:
        turn.needs("speaker", "content")
    return Dialogue(
        where,
        tuple(_utterance(turn) for turn in turns),
        topic=record.maybe_text("problem_type"),
        situation=record.maybe_text("situation"),
        emotion=record.maybe_text("emotion_type"),
        attributes=rest(record, *_COLUMNS),
    )


def _utterance(turn: Node) -> Utterance:
    annotation = turn.node("annotation") if turn.has("annotation") else Node({})
    feedback = annotation.maybe_number("feedback")
    if feedback is not None and not 1 <= feedback <= 5:
        raise Unfit("wrong_value", f"`{annotation.path}feedback` is not 1 … 5")
    return Utterance(
        turn.name("speaker"),
        turn.text("content"),
        strategies=annotation.names("strategy"),
        feedback=feedback,
    )
