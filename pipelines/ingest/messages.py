"""Forms that trainers read: `messages` (OpenAI, SoulChat), ShareGPT's `conversations`, LLaMA-Factory's Alpaca.

One reader reads them all. An object's own `id` goes to the attributes: across files of these forms it names nothing.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AliasChoices, Field

from pipelines.ingest import jsons
from pipelines.ingest.forms import AliasedForm, Form, Name, OptionalText, fill, flattened
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


class _Message(AliasedForm):
    role: Annotated[Name, Field(validation_alias=AliasChoices("role", "from"))]
    content: Annotated[str, Field(validation_alias=AliasChoices("content", "value"))]


class _Chat(AliasedForm, extra="allow"):
    messages: Annotated[list[_Message], Field(validation_alias=AliasChoices("conversations", "messages"))]
    system: OptionalText = None
    topic: OptionalText = None


class _Alpaca(Form, extra="allow"):
    instruction: OptionalText
    output: str
    input: OptionalText = None
    history: list[Annotated[list[str], Field(min_length=2, max_length=2)]] | None = None
    system: OptionalText = None
    topic: OptionalText = None


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list or JSON lines of objects with `messages`, `conversations`, or `instruction` and `output`.

    System prompts become attributes. A role of neither side (a tool's, say) drops the dialogue.
    """
    return jsons.objects(source, _dialogue)


def _dialogue(where: str, value: dict[str, object]) -> Dialogue:
    record: _Chat | _Alpaca
    if any(value.get(key) is not None for key in ("instruction", "output")):  # some files have every form's keys
        record = fill(_Alpaca, value)
        messages = _of_pairs(record)
    else:
        record = fill(_Chat, value)
        messages = [(message.role, message.content) for message in record.messages]
    systems = [*filter(None, [record.system]), *(text for role, text in messages if role == "system")]
    return Dialogue(
        where,
        tuple(Utterance(role, text) for role, text in messages if role != "system"),
        topic=record.topic,
        attributes=(*(("system", prompt) for prompt in systems), *flattened(record.model_extra)),
    )


def _of_pairs(record: _Alpaca) -> list[tuple[str, str]]:
    """`history` holds pairs of question and answer; `instruction` and `input` together are the last question."""
    last = "\n".join(filter(None, (record.instruction, record.input)))
    pairs = [*(record.history or []), [last, record.output]]
    return [message for question, answer in pairs for message in (("seeker", question), ("supporter", answer))]
