"""ESConv and FailedESConv (Liu et al., 2021): crowd workers' dialogues with the supporter's strategies."""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.forms import Form, Name, Names, OptionalText, Rating, flattened
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


class _Annotation(Form):
    strategy: Names = ()
    feedback: Rating = None


class _Turn(Form):
    speaker: Name  # speaker or seeker, listener or supporter, usr or sys
    content: str
    annotation: _Annotation | None = None


class _Dialogue(Form, extra="allow"):
    dialog: list[_Turn]
    situation: OptionalText = None
    emotion_type: OptionalText = None
    problem_type: OptionalText = None


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of dialogues; what else they hold (surveys) becomes attributes with dotted names."""
    return jsons.records(source, _Dialogue, _dialogue)


def _dialogue(where: str, record: _Dialogue) -> Dialogue:
    return Dialogue(
        where,
        tuple(_utterance(turn) for turn in record.dialog),
        topic=record.problem_type,
        situation=record.situation,
        emotion=record.emotion_type,
        attributes=tuple(flattened(record.model_extra)),
    )


def _utterance(turn: _Turn) -> Utterance:
    labels = turn.annotation or _Annotation()
    return Utterance(turn.speaker, turn.content, strategies=labels.strategy, feedback=labels.feedback)
