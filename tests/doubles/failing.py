"""Commands of gongqing that must fail, and say in words what is wrong."""

from pathlib import Path

from killing import started


def failed(home: Path, *arguments: str) -> str:
    """The message of a command that fails: ours, with a place and a hint, and the exit code of failed work."""
    with started(home, *arguments) as command:
        code, printed = command.wait(), command.printed
    assert code == 1, printed
    message = printed[printed.rindex("gongqing: ") :]
    assert "\n  where: " in message, printed
    assert "\n  hint: " in message, printed
    assert "report it" not in message, printed
    assert "Traceback" not in message, printed
    return message
