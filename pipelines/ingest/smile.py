"""SMILE (Qiu et al., 2024): PsyQA posts that ChatGPT rewrote into dialogues. One file a dialogue."""

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from pipelines.ingest import jsons
from pipelines.ingest.fields import Node, Unfit, kind
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


def read(source: Source) -> Iterator[Record | Broken]:
    """``<number>.json``: a list of turns with `role` (client, counselor), `content` and, at times, `annotation`."""
    element = jsons.whole(source)
    if isinstance(element, Broken):
        yield element
    else:
        yield jsons.fitted(source.name, partial(_dialogue, source.name, element.value))


def _dialogue(where: str, turns: object) -> Dialogue:
    if not isinstance(turns, list):
        raise Unfit("wrong_form", f"is {kind(turns)}, not a list of turns")
    record = Node({"turns": turns})
    for turn in record.nodes("turns")[:1]:
        turn.needs("role", "content")
    return Dialogue(
        where,
        tuple(Utterance(turn.name("role"), turn.text("content"), _strategies(turn)) for turn in record.nodes("turns")),
        source_id=PurePosixPath(where).stem,
    )


def _strategies(turn: Node) -> tuple[str, ...]:
    """The labels of the turn's sentences; empty ones, which is all there are in the files of 2024, say nothing."""
    if not turn.has("annotation"):
        return ()
    return tuple(label for note in turn.nodes("annotation") if (label := note.maybe_text("label")))
