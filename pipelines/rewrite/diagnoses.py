"""How a diagnosis is spoken of: denied or not, suspected, made; and a mood, which is none.

Every function takes a text with straight apostrophes, and where the word of the diagnosis stands in it.
"""

import re

from pipelines.llm.language import Lang

# What stands before a diagnosis in its clause and denies it; and what stands behind it. 是不是 asks.
_DENIED_BEFORE: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?<![有是算])(?:没有?|不是|并非|不算|谈不上|排除了?|不属于|并不是|不存在|未患|(?<!会)(?<!该)不会(?=[是得有患]))"
        r"(?!不|没|想到|料到|办法|人|准|错)[^，。！？；,.!?;\n]{0,8}$"
    ),
    "en": re.compile(
        r"(?:\b(?:no|not|never|without|ruled out|neither)\b|n't\b)(?! (?:sure|certain|know|only|just|help|stop)\b)"
        r"(?: [\w'-]+){0,5} ?$",
        re.IGNORECASE,
    ),
}
_DENIED_BEHIND: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?:的可能)?(?:倒|也|都|并)?(?:没有(?=[，。！？；,.!?;\n]|$)|不是(?=[，。！？；,.!?;\n]|$)|谈不上|(?:已经)?(?:被)?排除)"
    ),
    "en": re.compile(r" (?:was|has been|is) ruled out\b", re.IGNORECASE),
}
# 我不会是得了抑郁症吧 fears it; 我没有抑郁症吧 hopes not.
_FEARED = re.compile(r"[^，。！？；,.!?;\n]{0,4}吧")
# Before a looser word (抑郁) it makes it the name of what was diagnosed, and a name behind it must stay one.
_DIAGNOSED: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(r"(?:诊断|确诊|查出|患了?|得了|患有|[轻中重]度|(?:医生|大夫|医院)说)[^，。！？；,.!?;\n]{0,6}$"),
    "en": re.compile(r"\b(?:diagnos\w+|clinically|suffer\w* from|treated for)(?: [\w'-]+){0,3} $", re.IGNORECASE),
}
# Before a diagnosis: that somebody suspects it; and that it was made.
_DOUBTED: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?:怀疑|疑似|可能|会不会|是不是|是否|也许|或许|恐怕|怕[我自]?己?是?|担心|觉得自己|感觉自己|猜)[^，。！？；,.!?;\n]{0,8}$"
    ),
    "en": re.compile(
        r"\b(?:suspect\w*|might|may|maybe|perhaps|possibl[ey]|whether|wonder\w*|afraid|worr\w+|probably|if)\b"
        r"(?: [\w'-]+){0,5} $",
        re.IGNORECASE,
    ),
}
_CONFIRMED: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile(r"(?:确诊|诊断|查出|检查出|被?判定|开了?证明)(?!不)[^，。！？；,.!?;\n]{0,6}$"),
    "en": re.compile(r"\b(?:diagnosed|diagnosis|confirmed)\b(?: [\w'-]+){0,4} $", re.IGNORECASE),
}
# A mood, which no looser word for a diagnosis is: 抑郁情绪, 有点抑郁.
_MOOD_BEHIND: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile("的?(?:情绪|心情|心境|状态|倾向|感|心态|气质|症状|时候|日子)"),
    "en": re.compile(r" (?:mood|feelings?|state|tendenc\w+|thoughts?)\b", re.IGNORECASE),
}
_MOOD_BEFORE = re.compile(
    "(?:很|有点儿?|有些|感到|感觉|觉得|特别|非常|比较|心情|情绪|心里|越来越|太|[挺更]|这么|那么|十分|变得)$"
)
_SEVERITY: dict[Lang, re.Pattern[str]] = {
    "zh": re.compile("((?<![集其])[轻中]度|(?<!严)重度)(?![过日假])"),
    "en": re.compile(
        r"\b(mild|moderate|severe)(?:ly)? (?:(?:clinical|major|postpartum|social) )?"
        r"(?:depress|anxi|ocd|ptsd|bipolar|autis|insomnia)",
        re.IGNORECASE,
    ),
}
_BACK = 24  # characters looked back at: what is said of a word stands no further away


def is_denied(text: str, start: int, end: int, lang: Lang) -> bool:
    """Whether somebody says not to have it. 我不会是抑郁症吧 fears it, and does not."""
    denied = _search(_DENIED_BEFORE, text, start, lang) or _DENIED_BEHIND[lang].match(text, end)
    return denied is not None and not (denied[0].startswith("不会") and _FEARED.match(text, end))


def is_named(text: str, start: int, lang: Lang) -> bool:
    """Whether it stands where a diagnosis is named, so that a looser word is its name: 确诊抑郁."""
    return _search(_DIAGNOSED, text, start, lang) is not None


def is_doubted(text: str, start: int, lang: Lang) -> bool:
    """Whether somebody suspects it, or asks whether they have it."""
    return _search(_DOUBTED, text, start, lang) is not None


def is_confirmed(text: str, start: int, lang: Lang) -> bool:
    """Whether it is said to have been made."""
    return _search(_CONFIRMED, text, start, lang) is not None


def is_mood(text: str, start: int, end: int, lang: Lang) -> bool:
    """Whether a looser word tells of no more than a mood: 有点抑郁."""
    if _MOOD_BEHIND[lang].match(text, end):
        return True
    return lang == "zh" and _MOOD_BEFORE.search(text, max(0, start - 4), start) is not None


def severities(text: str, lang: Lang) -> set[str]:
    """How bad illnesses are: part of a diagnosis."""
    return {found[1].lower() for found in _SEVERITY[lang].finditer(text)}


def _search(patterns: dict[Lang, re.Pattern[str]], text: str, start: int, lang: Lang) -> re.Match[str] | None:
    return patterns[lang].search(text, max(0, start - _BACK), start)
