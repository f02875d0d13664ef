"""MESC (Chu et al., 2024): the sessions of the TV series *In Treatment*, an utterance a row, with times of the video.

Read is ``MESC.csv``. The set's train, val and test.json are refused: to each text they append a model's description of
the speaker's face, with nothing to tell the two apart. The text is a transcript of all that is said: no clip is needed.
"""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from pipelines.errors import UnreadableFile
from pipelines.ingest.delimited import Delimited, Row
from pipelines.ingest.forms import Form, Number, OptionalNumber, OptionalText, Unfit, fill
from pipelines.ingest.jsons import converted
from pipelines.ingest.records import Broken, Dialogue, Media, Record, Source, Utterance

VIDEO_LICENCE = "all rights reserved (HBO); the video is not part of the set"

_COLUMNS = {
    "dialogue": ("Dialogue_ID", "dialog_id", "conversation_id"),
    "utterance": ("Utterance_ID", "utt_id", "turn_id"),
    "speaker": ("Speaker", "role"),
    "text": ("Utterance", "text"),
    "emotion": ("Emotion",),
    "strategy": ("Strategy",),  # `undefined` for the client
    "season": ("Season",),
    "episode": ("Episode",),
    "start": ("StartTime", "start"),
    "end": ("EndTime", "end"),
}
_REQUIRED = ("dialogue", "utterance", "speaker", "text")
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})[,.](\d{3})")


def _milliseconds(value: str) -> int | None:
    if not value:
        return None
    time = _TIME.fullmatch(value)
    if time is None:
        raise Unfit("wrong_value", "is not a time of the form 00:00:00,000")
    hours, minutes, seconds, milliseconds = map(int, time.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


def _text(value: str) -> str:
    if not value:
        raise Unfit("missing_field", "is empty")
    return value


_Time = Annotated[int | None, BeforeValidator(_milliseconds)]
_Text = Annotated[str, BeforeValidator(_text)]


class _Line(Form):
    dialogue: _Text
    utterance: Annotated[Number, Field(ge=0)]
    speaker: str
    text: _Text
    emotion: OptionalText = None
    strategy: OptionalText = None
    season: OptionalNumber = None
    episode: OptionalNumber = None
    start: _Time = None
    end: _Time = None


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads the dialogues of a CSV file; a dialogue with a row that does not fit is Broken, a lost row is a gap."""
    if source.text.lstrip().startswith(("[", "{")):
        raise UnreadableFile(
            "the JSON files of MESC mix a model's description of the video into what people say",
            where=source.name,
            hint="read MESC.csv",
        )
    dialogues: dict[str, list[Row]] = {}
    for row in Delimited(source).named_rows(_COLUMNS, _REQUIRED):
        if isinstance(row, Broken):
            yield row
        else:
            dialogues.setdefault(row.values["dialogue"].strip(), []).append(row)
    for rows in dialogues.values():
        yield converted(rows[0].where, rows, _dialogue)


def _dialogue(where: str, rows: list[Row]) -> Dialogue:
    lines = [fill(_Line, {key: value.strip() for key, value in row.values.items()}, f"line {row.line}") for row in rows]
    ordered = {line.utterance: line for line in lines}
    if len(ordered) < len(lines):
        raise Unfit("wrong_order", "two utterances have the same number")
    first = lines[0]
    attributes = [(key, str(value)) for key in ("season", "episode") if (value := getattr(first, key)) is not None]
    if missing := [str(number) for number in range(max(ordered)) if number not in ordered]:
        attributes.append(("missing_utterances", ", ".join(missing)))
    utterances = tuple(_utterance(ordered[number]) for number in sorted(ordered))
    return Dialogue(where, utterances, source_id=first.dialogue, attributes=tuple(attributes))


def _utterance(line: _Line) -> Utterance:
    strategies = (line.strategy,) if line.strategy and line.strategy != "undefined" else ()
    clips: tuple[Media, ...] = ()
    if None not in (line.season, line.episode, line.start, line.end):  # the passage of the series
        uri = f"in-treatment/s{line.season:02}e{line.episode:02}"
        clips = (Media(uri, "video", None, line.start, line.end, VIDEO_LICENCE),)
    return Utterance(line.speaker, line.text, strategies, line.emotion, media=clips)
