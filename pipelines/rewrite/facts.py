"""The facts that a rewrite may not change and that need no model to see: figures, placeholders, names, and negations.

Figures, placeholders and names are compared over all lines together, each once: a rewrite may say a thing once that was
said twice, or in another line; it may lose none and add none. A negation is compared line by line. Whether a rewrite
means the same is asked of a model (`rewrite_judgements`).
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pipelines.llm.language import Lang
from pipelines.rewrite.figures import BRACKETED, figures, missing, ones
from pipelines.rewrite.negations import toggled
from pipelines.text.pii.placeholders import EMOTICON
from pipelines.text.pii.vocabulary import lexicon

KINDS = ("number", "placeholder", "name", "negation")  # in the order in which they are told

_LEXICON = tomllib.loads((Path(__file__).parent / "lexicons" / "names.toml").read_text(encoding="utf-8"))
_ALSO: dict[str, str] = _LEXICON["also"]
# Of public figures those of three characters and more count: 月老 stands in 上个月老公.
_LEAST_FIGURE = 3
_TITLE = "(?<=《)[^《》\n]{1,20}(?=》)"
_LATIN = "(?<![A-Za-z])[A-Z][a-z]{2,}(?![A-Za-z])"
# Which begins no sentence. What is written small elsewhere is no name either.
_CAPITAL = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-z]{2,}")
_ENGLISH_WORD = re.compile(r"[A-Za-z]+")
_STEM = 4  # letters: China, Chinese


def changed(pairs: Sequence[tuple[str, str]], lang: Lang) -> dict[str, int]:
    """How many facts were changed, lost or added, by kind; empty where none was.

    One that took another's place is one change, not two.

    Args:
        pairs: Each line before and after.
        lang: The language of all lines.
    """
    before, after = ("\n".join(texts) for texts in zip(*pairs, strict=True)) if pairs else ("", "")
    found = {
        "number": max(_numbers_missing(before, after, lang), _numbers_missing(after, before, lang)),
        "placeholder": _apart(_placeholders(before), _placeholders(after)),
        "name": max(len(_names_missing(before, after, lang)), len(_names_missing(after, before, lang))),
        "negation": sum(bool(toggled(one, other, lang)) for one, other in pairs),
    }
    return {kind: count for kind, count in found.items() if count}


def names(text: str, lang: Lang) -> list[str]:
    """The placeholders and names of a text, sorted. Figures are no sign of a life: 两种心情, 一针见血."""
    return sorted(_placeholders(text) | _names(text, lang))


def _numbers_missing(here: str, there: str, lang: Lang) -> int:
    """How many figures of a text another one does not speak of."""
    return missing(frozenset(figures(there, lang)) | ones(there, lang), frozenset(figures(here, lang)))


def _placeholders(text: str) -> set[str]:
    return set(BRACKETED.findall(text)) - {EMOTICON}


def _apart(one: set[str], other: set[str]) -> int:
    return max(len(one - other), len(other - one))


def _names_missing(here: str, there: str, lang: Lang) -> set[str]:
    """The names of a text that stand nowhere in another, as a name or as any word."""
    found = _names(here, lang)
    if lang == "zh":
        plain = _called_alike(there).lower()
        return {name for name in found if name.lower() not in plain}
    words = {word.lower()[:_STEM] for word in _ENGLISH_WORD.findall(there)}
    return {name for name in found if name[:_STEM] not in words}


def _names(text: str, lang: Lang) -> set[str]:
    """The proper names of a text, English ones in small letters."""
    plain = BRACKETED.sub(" ", text)
    if lang == "zh":
        return set(_chinese().findall(_called_alike(plain)))
    small = {word for word in _ENGLISH_WORD.findall(plain) if word.islower()}
    return {word.lower() for word in _CAPITAL.findall(plain)} - _listed("no_english_name") - small


def _called_alike(text: str) -> str:
    """`text` with one name for each place that has two."""
    return re.sub(f"(?:{'|'.join(_ALSO)})(?!古)", lambda found: _ALSO[found[0]], text)


@cache
def _chinese() -> re.Pattern[str]:
    """Places, public figures, titles of books, and Latin names; the longest of those that begin alike."""
    places = {*lexicon("places")["city"], *_listed("countries")} - _listed("no_place")
    people = {name for names in lexicon("public_figures").values() for name in names if len(name) >= _LEAST_FIGURE}
    words = sorted((places | people) - _listed("no_figure"), key=len, reverse=True)
    # 形成都是 names no place.
    return re.compile(
        "|".join([_TITLE, _LATIN, *("(?<![形造组构达完])成都" if word == "成都" else word for word in words)])
    )


def _listed(name: str) -> frozenset[str]:
    return frozenset(_LEXICON[name].split())
