"""EmoLLM's dialogues: rounds of `input` and `output`, the first with a `system` prompt."""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, rest
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


def read(source: Source) -> Iterator[Record | Broken]:
    """A JSON list of `conversation`: rounds of `input` (the seeker) and `output` (the supporter)."""
    return jsons.records(source, _dialogue)


def _dialogue(where: str, record: Node) -> Dialogue:
    record.needs("conversation")
    rounds = record.nodes("conversation")
    for first in rounds[:1]:
        first.needs("input", "output")
    systems = [prompt for said in rounds if (prompt := said.maybe_text("system"))]
    return Dialogue(
        where,
        tuple(
            utterance
            for said in rounds
            for utterance in (Utterance("seeker", said.text("input")), Utterance("supporter", said.text("output")))
        ),
        attributes=(*(("system", prompt) for prompt in dict.fromkeys(systems)), *rest(record, "conversation")),
    )
