"""The prompts of this folder. Those of C's judge stand in `pipelines/release/prompts`: its models learn from them."""

from pathlib import Path

from pipelines.annotate import prompting
from pipelines.llm.prompts import Prompt

_HERE = Path(__file__).parent / "prompts"


def prompt(name: str) -> Prompt:
    """The prompt in `prompts/<name>.md`."""
    return prompting.prompt(name, _HERE)


def names() -> tuple[str, ...]:
    """Every prompt that there is."""
    return prompting.names(_HERE)
