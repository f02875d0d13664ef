"""CPsyCoun (Zhang et al., 2024): dialogues that a model wrote from counselling reports (D), and a test set (E)."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from pipelines.ingest import jsons
from pipelines.ingest.forms import Unfit, kind
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance

_LABEL = re.compile(r"\s*(来访者|求助者|心理咨询师|咨询师|支持者)\s*[：:](.*)", re.DOTALL)


def read(source: Source) -> Iterator[Record | Broken]:
    """Reads ``case_<n>.txt`` of CPsyCounD: lines that begin with 来访者： or 心理咨询师：, blank lines between them.

    The colon may be full- or half-width. A line without a label (a stage direction, an item of a list) goes on with
    the turn above it.
    """
    yield jsons.converted(source.name, source.text, _case)


def read_evaluation(source: Source) -> Iterator[Record | Broken]:
    """Reads ``<topic>/<n>.json`` of CPsyCounE: a list of texts that begin with 求助者： or 支持者：."""
    return jsons.whole_file(source, _evaluation)


def _case(where: str, text: str) -> Dialogue:
    turns: list[tuple[str, list[str]]] = []
    unlabelled = None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if label := _LABEL.fullmatch(line):
            turns.append((label[1], [label[2]]))
        elif turns:
            turns[-1][1].append(line)
        elif line.strip() and unlabelled is None:
            unlabelled = number
    if not turns:
        raise Unfit("wrong_form", "has no line that begins with 来访者： or 心理咨询师：")
    if unlabelled:
        raise Unfit("unlabelled_text", f"line {unlabelled} stands before the first speaker")
    utterances = tuple(Utterance(role, "\n".join(lines).strip()) for role, lines in turns)
    return Dialogue(where, utterances, source_id=PurePosixPath(where).stem.removeprefix("case_"))


def _evaluation(where: str, texts: object) -> Dialogue:
    if not isinstance(texts, list) or any(isinstance(entry, dict) for entry in texts[:1]):
        raise Unfit("wrong_form", "is not a list of texts")
    path = PurePosixPath(where)
    topic = path.parent.name or None
    return Dialogue(
        where,
        tuple(_utterance(i, text) for i, text in enumerate(texts)),
        source_id=f"{topic}/{path.stem}" if topic else path.stem,
        topic=topic,
    )


def _utterance(i: int, text: object) -> Utterance:
    label = _LABEL.fullmatch(text) if isinstance(text, str) else None
    if label is None:
        raise Unfit("unknown_role", f"entry {i + 1} is {kind(text)} without a speaker's label")
    return Utterance(label[1], label[2].rstrip("\r"))
