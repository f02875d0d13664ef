"""What is sent: the JSON body of one request, and the key by which its answer is found again.

A body holds all that decides the answer and nothing else: not where the model is served, what it costs, how fast it is
asked. In the place of a picture it holds the hash of its bytes: so do the key and the ledger; `sendable` puts it in.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipelines.llm.images import Image
from pipelines.llm.profiles import Profile
from pipelines.llm.prompts import load
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
# Made once: with other options than its own `json.dumps` makes one for every call.
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DATA = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Its bytes are not kept: there may be hundreds of thousands of requests."""

    payload: Payload
    key: str
    sample: int = 0
    repair: bool = False  # it follows a reply to the same question that was wrong or cut short
    lengthened: bool = False  # more room for the reply than the profile says, which a vendor may refuse
    images: tuple[Image, ...] = ()  # whose hashes stand in the payload

    @classmethod
    def of(
        cls,
        payload: Payload,
        sample: int = 0,
        *,
        repair: bool = False,
        lengthened: bool = False,
        images: tuple[Image, ...] = (),
    ) -> "Request":
        """The request of a payload; `sample` tells several draws of it apart and is not sent."""
        return cls(payload, key_of(canonical(payload), sample), sample, repair, lengthened, images)


def canonical(payload: Payload) -> bytes:
    """The one way to write a payload: keys in order, no spaces, UTF-8."""
    return _CANONICAL.encode(payload).encode()


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
    if question.messages:
        messages = [_message(one.role, _content(one)) for one in question.messages]
        if profile is not None and not profile.system_prompt:
            messages = _without_system(messages)
    else:
        messages = [_message("system", prompt.text)]
        for exchange in question.before:
            messages += [_message("user", _data(exchange.inputs)), _message("assistant", exchange.reply)]
        messages.append(_message("user", _data(question.inputs)))
        if profile is not None and not profile.system_prompt:
            first = f"{prompt.text}\n\n{_DATA_BELOW[_known(prompt.language)]}\n{messages[1]['content']}"
            messages[:2] = [_message("user", first)]
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
        instructions = "\n".join(texts_of(body)) if question.messages else prompt.text
        body["response_format"] = _response_format(question.schema, profile.structured, prompt.id, instructions)
    return body | profile.extra_body


def sendable(request: Request) -> Payload:
    """The payload of a request with its pictures in it. Raises UnreadableFile for one that is gone or another."""
    if not request.images:
        return request.payload
    sent = {image.part["image_url"]["url"]: image.sent for image in request.images}
    messages = [
        one
        if isinstance(one["content"], str)
        else one | {"content": [sent.get(part.get("image_url", {}).get("url"), part) for part in one["content"]]}
        for one in request.payload["messages"]
    ]
    return request.payload | {"messages": messages}


def texts_of(payload: Mapping[str, Any]) -> Iterator[str]:
    """All texts of its messages."""
    for message in payload.get("messages", ()):
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (part["text"] for part in content if part.get("type") == "text")


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


def _known(language: str) -> str:
    return language if language in _NOTHING else "zh"


def _message(role: str, content: str | list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "content": content}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    return [_text(part) if isinstance(part, str) else part.part for part in message.content]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _without_system(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same where a model takes no system message: the first is a part of the user's that follows it."""
    first, *rest = messages
    if first["role"] != "system":
        return [first, *rest]
    if not rest or rest[0]["role"] != "user":
        return [_message("user", first["content"]), *rest]
    content = rest[0]["content"]
    if isinstance(first["content"], str) and isinstance(content, str):
        together: Any = f"{first['content']}\n\n{content}"
    else:
        lists = ([_text(one)] if isinstance(one, str) else one for one in (first["content"], content))
        together = [part for parts in lists for part in parts]
    return [_message("user", together), *rest[1:]]


def _data(inputs: Mapping[str, Any]) -> str:
    return _DATA.encode(inputs)


def _response_format(schema: type[BaseModel], structured: str, prompt: str, instructions: str) -> dict[str, Any]:
    if structured == "json_schema":
        strict = {"name": schema.__name__, "strict": True, "schema": strict_schema(schema)}
        return {"type": "json_schema", "json_schema": strict}
    # Vendors refuse json_object where the word is missing.
    if "JSON" not in instructions and "json" not in instructions.casefold():
        raise ValueError(f"the prompt {prompt} wants a JSON reply and never says JSON")
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
