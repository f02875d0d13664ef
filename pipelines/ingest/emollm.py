"""EmoLLM's dialogues: rounds of `input` (the seeker) and `output` (the supporter), the first with a `system` prompt."""

from collections.abc import Iterator

from pipelines.ingest import jsons
from pipelines.ingest.forms import Form, OptionalText, flattened
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


class _Round(Form):
    input: str
    output: str
    system: OptionalText = None


class _Dialogue(Form, extra="allow"):
    conversation: list[_Round]


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of dialogues; what else they hold becomes attributes."""
    return jsons.records(source, _Dialogue, _dialogue)


def _dialogue(where: str, record: _Dialogue) -> Dialogue:
    utterances: list[Utterance] = []
    for one in record.conversation:
        utterances += Utterance("seeker", one.input), Utterance("supporter", one.output)
    systems = dict.fromkeys(one.system for one in record.conversation if one.system)
    attributes = (*(("system", prompt) for prompt in systems), *flattened(record.model_extra))
    return Dialogue(where, tuple(utterances), attributes=attributes)
