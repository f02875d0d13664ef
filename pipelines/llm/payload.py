"""What is sent: the JSON body of one request, and the key by which its answer is found again.

A body holds all that decides the answer and nothing else: not where the model is served, what it costs, how fast it is
asked.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipelines.llm.images import Image
from pipelines.llm.profiles import Profile
from pipelines.llm.prompts import Prompt, load
from pipelines.llm.questions import Message, Question

Payload = dict[str, Any]

_REPAIRS = Path(__file__).parent / "repairs"
# How far a reply that was cut short may be lengthened, in lengths of the profile: ours.
LONGEST = 4
# What stands for a reply without a word: vendors refuse an empty message.
_NOTHING = {"zh": "（没有内容）", "en": "(nothing)"}
# Between the instructions and the data where they share a message: prompts call the data the user message.
_DATA_BELOW = {"zh": "用户消息：", "en": "The user message:"}
# Keywords of a JSON schema that tell a model nothing, or that strict mode refuses.
_LEFT_OUT = frozenset({"title", "default"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Its bytes are not kept: there may be hundreds of thousands of requests."""

    payload: Payload
    key: str
    sample: int = 0
    images: tuple[Image, ...] = ()  # that the payload names
    lengthened: bool = False  # more room for the reply than the profile says, which a vendor may refuse

    @classmethod
    def of(
        cls, payload: Payload, sample: int = 0, images: tuple[Image, ...] = (), *, lengthened: bool = False
    ) -> "Request":
        """The request of a payload; `sample` tells several draws of it apart and is not sent."""
        return cls(payload, key_of(canonical(payload), sample), sample, images, lengthened)


def canonical(payload: Payload) -> bytes:
    """The one way to write a payload: keys in order, no spaces, UTF-8."""
    return json.dumps(payload, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def key_of(body: bytes, sample: int = 0) -> str:
    """SHA-256, in 64 hex digits, of canonical bytes and the index of the sample."""
    return hashlib.sha256(b"%b\n%d" % (body, sample)).hexdigest()


def payload(question: Question[Any], profile: Profile | None) -> Payload:
    """The body that asks `question` of the model of `profile`, or of those who write replies for the samples (None).

    The profile's temperature goes before the prompt's hint, and is sent to every model, unless it says "none". A model
    that thinks gets no hint: it would ignore the temperature, and the key would not; and it has the profile's whole
    length, since its chain counts. Others have the prompt's where that is shorter.
    """
    prompt = question.prompt
    messages = [_verbatim(one) for one in question.messages] or _framed(question)
    if profile is not None and not profile.system_prompt and messages[0]["role"] == "system":
        messages = _without_system(messages, "" if question.messages else _DATA_BELOW[_known(prompt.language)] + "\n")
    body: Payload = {"model": "written" if profile is None else profile.model, "messages": messages}
    if profile is None:
        return body
    temperature, room = profile.temperature, profile.max_tokens
    if not profile.thinking:
        temperature = prompt.temperature if temperature is None else temperature
        room = min(prompt.max_tokens or room, room)
    if isinstance(temperature, float):
        body["temperature"] = temperature
    body[profile.limit_field] = room
    if question.schema is not None and profile.structured != "none":
        body["response_format"] = _response_format(question.schema, profile.structured, prompt)
    return body | profile.extra_body


def lengthened(payload: Payload, profile: Profile) -> Payload | None:
    """The payload with room for twice as long a reply, or None where it has had all that it may."""
    longest = profile.max_tokens * LONGEST
    room = payload[profile.limit_field]
    return None if room >= longest else payload | {profile.limit_field: min(2 * room, longest)}


def repaired(payload: Payload, content: str, sentence: str, language: str) -> Payload:
    """The payload, its bad reply and, as a JSON string since it may quote the reply, what was wrong with it."""
    language = _known(language)
    repair = load(_REPAIRS / f"{language}.md").filled(problem=json.dumps(sentence, ensure_ascii=False))
    turns = [
        {"role": "assistant", "content": content if content.strip() else _NOTHING[language]},
        {"role": "user", "content": repair.text},
    ]
    return payload | {"messages": [*payload["messages"], *turns]}


def images_of(question: Question[Any]) -> tuple[Image, ...]:
    """The pictures that a question shows."""
    return tuple(image for message in question.messages for image in message.images)


def _framed(question: Question[Any]) -> list[Payload]:
    messages = [_message("system", question.prompt.text)]
    for exchange in question.before:
        messages += [_message("user", _data(exchange.inputs)), _message("assistant", exchange.reply)]
    return [*messages, _message("user", _data(question.inputs))]


def _verbatim(message: Message) -> Payload:
    if not message.images:
        return _message(message.role, message.text)
    text = [{"type": "text", "text": message.text}] if message.text else []
    return _message(message.role, [*(image.part for image in message.images), *text])


def _without_system(messages: list[Payload], between: str) -> list[Payload]:
    """The messages for a model that knows no system message: its text opens the first of the user's."""
    system, *rest = messages
    if not rest or rest[0]["role"] != "user":
        return [_message("user", system["content"]), *rest]
    opening, first = f"{system['content']}\n\n{between}", rest[0]["content"]
    content = opening + first if isinstance(first, str) else [{"type": "text", "text": opening}, *first]
    return [_message("user", content), *rest[1:]]


def _known(language: str) -> str:
    return language if language in _NOTHING else "zh"


def _message(role: str, content: Any) -> Payload:
    return {"role": role, "content": content}


def _data(inputs: Mapping[str, Any]) -> str:
    return json.dumps(inputs, ensure_ascii=False)


def _response_format(schema: type[BaseModel], structured: str, prompt: Prompt) -> dict[str, Any]:
    if structured == "json_schema":
        strict = {"name": schema.__name__, "strict": True, "schema": strict_schema(schema)}
        return {"type": "json_schema", "json_schema": strict}
    if "json" not in prompt.text.casefold():  # vendors refuse json_object where the word is missing
        raise ValueError(f"the prompt {prompt.id} wants a JSON reply and never says JSON")
    return {"type": "json_object"}


@cache
def strict_schema(record: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a record as strict mode wants it: every object closed, every field required. Ours and not
    the SDK's, so that no update of it changes a key.
    """
    schema: dict[str, Any] = _strict(record.model_json_schema())
    return schema


def _strict(node: Any, *, names: bool = False) -> Any:
    """A node of a schema. `names` says that the keys of `node` are names of fields or definitions, not keywords."""
    if isinstance(node, list):
        return [_strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _strict(value, names=not names and name in {"properties", "$defs"})
        for name, value in node.items()
        if names or name not in _LEFT_OUT
    }
    if not names and isinstance(kept.get("properties"), dict):
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept
