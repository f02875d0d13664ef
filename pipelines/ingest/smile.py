"""SMILE (Qiu et al., 2024): PsyQA posts that ChatGPT rewrote into dialogues. One file a dialogue."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from pipelines.ingest import jsons
from pipelines.ingest.forms import Form, Name, OptionalText, Unfit, fill, kind
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


class _Note(Form):
    label: OptionalText = None  # empty in all files of 2024


class _Turn(Form):
    role: Name
    content: str
    annotation: list[_Note] | None = None


class _File(Form):
    turns: list[_Turn]


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads ``<number>.json``: a list of turns of a client and a counselor."""
    return jsons.whole_file(source, _dialogue)


def _dialogue(where: str, turns: object) -> Dialogue:
    if not isinstance(turns, list):
        raise Unfit("wrong_form", f"is {kind(turns)}, not a list of turns")
    return Dialogue(
        where,
        tuple(
            Utterance(turn.role, turn.content, tuple(note.label for note in turn.annotation or () if note.label))
            for turn in fill(_File, {"turns": turns}).turns
        ),
        source_id=PurePosixPath(where).stem,
    )
