"""The prompts of this folder, with the closed sets that they name filled in."""

from pathlib import Path

from pipelines.annotate import prompting
from pipelines.llm.prompts import Prompt

_HERE = Path(__file__).parent / "prompts"


def prompt(name: str) -> Prompt:
    """The prompt in `prompts/<name>.md`, filled in as those of `annotate` are."""
    return prompting.prompt(name, _HERE)


def names() -> tuple[str, ...]:
    """Every prompt that there is."""
    return prompting.names(_HERE)
