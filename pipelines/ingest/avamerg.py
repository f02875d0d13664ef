"""AvaMERG (Zhang et al., 2025): EmpatheticDialogues with speech, talking faces and chains of empathy.

A turn is a *view* of its conversation: `context`, `dialogue_history` up to a speaker's utterance, the listener's
`response` and `chain_of_empathy` (the test split has neither). The views are laid over each other; a conversation whose
views contradict each other is dropped. Clips are named by a rule, ``dia<conversation_id>utt<index>_<profile ID>`` as
.wav and .mp4, unless an utterance names its own files. None is needed: the talks are those of a set of texts.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from pipelines.ingest import forms, jsons
from pipelines.ingest.forms import AliasedForm, Form, Name, OptionalName, OptionalNumber, OptionalText, Unfit, flattened
from pipelines.ingest.records import Broken, Dialogue, Media, Record, Source, Utterance

CLIP_LICENCE = "not stated"


class _Utterance(AliasedForm):
    role: Name
    text: Annotated[str, Field(validation_alias=AliasChoices("utterance", "text", "content"))]
    index: OptionalNumber = None
    audio: OptionalText = Field(None, validation_alias=AliasChoices("audio", "audio_path", "audio_name", "wav"))
    video: OptionalText = Field(None, validation_alias=AliasChoices("video", "video_path", "video_name", "mp4"))


def _of_listener(response: object) -> object:
    value = {"utterance": response} if isinstance(response, str) else response
    return {**value, "role": "listener"} if isinstance(value, dict) else value


class _View(Form):
    dialogue_history: Annotated[list[_Utterance], Field(min_length=1)]
    response: Annotated[_Utterance | None, BeforeValidator(_of_listener)] = None
    chain_of_empathy: dict[str, Any] | None = None
    context: OptionalText = None


class _Profile(AliasedForm):
    voice: OptionalName = Field(None, validation_alias=AliasChoices("ID", "id"))


class _Conversation(Form, extra="allow"):
    conversation_id: Name
    turns: list[_View]
    topic: OptionalText = None


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of conversations; profiles, chains of empathy and what else they hold become attributes."""
    return jsons.records(source, _Conversation, _dialogue)


def _dialogue(where: str, record: _Conversation) -> Dialogue:
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


def _add(utterances: dict[int, Utterance], index: int, spoken: _Utterance, record: _Conversation, view: int) -> None:
    utterance = Utterance(spoken.role, spoken.text.strip(), media=_clips(spoken, record, index))
    known = utterances.setdefault(index, utterance)
    if known[:2] != utterance[:2]:
        raise Unfit("contradiction", f"`turns[{view}]` has another utterance {index} than the view before it")


def _clips(spoken: _Utterance, record: _Conversation, index: int) -> tuple[Media, ...]:
    clips = [(spoken.audio, "audio"), (spoken.video, "video")]
    key = f"{spoken.role}_profile"
    profile = (record.model_extra or {}).get(key)
    if not any(uri for uri, _ in clips) and profile is not None:
        voice = forms.fill(_Profile, profile, key).voice
        clip = voice and f"dia{record.conversation_id}utt{index}_{voice}"
        clips = [(clip and f"{clip}.wav", "audio"), (clip and f"{clip}.mp4", "video")]
    return tuple(Media(uri, kind, licence=CLIP_LICENCE) for uri, kind in clips if uri)
