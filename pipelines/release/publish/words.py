"""What a card calls what manifest and tables say in codes, in English and Chinese (`templates/words.toml`)."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from schemas.reasoning import Lang

_LANGUAGES: tuple[Lang, ...] = ("en", "zh")


@cache
def words() -> dict[str, dict[str, Any]]:
    """By group and code the English and the Chinese; of `findings` and `configs` the Chinese alone."""
    return tomllib.loads((files("pipelines.release") / "templates" / "words.toml").read_text(encoding="utf-8"))


def word(group: str, code: str, lang: Lang) -> str:
    """The words for a code; without any, the code's own."""
    known = words()[group].get(code)
    return code.replace("_", " ") if known is None else str(known[_LANGUAGES.index(lang)])
