"""The figures of a text, in either language, and which of them another text does not have."""

import re
import unicodedata

from pipelines.llm.language import Lang
from pipelines.rewrite.figure import Figure
from pipelines.rewrite.figures_en import english, english_ones
from pipelines.rewrite.figures_zh import chinese, chinese_ones

BRACKETED = re.compile(r"\[[^\[\]\s]{1,12}\]")  # [姓名2] counts nobody


def figures(text: str, lang: Lang) -> tuple[Figure, ...]:
    """The figures of a text, each once, in the order of the text."""
    plain = BRACKETED.sub("，", unicodedata.normalize("NFKC", text))
    found = sorted(chinese(plain) if lang == "zh" else english(plain))
    return tuple(dict.fromkeys(figure for _, figure in found))


def ones(text: str, lang: Lang) -> frozenset[Figure]:
    """The figures that another word stands for (a week, both, 去年).

    They are no facts: seven days may take their place.
    """
    plain = unicodedata.normalize("NFKC", text)
    return frozenset(chinese_ones(plain) if lang == "zh" else english_ones(plain))


def missing(among: frozenset[Figure], wanted: frozenset[Figure]) -> int:
    """How many of `wanted` are not `among`: by value and unit, or by value where either has no unit (30岁, 30)."""
    known = {(one.value, one.unit) for one in among}
    bare = {one.written for one in among if not one.unit}
    written = {one.written for one in among}
    return sum(
        (one.value, one.unit) not in known and one.written not in (bare if one.unit else written) for one in wanted
    )
