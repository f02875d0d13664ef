"""What the pages of the docs have: their commands, and their blocks by language."""

import re
from textwrap import dedent

from pipelines.settings import ROOT

_DOCS = ROOT / "docs"
PAGES = [path.name for path in sorted(_DOCS.glob("*.md")) if not path.name.endswith(".zh.md")]
_SHELL = re.compile(r"^```(?:console|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"((?:^ {4,}\S.*\n(?:^\n(?= {4}))?)+)", re.MULTILINE)
_PROGRAM = (
    r"(?:\.venv(?:-train)?/bin/)?(?:gongqing|hf|pip)|scrapy|python[0-9.]*|inspect|export|make|ray|vllm|systemctl|sudo"
    r"|rsync|cp|touch"
)
_COMMAND = re.compile(rf"^ *(?:\$ )?((?:[A-Z_]+=\S+ )*(?:{_PROGRAM})(?: .*)?)$")


def text_of(page: str) -> str:
    return (_DOCS / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    """The commands of blocks for a shell and of indented ones, without comments."""
    text = text_of(page)
    found = [line for block in (*_SHELL.findall(text), *_INDENTED.findall(text)) for line in block.splitlines()]
    return [match[1].split("  # ")[0].strip() for line in found if (match := _COMMAND.match(line))]


def prompted(page: str) -> list[str]:
    """All lines behind a prompt, without comments."""
    return [line.split("  # ")[0].strip() for line in re.findall(r"^\$ (.*)$", text_of(page), re.MULTILINE)]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE)


def languages(page: str) -> set[str]:
    """Of its fenced blocks: empty for one that names none."""
    return set(re.findall(r"^```(\w*)\n.*?^```$", text_of(page), re.DOTALL | re.MULTILINE))


def indented(page: str, begins: str) -> list[str]:
    """The indented blocks that begin so."""
    found = map(dedent, _INDENTED.findall(text_of(page)))
    return [block for block in found if block.startswith(begins)]
