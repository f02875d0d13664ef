"""Talks with recordings, whose clips are named and never needed: AvaMERG and MESC."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from pipelines.errors import UnreadableFile
from pipelines.ingest import jsons
from pipelines.ingest.delimited import Delimited, Row
from pipelines.ingest.forms import (
    AliasedForm,
    Form,
    Name,
    Number,
    OptionalName,
    OptionalNumber,
    OptionalText,
    Unfit,
    fill,
    flattened,
)
from pipelines.ingest.records import Broken, Dialogue, Media, Record, Source, Utterance

_AVAMERG_LICENCE = "not stated"


class _Spoken(AliasedForm):
    role: Name
    text: Annotated[str, Field(validation_alias=AliasChoices("utterance", "text", "content"))]
    index: OptionalNumber = None
    audio: OptionalText = Field(None, validation_alias=AliasChoices("audio", "audio_path", "audio_name", "wav"))
    video: OptionalText = Field(None, validation_alias=AliasChoices("video", "video_path", "video_name", "mp4"))


def _of_listener(response: object) -> object:
    value = {"utterance": response} if isinstance(response, str) else response
    return {**value, "role": "listener"} if isinstance(value, dict) else value


class _View(Form):
    dialogue_history: Annotated[list[_Spoken], Field(min_length=1)]
    response: Annotated[_Spoken | None, BeforeValidator(_of_listener)] = None
    chain_of_empathy: dict[str, Any] | None = None
    context: OptionalText = None


class _Profile(AliasedForm):
    voice: OptionalName = Field(None, validation_alias=AliasChoices("ID", "id"))


class _Conversation(Form, extra="allow"):
    conversation_id: Name
    turns: list[_View]
    topic: OptionalText = None


def read_avamerg(source: Source) -> Iterator[Record | Broken]:
    """Reads AvaMERG (Zhang et al., 2025): EmpatheticDialogues with speech, talking faces and chains of empathy.

    A turn is a *view* of its conversation: `context`, `dialogue_history` up to a speaker's utterance, the listener's
    `response` and `chain_of_empathy` (the test split has neither). The views are laid over each other; a conversation
    whose views contradict each other is dropped. Clips are named by a rule,
    ``dia<conversation_id>utt<index>_<profile ID>`` as .wav and .mp4, unless an utterance names its own files.

    Profiles, chains of empathy and what else conversations hold become attributes.
    """
    return jsons.records(source, _Conversation, _avamerg)


def _avamerg(where: str, record: _Conversation) -> Dialogue:
    utterances: dict[int, Utterance] = {}
    emotions: dict[int, str] = {}
    attributes = [*flattened(record.model_extra)]
    for n, view in enumerate(record.turns):
        last = 0
        for i, spoken in enumerate(view.dialogue_history):
            last = i if spoken.index is None else spoken.index
            _add(utterances, last, spoken, record, n)
        if view.response is not None:
            _add(utterances, last + 1, view.response, record, n)
        chain = dict(view.chain_of_empathy or {})
        emotion = chain.pop("speaker_emotion", None)
        if isinstance(emotion, str) and emotion.strip():
            emotions[last] = emotion.strip()
        attributes += flattened(chain, f"chain_of_empathy.{last}")
    if sorted(utterances) != list(range(len(utterances))):
        raise Unfit("wrong_order", "the utterances are not numbered one by one from 0")
    return Dialogue(
        where,
        tuple(utterances[index]._replace(emotion=emotions.get(index)) for index in sorted(utterances)),
        source_id=record.conversation_id,
        topic=record.topic,
        situation=next((view.context for view in record.turns if view.context), None),
        attributes=tuple(attributes),
    )


def _add(utterances: dict[int, Utterance], index: int, spoken: _Spoken, record: _Conversation, view: int) -> None:
    utterance = Utterance(spoken.role, spoken.text.strip(), media=_clips(spoken, record, index))
    known = utterances.setdefault(index, utterance)
    if known[:2] != utterance[:2]:
        raise Unfit("contradiction", f"`turns[{view}]` has another utterance {index} than the view before it")


def _clips(spoken: _Spoken, record: _Conversation, index: int) -> tuple[Media, ...]:
    clips = [(spoken.audio, "audio"), (spoken.video, "video")]
    key = f"{spoken.role}_profile"
    profile = (record.model_extra or {}).get(key)
    if not any(uri for uri, _ in clips) and profile is not None:
        voice = fill(_Profile, profile, key).voice
        clip = voice and f"dia{record.conversation_id}utt{index}_{voice}"
        clips = [(clip and f"{clip}.wav", "audio"), (clip and f"{clip}.mp4", "video")]
    return tuple(Media(uri, kind, licence=_AVAMERG_LICENCE) for uri, kind in clips if uri)


_MESC_LICENCE = "all rights reserved (HBO); the video is not part of the set"

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


def read_mesc(source: Source) -> Iterator[Record | Broken]:
    """Reads ``MESC.csv`` (Chu et al., 2024): the sessions of the TV series *In Treatment*, an utterance a row, with
    times of the video.

    The set's train, val and test.json are refused: to each text they append a model's description of the speaker's
    face, with nothing to tell the two apart. The text is a transcript of all that is said: no clip is needed. A
    dialogue with a row that does not fit is Broken, a lost row is a gap.
    """
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
        yield jsons.converted(rows[0].where, rows, _mesc)


def _mesc(where: str, rows: list[Row]) -> Dialogue:
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
        clips = (Media(uri, "video", None, line.start, line.end, _MESC_LICENCE),)
    return Utterance(line.speaker, line.text, strategies, line.emotion, media=clips)
