"""The lexicons of the rules: patterns and words in `lexicons/*.toml` beside a rule, written for this project."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def lexicon(name: str, module: str) -> dict[str, Any]:
    """The tables of `lexicons/<name>.toml` beside a module, named by its `__file__`."""
    return tomllib.loads((Path(module).parent / "lexicons" / f"{name}.toml").read_text(encoding="utf-8"))


def alternation(patterns: Iterable[str]) -> str:
    """One pattern that matches where any of `patterns` does."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def filled(pattern: str, words: Mapping[str, str]) -> str:
    """`pattern` with each {name} replaced; braces that count (`{0,4}`) stay."""
    for name, word in words.items():
        pattern = pattern.replace(f"{{{name}}}", word)
    return pattern
