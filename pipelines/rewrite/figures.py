"""The figures of a text, in either language, and which of them another text does not have."""

import re
import unicodedata

from pipelines.annotate.language import Lang
from pipelines.rewrite.figure import Figure
from pipelines.rewrite.figures_en import english, english_ones
from pipelines.rewrite.figures_zh import chinese

_BRACKETED = re.compile(r"\[[^\[\]\s]{1,12}\]")  # [姓名2] counts nobody


def figures(text: str, lang: Lang) -> tuple[Figure, ...]:
    """The figures of a text, each once; those that are written alike stand in the order of the text."""
    plain = _BRACKETED.sub("，", unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(chinese(plain) if lang == "zh" else english(plain)))


def ones(text: str, lang: Lang) -> frozenset[Figure]:
    """The figures that an article stands for (a week), which are no facts: seven days may stand in their place."""
    return frozenset(english_ones(unicodedata.normalize("NFKC", text))) if lang == "en" else frozenset()


def missing(among: frozenset[Figure], wanted: frozenset[Figure]) -> list[Figure]:
    """Those of `wanted` that are not `among`: by value and unit, or by value where either has no unit (30岁, 30)."""
    known = {(one.value, one.unit) for one in among}
    bare = {one.written for one in among if not one.unit}
    written = {one.written for one in among}
    return sorted(
        one
        for one in wanted
        if (one.value, one.unit) not in known and one.written not in (bare if one.unit else written)
    )
