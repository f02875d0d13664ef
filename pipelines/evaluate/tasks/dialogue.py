"""What the dialogue benchmarks share: seekers, the supporter who is evaluated, replies with a marked field."""

import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import UnreadableFile
from pipelines.evaluate.answering import answer_of
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import InvalidReply
from pipelines.llm.replies import Verdict, read_json
from pipelines.trainsets.prompt_sets import cer_system_prompt
from schemas.reasoning import CER_TAGS, COE_TAGS, ECOT_TAGS

T = TypeVar("T", bound=Verdict)
_Text = Annotated[str, Field(min_length=1)]
Turns = list[dict[str, str]]
CHAIN_TAGS = tuple(dict.fromkeys((*COE_TAGS, *ECOT_TAGS)))


class Seeker(BaseModel):
    """A seeker's profile, a line of a file: who it is (`player`), what has happened (`scene`), what it wants of the
    talk (`task`), and its type (`character`). Other fields of a published profile are left alone.
    """

    model_config = ConfigDict(strict=True)

    id: _Text
    player: _Text
    scene: _Text
    task: _Text
    character: _Text
    topic: str = ""


def read_seekers(path: str) -> MemoryDataset:
    """The profiles of a file of JSON lines as samples. Raises UnreadableFile for a line that is none, and a second one
    of an id.
    """
    samples: dict[str, Sample] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"no profiles: {error}", where=path, hint="name a file of JSON lines in UTF-8") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            seeker = Seeker.model_validate(json.loads(line))
        except (ValueError, ValidationError, RecursionError) as error:
            wrong = (
                {str(one["loc"][0]) for one in error.errors() if one["loc"]}
                if isinstance(error, ValidationError)
                else ()
            )
            problem = f"no profile of a seeker{': ' if wrong else ''}{', '.join(sorted(wrong))}"
            hint = f"a JSON object with texts as {', '.join(Seeker.model_fields)}; topic may be left out"
            raise UnreadableFile(problem, where=f"{path}, line {number}", hint=hint) from error
        if seeker.id in samples:
            raise UnreadableFile("an id stands there twice", where=f"{path}, line {number}", hint="name each apart")
        samples[seeker.id] = Sample(input=seeker.scene, id=seeker.id, metadata=seeker.model_dump())
    if not samples:
        raise UnreadableFile("no profiles of seekers", where=path, hint="a line a seeker (docs/evaluating.md)")
    return MemoryDataset(list(samples.values()), name=Path(path).stem)


def card_of(metadata: dict[str, Any]) -> dict[str, str]:
    """What the one who plays a seeker is told of it."""
    return {name: metadata[name] for name in ("player", "scene", "task", "character")}


async def ask_record(model: Model, name: str, inputs: dict[str, Any], record: type[T], draw: int) -> T:
    """A reply that is one JSON object of a record's fields: scores stand in a marked field, and no number in prose is
    read. A reply of another form is asked for again once. Raises InvalidReply for a second one.
    """
    messages = _question(name, inputs)
    reply = (await model.generate(messages, config=GenerateConfig(seed=draw))).completion
    try:
        return read_json(reply, record)
    except (InvalidReply, ValidationError) as error:
        problem = str(error) if isinstance(error, InvalidReply) else "; ".join(one["msg"] for one in error.errors())
        again = ChatMessageUser(content=f"上面的回复不合格式：{problem}。请重新只输出那一个 JSON 对象。")
        messages = [*messages, ChatMessageAssistant(content=reply or "（没有内容）"), again]
        return read_json((await model.generate(messages, config=GenerateConfig(seed=draw))).completion, record)


async def ask_words(model: Model, name: str, inputs: dict[str, Any], draw: int) -> str:
    """What a seeker says next."""
    return (await model.generate(_question(name, inputs), config=GenerateConfig(seed=draw))).completion.strip()


async def reply_of(model: Model, turns: Turns, form: str, draw: int) -> str:
    """What the supporter who is evaluated says: of C's form (`cer`), as of a chain of E's or M's, the response alone
    reaches the seeker. What cannot be read as a response is an empty one.
    """
    system = cer_system_prompt("zh").text if form == "cer" else prompt("supporter", __file__).text
    messages: list[ChatMessage] = [ChatMessageSystem(content=system)]
    for turn in turns:
        kind = ChatMessageUser if turn["role"] == "seeker" else ChatMessageAssistant
        messages.append(kind(content=turn["text"]))
    output = (await model.generate(messages, config=GenerateConfig(seed=draw))).completion
    return answer_of(output, CER_TAGS if form == "cer" else CHAIN_TAGS) or ""


def as_text(turns: Turns) -> str:
    """A dialogue as inspect's viewer shows it."""
    return "\n".join(f"{turn['role']}: {turn['text']}" for turn in turns)


def _question(name: str, inputs: dict[str, Any]) -> list[ChatMessage]:
    system = prompt(name, __file__).text
    return [ChatMessageSystem(content=system), ChatMessageUser(content=json.dumps(inputs, ensure_ascii=False))]
