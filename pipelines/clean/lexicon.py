"""The lexicons of the cleaning rules: tables of patterns and words in `lexicons/*.toml`, written for this project."""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "lexicons"


@cache
def lexicon(name: str) -> dict[str, Any]:
    """The tables of `lexicons/<name>.toml`."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def alternation(patterns: Iterable[str]) -> str:
    """One pattern that matches where any of `patterns` does."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)
