"""Dialogues in JSON or text, one an object, a file or a run of windows: researchers' sets, the forms of trainers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from pipelines.ingest import jsons
from pipelines.ingest.forms import AliasedForm, Form, Name, Names, OptionalText, Rating, Unfit, fill, flattened, kind
from pipelines.ingest.records import Broken, Dialogue, Record, Source, Utterance


class _Note(Form):
    label: OptionalText = None  # empty in all files of 2024


class _SmileTurn(Form):
    role: Name
    content: str
    annotation: list[_Note] | None = None


class _Smile(Form):
    turns: list[_SmileTurn]


def read_smile(source: Source) -> Iterator[Record | Broken]:
    """Reads SMILE (Qiu et al., 2024), PsyQA posts that ChatGPT rewrote: ``<number>.json``, a list of turns."""
    return jsons.whole_file(source, _smile)


def _smile(where: str, turns: object) -> Dialogue:
    if not isinstance(turns, list):
        raise Unfit("wrong_form", f"is {kind(turns)}, not a list of turns")
    utterances = (
        Utterance(turn.role, turn.content, tuple(note.label for note in turn.annotation or () if note.label))
        for turn in fill(_Smile, {"turns": turns}).turns
    )
    return Dialogue(where, tuple(utterances), source_id=PurePosixPath(where).stem)


_LABEL = re.compile(r"\s*(来访者|求助者|心理咨询师|咨询师|支持者)\s*[：:](.*)", re.DOTALL)


def read_cpsycoun(source: Source) -> Iterator[Record | Broken]:
    """Reads ``case_<n>.txt`` of CPsyCounD (Zhang et al., 2024): lines that begin with 来访者： or 心理咨询师：.

    The colon may be full- or half-width. A line without a label (a stage direction, an item of a list) goes on with
    the turn above it.
    """
    yield jsons.converted(source.name, source.text, _cpsycoun)


def _cpsycoun(where: str, text: str) -> Dialogue:
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


def read_cpsycoune(source: Source) -> Iterator[Record | Broken]:
    """Reads ``<topic>/<n>.json`` of CPsyCounE: a list of texts that begin with 求助者： or 支持者：."""
    return jsons.whole_file(source, _cpsycoune)


def _cpsycoune(where: str, texts: object) -> Dialogue:
    if not isinstance(texts, list) or any(isinstance(entry, dict) for entry in texts[:1]):
        raise Unfit("wrong_form", "is not a list of texts")
    utterances = []
    for number, text in enumerate(texts, start=1):
        label = _LABEL.fullmatch(text) if isinstance(text, str) else None
        if label is None:
            raise Unfit("unknown_role", f"entry {number} is {kind(text)} without a speaker's label")
        utterances.append(Utterance(label[1], label[2].rstrip("\r")))
    path = PurePosixPath(where)
    topic = path.parent.name or None
    source_id = f"{topic}/{path.stem}" if topic else path.stem
    return Dialogue(where, tuple(utterances), source_id=source_id, topic=topic)


class _Annotation(Form):
    strategy: Names = ()
    feedback: Rating = None


class _ESConvTurn(Form):
    speaker: Name  # speaker or seeker, listener or supporter, usr or sys
    content: str
    annotation: _Annotation | None = None


class _ESConv(Form, extra="allow"):
    dialog: list[_ESConvTurn]
    situation: OptionalText = None
    emotion_type: OptionalText = None
    problem_type: OptionalText = None


def read_esconv(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of ESConv or FailedESConv (Liu et al., 2021); what else a dialogue has becomes attributes."""
    return jsons.records(source, _ESConv, _esconv)


def _esconv(where: str, record: _ESConv) -> Dialogue:
    labelled = ((turn, turn.annotation or _Annotation()) for turn in record.dialog)
    return Dialogue(
        where,
        tuple(Utterance(turn.speaker, turn.content, its.strategy, feedback=its.feedback) for turn, its in labelled),
        topic=record.problem_type,
        situation=record.situation,
        emotion=record.emotion_type,
        attributes=tuple(flattened(record.model_extra)),
    )


_IN_WINDOW = re.compile(r"[0-9.]+ (?P<role>[01]) (?P<index>[0-9]{1,6}) (?P<text>.*)", re.DOTALL)
_END_OF_UTTERANCE = re.compile(r"\s+EOS\s+(?=[0-9.]+ [01] [0-9]+ )")
_STRATEGY = re.compile(r"\[(?P<strategy>[^\[\]]{1,60})\]\s*(?P<text>.*)", re.DOTALL)

_Window = dict[int, Utterance]


