"""The help of every command ends with an example, which fits a terminal, and which the command takes."""

import shlex
from collections.abc import Iterator

import pytest
import typer.rich_utils
from typer.main import get_command
from typer.testing import CliRunner

from pipelines.cli import app


def commands(command=None, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command and group; those of `gongqing` itself are none."""
    command = command or get_command(app)
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *path, name)


COMMANDS = [*commands()]


def command_of(words: list[str]):
    """The command that some words name, and the arguments that are left for it."""
    command = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_there_are_commands_and_commands_of_groups():
    assert len(COMMANDS) > 40
    assert {("refresh",), ("review", "export"), ("ledger", "close-budget")} <= {*COMMANDS}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_ends_with_an_example_that_fits_80_columns(path, monkeypatch):
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 80)
    monkeypatch.setattr(typer.rich_utils, "COLOR_SYSTEM", None)
    last = CliRunner().invoke(app, [*path, "--help"]).output.rstrip().splitlines()[-1].strip()
    assert last == command_of(list(path))[0].epilog
    assert last.startswith(" ".join(["Example: gongqing", *path]))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_command_takes_the_arguments_of_its_example(path):
    words = shlex.split(command_of(list(path))[0].epilog.removeprefix("Example: gongqing "))
    command, arguments = command_of(words)
    with command.make_context(" ".join(words), arguments) as context:
        assert context.command is command
