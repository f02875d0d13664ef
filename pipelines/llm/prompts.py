"""Prompt files: Markdown with front matter, in `prompts/` beside the code that uses them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from pipelines.errors import UnreadableFile
from schemas.ids import digest


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `version` changes whenever its text does, even where nobody raised the number."""

    id: str
    version: str
    text: str

    @property
    def name(self) -> str:
        """`id@version`: what is written beside every row made with it."""
        return f"{self.id}@{self.version}"

    def filled(self, **values: str) -> "Prompt":
        """The prompt with its `$names` replaced; the version follows the text that is sent."""
        text = Template(self.text).substitute(values)
        return Prompt(self.id, _version(self.version.split("-")[0], text), text)


@cache
def load(path: Path) -> Prompt:
    """The prompt in a file: front matter between `---` lines with `id` and `version`, then the text.

    Raises UnreadableFile where the front matter is missing or incomplete.
    """
    head, _, body = path.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    text = body.strip()
    if not text or not {"id", "version"} <= fields.keys():
        raise UnreadableFile("a prompt without front matter", where=path, remedy="begin it with id and version")
    return Prompt(fields["id"], _version(fields["version"], text), text)


def _version(number: str, text: str) -> str:
    return f"{number}-{digest(text, 8)}"
