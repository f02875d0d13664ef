"""Prompt files: Markdown with front matter, in `prompts/` beside the code that uses them."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template

from pipelines.errors import UnreadableFile
from schemas.ids import digest


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `version` changes whenever its text does, even where nobody raised the number.

    The rest are hints of the front matter: the language it is in, the alias of the model and the name of the record
    that it was written for, and how its reply is to be drawn, which a profile may know better (`llm.payload`).
    """

    id: str
    version: str
    text: str
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
    """The prompt in a file: front matter between `---` lines with `id` and `version`, then the text.

    It may also name `language`, `model`, `schema`, `temperature` and `max_tokens`.

    Raises UnreadableFile where the front matter is missing or incomplete, or a number in it is none.
    """
    head, _, body = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    text = body.strip()
    if not text or not {"id", "version"} <= fields.keys():
        raise UnreadableFile("a prompt without front matter", where=path, hint="begin it with id and version")
    try:
        temperature = float(fields["temperature"]) if "temperature" in fields else None
        max_tokens = int(fields["max_tokens"]) if "max_tokens" in fields else None
    except ValueError as error:
        raise UnreadableFile(
            f"a prompt whose front matter has a number that is none: {error}",
            where=path,
            hint="give temperature as a number, max_tokens as a whole one, without remarks behind them",
        ) from error
    return Prompt(
        fields["id"],
        _version(fields["version"], text),
        text,
        fields.get("language", "zh"),
        fields.get("model"),
        fields.get("schema"),
        temperature,
        max_tokens,
    )


def _version(number: str, text: str) -> str:
    return f"{number}-{digest(text, 8)}"