def read_esconv_tsv(source: Source) -> Iterator[Record | Broken]:
    """Reads ESConv as windows of up to five utterances (``…WithStrategy_short.tsv``), put together again, and the lines
    that belong to no dialogue.

    A line is a window: utterances joined by `` EOS ``, each ``weight role index [Strategy] text`` (role 0 the seeker, 1
    the supporter, who alone has a strategy; index from 0). Windows overlap: each line ends with the supporter's next
    utterance. One whose last index is not above the one before it begins the next dialogue. Seekers who write five
    lines and more push their first ones out of every window: such gaps stand in the attribute `missing_utterances`.
    """
    began = ""
    utterances: _Window = {}  # of the dialogue that began there
    windows: list[_Window] = []
    for number, line in enumerate(source.text.split("\n"), start=1):
        where = f"{source.name}:{number}"
        if not line.strip():
            continue
        window = _window(line)
        if window is None:
            yield Broken(where, "wrong_form", "is no window: `weight role index text EOS …`")
        elif not windows or (max(window) <= max(utterances) and window != windows[-1]):
            if windows:
                yield _of_windows(began, utterances, len(windows))
            began, utterances, windows = where, dict(window), [window]
        elif any(utterances.get(index, utterance) != utterance for index, utterance in window.items()):
            yield Broken(where, "unplaced_window", f"differs from the dialogue that begins at {began}")
        else:
            utterances |= window
            windows.append(window)
    if windows:
        yield _of_windows(began, utterances, len(windows))


def _of_windows(where: str, utterances: _Window, n_windows: int) -> Dialogue:
    indexes = sorted(utterances)
    missing = ", ".join(str(index) for index in range(indexes[-1]) if index not in utterances)
    gaps = (("missing_utterances", missing),) if missing else ()
    turns = tuple(utterances[index] for index in indexes)
    return Dialogue(where, turns, attributes=(("windows", str(n_windows)), *gaps))


def _window(line: str) -> _Window | None:
    window: _Window = {}
    for part in _END_OF_UTTERANCE.split(line):
        match = _IN_WINDOW.fullmatch(part.strip())
        if match is None:
            return None
        text = match["text"].strip()
        tagged = _STRATEGY.fullmatch(text)
        if match["role"] == "0":
            utterance = Utterance("seeker", text)
        elif tagged is None:
            utterance = Utterance("supporter", text)
        else:
            utterance = Utterance("supporter", tagged["text"].strip(), (tagged["strategy"].strip(),))
        window[int(match["index"])] = utterance
    return window if list(window) == list(range(min(window), max(window) + 1)) else None


class _Round(Form):
    input: str
    output: str
    system: OptionalText = None


class _EmoLLM(Form, extra="allow"):
    conversation: list[_Round]


def read_emollm(source: Source) -> Iterator[Record | Broken]:
    """Reads a JSON list of EmoLLM: rounds of `input` (the seeker) and `output`, the first with a `system` prompt."""
    return jsons.records(source, _EmoLLM, _emollm)


def _emollm(where: str, record: _EmoLLM) -> Dialogue:
    systems = dict.fromkeys(one.system for one in record.conversation if one.system)
    return _chat(where, _of_pairs([[one.input, one.output] for one in record.conversation]), [*systems], record)


class _Message(AliasedForm):
    role: Annotated[Name, Field(validation_alias=AliasChoices("role", "from"))]
    content: Annotated[str, Field(validation_alias=AliasChoices("content", "value"))]


class _Messages(AliasedForm, extra="allow"):
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


def read_messages(source: Source) -> Iterator[Record | Broken]:
    """Reads objects with `messages` (OpenAI, SoulChat), `conversations` (ShareGPT), or `instruction` and `output`.

    System prompts become attributes, and so does an object's `id`: across files of these forms it names nothing. A
    role of neither side (a tool's, say) drops the dialogue.
    """
    return jsons.objects(source, _messages)


def _messages(where: str, value: dict[str, object]) -> Dialogue:
    record: _Messages | _Alpaca
    if any(value.get(key) is not None for key in ("instruction", "output")):  # some files have every form's keys
        record = fill(_Alpaca, value)
        last = "\n".join(filter(None, (record.instruction, record.input)))  # the two are the last question
        messages = _of_pairs([*(record.history or []), [last, record.output]])
    else:
        record = fill(_Messages, value)
        messages = [(message.role, message.content) for message in record.messages]
    systems = [*filter(None, [record.system]), *(text for role, text in messages if role == "system")]
    return _chat(where, messages, systems, record, record.topic)


def _of_pairs(pairs: Sequence[list[str]]) -> list[tuple[str, str]]:
    """Messages of pairs of question and answer."""
    return [message for question, answer in pairs for message in (("seeker", question), ("supporter", answer))]


def _chat(
    where: str, messages: list[tuple[str, str]], systems: list[Any], record: Form, topic: str | None = None
) -> Dialogue:
    utterances = tuple(Utterance(role, text) for role, text in messages if role != "system")
    attributes = (*(("system", prompt) for prompt in systems), *flattened(record.model_extra))
    return Dialogue(where, utterances, topic=topic, attributes=attributes)
