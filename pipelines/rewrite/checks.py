"""What a rewrite is refused for without asking a model: it is a copy, it reads like a machine, it changes a fact."""

from collections.abc import Sequence
from typing import Literal

from pipelines.rewrite.artefacts import artefacts
from pipelines.rewrite.copies import is_copy
from pipelines.rewrite.facts import changed
from pipelines.rewrite.scripts import Script

# Why a rewrite is spoiled, in the order in which it is looked at.
Fault = Literal["unchanged", "artefact", "facts_changed"]


def spoiled(script: Script, written: Sequence[str], prompt_text: str) -> tuple[Fault, str] | None:
    """The first fault of a rewrite, as reason and detail; None where it is clean (C: the filter after rewriting).

    Args:
        script: What was to be rewritten.
        written: Its lines as they were rewritten, one a line of the script.
        prompt_text: What the model had been told to do; whatever it copies of that is an artefact.

    Returns:
        Why, and kinds with counts (``number 1, name 1``): nothing that somebody wrote.

    Raises ValueError where there are more or fewer lines than in the script.
    """
    pairs = [(line.text, text) for line, text in zip(script.lines, written, strict=True)]
    if detail := is_copy(pairs):
        return "unchanged", detail
    if kinds := artefacts(pairs, prompt_text):
        return "artefact", counted(kinds)
    if kinds := changed(pairs, script.lang):
        return "facts_changed", counted(kinds)
    return None


def counted(kinds: dict[str, int]) -> str:
    """Kinds and counts as they stand in a detail: ``list 2, tag 1``."""
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items())
