"""AvaMERG (Zhang et al., 2025): EmpatheticDialogues with speech, talking faces and chains of empathy.

A JSON list of conversations: `conversation_id`, `speaker_profile`, `listener_profile` and `topic` (training split),
and `turns`. A turn is a *view* of the conversation: `context` (the situation), `dialogue_history` up to a speaker's
utterance (`index`, `role`, `utterance`), `response` of the listener and `chain_of_empathy` (the test split has
neither). The views of one conversation are laid over each other; where they contradict each other it is dropped.

The clips are named by a rule and not in the JSON: ``dia<conversation_id>utt<index>_<profile ID>`` as .wav and .mp4.
Where an utterance names its own files, those count.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, Unfit, flattened, rest
from pipelines.ingest.records import Broken, Dialogue, Media, Record, Source, Utterance

CLIP_LICENCE = "not stated"

_AUDIO = ("audio", "audio_path", "audio_name", "wav")
_VIDEO = ("video", "video_path", "video_name", "mp4")
_TEXT = ("utterance", "text", "content")
_CLIPS = (("wav", "audio"), ("mp4", "video"))
_USED = ("conversation_id", "turns", "topic")


class _Said(NamedTuple):
    role: str
    text: str
    media: tuple[Media, ...]


def read(source: Source) -> Iterator[Record | Broken]:
    """The conversations of a JSON list."""
    return jsons.records(source, _dialogue)


def _dialogue(where: str, record: Node) -> Dialogue:
    record.needs("conversation_id", "turns")
    name = record.name("conversation_id")
    said: dict[int, _Said] = {}
    emotions: dict[int, str] = {}
    attributes: list[tuple[str, str]] = []
    views = record.nodes("turns")
    for view in views:
        last = _lay(view, said, record, name)
        chain = view.node("chain_of_empathy").value if view.has("chain_of_empathy") else {}
        if isinstance(emotion := chain.get("speaker_emotion"), str) and emotion.strip():
            emotions[last] = emotion.strip()
        others = {key: value for key, value in chain.items() if key != "speaker_emotion"}
        attributes.extend(flattened(others, f"chain_of_empathy.{last}"))
    if sorted(said) != list(range(len(said))):
        raise Unfit("wrong_order", "the utterances are not numbered one by one from 0")
    return Dialogue(
        where,
        tuple(
            Utterance(one.role, one.text, emotion=emotions.get(index), media=one.media)
            for index, one in sorted(said.items())
        ),
        source_id=name,
        topic=record.maybe_text("topic"),
        situation=next((text for view in views if (text := view.maybe_text("context"))), None),
        attributes=(*rest(record, *_USED), *attributes),
    )


def _lay(view: Node, said: dict[int, _Said], record: Node, name: str) -> int:
    """Lays the view over what is there; returns the index of the last utterance of its history."""
    history = view.nodes("dialogue_history")
    if not history:
        raise Unfit("missing_field", f"`{view.path}dialogue_history` is empty")
    last = 0
    for i, one in enumerate(history):
        last = one.number("index") if one.has("index") else i
        _put(view, said, last, _Said(one.name("role"), one.text(*_TEXT).strip(), _clips(one, record, name, last)))
    if view.has("response"):
        response, path = view.value["response"], f"{view.path}response"
        one = Node({"utterance": response} if isinstance(response, str) else view.node("response").value, f"{path}.")
        clips = _clips(Node({**one.value, "role": "listener"}), record, name, last + 1)
        _put(view, said, last + 1, _Said("listener", one.text(*_TEXT).strip(), clips))
    return last


def _put(view: Node, said: dict[int, _Said], index: int, one: _Said) -> None:
    there = said.setdefault(index, one)
    if (there.role, there.text) != (one.role, one.text):
        raise Unfit("contradiction", f"`{view.path.rstrip('.')}` has another utterance {index} than the view before it")


def _clips(one: Node, record: Node, name: str, index: int) -> tuple[Media, ...]:
    named = [
        Media(uri, kind, licence=CLIP_LICENCE)
        for kind, keys in (("audio", _AUDIO), ("video", _VIDEO))
        if (uri := one.maybe_text(*keys))
    ]
    if named:
        return tuple(named)
    profile = f"{one.name('role')}_profile"
    voice = record.node(profile).maybe_name("ID", "id") if record.has(profile) else None
    if voice is None:
        return ()
    clip = f"dia{name}utt{index}_{voice}"
    return tuple(Media(f"{clip}.{end}", kind, licence=CLIP_LICENCE) for end, kind in _CLIPS)
