"""The facts that a rewrite may not change and that need no model to see: figures, placeholders and names.

Compared over all lines together, each once. Whether a rewrite means the same is asked of a model.
"""

import re
import unicodedata
from functools import cache

from pipelines.llm.language import Lang
from pipelines.rewrite.figure import Figure
from pipelines.rewrite.figures_en import english, english_equivalents
from pipelines.rewrite.figures_zh import chinese, chinese_equivalents
from pipelines.text.lexicon import lexicon
from pipelines.text.pii import vocabulary
from pipelines.text.pii.placeholders import EMOTICON

KINDS = ("number", "placeholder", "name")  # in the order of a detail

_LEXICON = lexicon("names", __file__)
_SYNONYMS: dict[str, str] = _LEXICON["also"]
_BRACKETED = re.compile(r"\[[^\[\]\s]{1,12}\]")  # [姓名2] is no figure
# Of public figures those of three characters and more count: 月老 stands in 上个月老公.
_SHORTEST_PERSON = 3
_TITLE = "(?<=《)[^《》\n]{1,20}(?=》)"
_LATIN = "(?<![A-Za-z])[A-Z][a-z]{2,}(?![A-Za-z])"
# Not at the beginning of a sentence. What is written small elsewhere is no name either.
_CAPITAL = re.compile(r"(?<=[a-z0-9,;] )[A-Z][a-z]{2,}")
_ENGLISH_WORD = re.compile(r"[A-Za-z]+")
_STEM = 4  # letters: China, Chinese


def changed(before: str, after: str, lang: Lang) -> dict[str, int]:
    """How many facts a rewrite changed, lost or added, by kind; empty where none.

    A fact that took another's place is one change, not two.
    """
    counts = {
        "number": max(_missing_figures(before, after, lang), _missing_figures(after, before, lang)),
        "placeholder": max(
            len(_placeholders(before) - _placeholders(after)), len(_placeholders(after) - _placeholders(before))
        ),
        "name": max(len(_missing_names(before, after, lang)), len(_missing_names(after, before, lang))),
    }
    return {kind: count for kind, count in counts.items() if count}


def names(text: str, lang: Lang) -> list[str]:
    """The placeholders and names of a text, sorted; no figures: 两种心情, 一针见血 tell of nobody's life."""
    return sorted(_placeholders(text) | _names(text, lang))


def figures(text: str, lang: Lang) -> frozenset[Figure]:
    """The figures of a text."""
    plain = _BRACKETED.sub("，", unicodedata.normalize("NFKC", text))
    return frozenset(chinese(plain) if lang == "zh" else english(plain))


def _missing_figures(text: str, other: str, lang: Lang) -> int:
    """How many figures of a text another lacks: by value and unit, or by value where either has no unit (30岁, 30).

    What the other says in a word (a week, both, 去年) it does not lack, and may say without a figure.
    """
    plain = unicodedata.normalize("NFKC", other)
    equivalents = chinese_equivalents(plain) if lang == "zh" else english_equivalents(plain)
    known = {*figures(other, lang), *equivalents}
    with_unit = {(one.value, one.unit) for one in known}
    written = {one.written for one in known}
    bare = {one.written for one in known if not one.unit}
    return sum(
        (one.value, one.unit) not in with_unit and one.written not in (bare if one.unit else written)
        for one in figures(text, lang)
    )


def _placeholders(text: str) -> set[str]:
    return set(_BRACKETED.findall(text)) - {EMOTICON}


def _missing_names(text: str, other: str, lang: Lang) -> set[str]:
    """The names of a text that stand nowhere in another, as a name or as any word."""
    if lang == "zh":
        plain = _with_synonyms(other).lower()
        return {name for name in _names(text, lang) if name.lower() not in plain}
    stems = {word.lower()[:_STEM] for word in _ENGLISH_WORD.findall(other)}
    return {name for name in _names(text, lang) if name[:_STEM] not in stems}


def _names(text: str, lang: Lang) -> set[str]:
    """The proper names of a text, English ones in small letters."""
    plain = _BRACKETED.sub(" ", text)
    if lang == "zh":
        return set(_chinese_names().findall(_with_synonyms(plain)))
    small = {word for word in _ENGLISH_WORD.findall(plain) if word.islower()}
    return {word.lower() for word in _CAPITAL.findall(plain)} - _listed("no_english_name") - small


def _with_synonyms(text: str) -> str:
    """`text` with one name for each place that has two."""
    return re.sub(f"(?:{'|'.join(_SYNONYMS)})(?!古)", lambda match: _SYNONYMS[match[0]], text)


@cache
def _chinese_names() -> re.Pattern[str]:
    """Places, public figures, titles of books, and Latin names; the longest of those that begin alike."""
    places = {*vocabulary.lexicon("places")["city"], *_listed("countries")} - _listed("no_place")
    people = {
        name
        for names in vocabulary.lexicon("public_figures").values()
        for name in names
        if len(name) >= _SHORTEST_PERSON
    }
    words = sorted((places | people) - _listed("no_figure"), key=len, reverse=True)
    # 形成都是 names no place.
    return re.compile(
        "|".join([_TITLE, _LATIN, *("(?<![形造组构达完])成都" if word == "成都" else word for word in words)])
    )


def _listed(name: str) -> frozenset[str]:
    return frozenset(_LEXICON[name].split())
