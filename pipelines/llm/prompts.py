"""Prompt files: Markdown with front matter, in `prompts/` beside the code that uses them; the closed sets they name."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pipelines.errors import UnreadableFile
from schemas.ids import digest
from schemas.labels import EMOTIONS, RISKS, SENTIMENTS, STAGES, STRATEGIES
from schemas.taxonomy import TAXONOMY


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Prompt:
    """One prompt. `version` changes whenever its text does, even where nobody raised the number.

    The rest are hints of the front matter: the language it is in, the alias of the model and the name of the record
    that it was written for, and how its reply is to be drawn, which a profile may know better (`llm.payload`).
    """

    id: str
    version: str
    text: Annotated[str, Field(min_length=1)]
    language: str = "zh"
    model: str | None = None
    schema: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    @property
    def name(self) -> str:
        """`id@version`: what is written beside every row made with it."""
        return f"{self.id}@{self.version}"

    def filled(self, **values: str) -> "Prompt":
        """The prompt with its `$names` replaced; the version follows the text that is sent."""
        text = Template(self.text).substitute(values)
        return replace(self, version=_version(self.version.split("-")[0], text), text=text)


@cache
def load(path: Path) -> Prompt:
    """The prompt in a file: front matter (fields of `Prompt`) between `---` lines, the text. Raises UnreadableFile."""
    head, _, body = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    text = body.strip()
    try:
        prompt = TypeAdapter(Prompt).validate_python({**fields, "text": text})
    except ValidationError as error:
        wrong = "; ".join(f"{one['loc'][-1]}: {one['msg']}" for one in error.errors())
        raise UnreadableFile(
            f"a prompt with other front matter than it must have: {wrong}",
            where=path,
            hint="begin it with id and version; temperature is a number, max_tokens a whole one, without a remark",
        ) from error
    return replace(prompt, version=_version(prompt.version, text))


@cache
def prompt(name: str, module: str) -> Prompt:
    """The prompt `prompts/<name>.md` beside a module (its `__file__`). Only what is a `$name` in it is filled in.

    The version follows what was filled in: another taxonomy is another question, and is asked again.
    """
    loaded = load(Path(module).parent / "prompts" / f"{name}.md")
    return loaded.filled(**LABEL_SETS[loaded.language])


def names(module: str) -> tuple[str, ...]:
    """Every prompt beside a module, named by its `__file__`."""
    return tuple(sorted(path.stem for path in (Path(module).parent / "prompts").glob("*.md")))


def _version(number: str, text: str) -> str:
    return f"{number}-{digest(text, 8)}"


# What prompts are filled in with, by language: the closed sets, and what the stages and strategies of C mean.
LABEL_SETS = {
    "zh": {
        "stages": STAGES.explained("zh"),
        "sentiments": "、".join(SENTIMENTS.zh),
        "strategies": STRATEGIES.explained("zh"),
        "emotions": "、".join(EMOTIONS.zh),
        "risks": "、".join(RISKS),
        "taxonomy": "\n".join(f"- {topic}：{'、'.join(subtopics)}" for topic, subtopics in TAXONOMY.items()),
    },
    "en": {
        "stages": STAGES.explained("en"),
        "sentiments": ", ".join(SENTIMENTS.en),
        "strategies": STRATEGIES.explained("en"),
    },
}
