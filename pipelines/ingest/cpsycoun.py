"""CPsyCoun (Zhang et al., 2024): dialogues that a model wrote from counselling reports (D), and a test set (E)."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from pipelines.ingest import jsons
from pipelines.ingest.fields import Unfit, kind
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance
from pipelines.ingest.turns import labelled_lines

_LABEL = re.compile(r"\s*(来访者|求助者|心理咨询师|咨询师|支持者)\s*[：:](.*)", re.DOTALL)


def read(source: Source) -> Iterator[Record | Broken]:
    """``case_<n>.txt`` of CPsyCounD: lines that begin with 来访者： or 心理咨询师：, blank lines between them.

    The colon may be full- or half-width. A line without a label (a stage direction, an item of a list) goes on with
    the turn above it.
    """
    yield jsons.fitted(source.name, partial(_case, source))


def read_evaluation(source: Source) -> Iterator[Record | Broken]:
    """``<topic>/<n>.json`` of CPsyCounE: a list of texts that begin with 求助者： or 支持者：."""
    element = jsons.whole(source)
    if isinstance(element, Broken):
        yield element
    else:
        yield jsons.fitted(source.name, partial(_evaluation, source.name, element.value))


def _case(source: Source) -> Dialogue:
    if not any(map(_label, source.text.split("\n"))):
        raise Unfit("wrong_form", "has no line that begins with 来访者： or 心理咨询师：")
    utterances = labelled_lines(source.text, _label)
    return Dialogue(source.name, tuple(utterances), source_id=PurePosixPath(source.name).stem.removeprefix("case_"))


def _evaluation(where: str, texts: object) -> Dialogue:
    if not isinstance(texts, list):
        raise Unfit("wrong_form", f"is {kind(texts)}, not a list of texts")
    if any(isinstance(entry, dict) for entry in texts[:1]):
        raise Unfit("wrong_form", "is a list of objects, not of texts")
    path = PurePosixPath(where)
    topic = path.parent.name or None
    return Dialogue(
        where,
        tuple(_utterance(i, text) for i, text in enumerate(texts)),
        source_id=f"{topic}/{path.stem}" if topic else path.stem,
        topic=topic,
    )


def _utterance(i: int, text: object) -> Utterance:
    labelled = _label(text) if isinstance(text, str) else None
    if labelled is None:
        raise Unfit("unknown_role", f"entry {i + 1} is {kind(text)} without a speaker's label")
    return Utterance(*labelled)


def _label(line: str) -> tuple[str, str] | None:
    found = _LABEL.fullmatch(line)
    return None if found is None else (found[1], found[2].rstrip("\r"))
