"""Every command in the pages is one that there is, with arguments that it takes."""

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import typer
from test_examples import command_of

from pipelines.settings import ROOT

PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if not path.name.endswith(".zh.md"))
USAGE_ERROR = typer.BadParameter.__bases__[0]  # typer has it under no name of its own
_BLOCK = re.compile(r"^```console\n(.*?)^```$|((?:^    .*\n)+)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^ *(?:\$ )?(?:\.venv/bin/)?gongqing (.*)$")


def lines(path: Path) -> Iterator[str]:
    """The commands of console blocks and of indented ones."""
    for block in _BLOCK.findall(path.read_text(encoding="utf-8")):
        for line in "".join(block).splitlines():
            if match := _LINE.match(line):
                yield match.group(1)


def problem(line: str) -> str | None:
    words = [*takewhile(lambda word: word not in {"|", ">", "&&"}, shlex.split(line, comments=True))]
    command, arguments = command_of(words)
    if arguments == words:
        return "no command"
    try:
        with command.make_context("gongqing", arguments):
            return None
    except USAGE_ERROR as error:
        return error.format_message()


def test_what_a_page_has_one_type_is_taken():
    found = [(path.name, line) for path in PAGES for line in lines(path)]
    assert len(found) > 80
    problems = {f"{page}: gongqing {line}": why for page, line in found if (why := problem(line))}
    assert problems == {}
    assert problem("refresh --no-such-option") is not None
    assert problem("no-such-command") == "no command"
