"""Forms that trainers read: `messages` (OpenAI, SoulChat), ShareGPT's `conversations`, LLaMA-Factory's Alpaca.

All are read by one reader. An object's own `id` goes to the attributes: across files of these forms it names nothing.
"""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, Unfit, rest
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance

_ALPACA = ("instruction", "input", "output", "system", "history", "topic")


def read(source: Source) -> Iterator[Record | Broken]:
    """A JSON list or JSON lines of objects with `messages`, `conversations`, or `instruction` and `output`.

    System prompts become attributes; any other role that is neither side's (a tool's, say) drops the dialogue.
    """
    return jsons.records(source, _dialogue)


def _dialogue(where: str, record: Node) -> Dialogue:
    topic = record.maybe_text("topic")
    if record.has("instruction", "output"):
        systems = [prompt] if (prompt := record.maybe_text("system")) else []
        return Dialogue(where, _alpaca(record), topic=topic, attributes=_attributes(systems, record, *_ALPACA))
    key = "conversations" if record.has("conversations") else "messages"
    record.needs(key)
    turns = record.nodes(key)
    for turn in turns[:1]:
        turn.needs(*(("from", "value") if "from" in turn.value else ("role", "content")))
    said = [(turn.name("role", "from"), turn) for turn in turns]
    systems = [turn.text("content", "value") for role, turn in said if role == "system"]
    if prompt := record.maybe_text("system"):
        systems.insert(0, prompt)
    return Dialogue(
        where,
        tuple(Utterance(role, turn.text("content", "value")) for role, turn in said if role != "system"),
        topic=topic,
        attributes=_attributes(systems, record, key, "topic", "system"),
    )


def _alpaca(record: Node) -> tuple[Utterance, ...]:
    """`history` holds pairs of question and answer; `instruction` and `input` together are the last question."""
    record.needs("instruction", "output")
    history = record.items("history") if record.has("history") else []
    last = "\n".join(filter(None, (record.maybe_text("instruction"), record.maybe_text("input"))))
    pairs = [*(_pair(pair, i) for i, pair in enumerate(history)), (last, record.text("output"))]
    return tuple(
        utterance
        for asked, answered in pairs
        for utterance in (Utterance("seeker", asked), Utterance("supporter", answered))
    )


def _pair(pair: object, i: int) -> tuple[str, str]:
    match pair:
        case [str(asked), str(answered)]:
            return asked, answered
        case _:
            raise Unfit("wrong_type", f"`history[{i}]` is not two texts")


def _attributes(systems: list[str], record: Node, *used: str) -> tuple[tuple[str, str], ...]:
    return (*(("system", prompt) for prompt in systems), *rest(record, *used))
