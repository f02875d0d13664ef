"""How often, and how long, where no figure tells it: three times a week, 一天吃三次; it lasted a month."""

import re
from collections.abc import Iterator

from pipelines.llm.language import Lang
from pipelines.rewrite.figure import struck
from pipelines.rewrite.figures_zh import EVERY

# 一天三次 has the day in common with 每天三次; 有一天, 一天到晚 and 一天比一天 tell of none.
_PERIOD_ZH = re.compile(
    rf"(?<![第有那某哪这前后上下])一(天|日|晚|个?周|个?星期|个?礼拜|个?月|年)(?!到晚|天|比|一[天年]){EVERY}"
)
_PERIOD_EN = re.compile(
    r"\b(?:once|twice|thrice|times?|hours?|hrs|minutes?|mins?|days?|nights?|pills?|tablets?|mg|dollars|bucks|pounds"
    r"|drinks|beers|\$?[0-9][0-9,.]*k?) (?:an?|per|each|every) (day|night|week|month|year)\b",
    re.IGNORECASE,
)
_OFTEN = {
    **dict.fromkeys(("天", "日", "晚", "day", "night"), "daily"),
    **dict.fromkeys(("周", "星期", "礼拜", "week"), "weekly"),
    **dict.fromkeys(("月", "month"), "monthly"),
    **dict.fromkeys(("年", "year"), "yearly"),
}
# A day or an hour is hardly ever one that was counted; in Chinese 一年 is a figure.
_LASTING_EN = re.compile(r"\b(?:an?|one) (?:whole |full )?(week|month|year)\b", re.IGNORECASE)


def rates(text: str, lang: Lang) -> Iterator[tuple[int, str, str]]:
    """Where something is said of how often or how long, its list (``often``, ``lasting``) and the name of it there.

    Args:
        text: With straight apostrophes.
        lang: Its language.
    """
    for found in (_PERIOD_ZH if lang == "zh" else _PERIOD_EN).finditer(text):
        yield found.start(), "often", _OFTEN[found[1].lower().removeprefix("个")]
    if lang == "en":
        for found in _LASTING_EN.finditer(struck(_PERIOD_EN, text, ";")):
            yield found.start(), "lasting", found[1].lower()
