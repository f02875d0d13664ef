"""Chinese figures with what they count: 三年 is 3年 and 36个月; 一起 and 十分 are none.

What is vague (几年, 这两天) is no fact; nor is a 一 that is no more than an article (一个人), nor a pair that is
named anyhow (我们俩).
"""

import re
from collections.abc import Iterator

from pipelines.rewrite.figure import CLOCK, Figure, blanked, clock, figure, span
from pipelines.text.lexicon import lexicon
from pipelines.text.numerals import value_of

_LEXICON = lexicon("figures.zh", __file__)

_HAN_DIGITS = "零〇一二两俩仨三四五六七八九十百千万亿"
_N = rf"(?:[0-9]{{1,15}}(?:,[0-9]{{3}})*(?:\.[0-9]{{1,6}})?[十百千万亿]*|[{_HAN_DIGITS}]{{1,15}})"
# Most clauses hold no numeral: those that do are looked at alone, for the sake of speed.
_CLAUSE_END = re.compile(r"[，。！？；!?;\n]")
_HINT = re.compile(rf"[0-9①-⑳{_HAN_DIGITS}半周星礼]")
_NONE = re.compile("|".join(_LEXICON["none"]["words"].split()))
# 1. and ② before the items of a list; 10:30、11:00 are none.
_ITEM = re.compile(r"(?:^|(?<=[\s。；;:：，,！？!?(（「『“\"]))(?<![0-9][:,])[0-9]{1,2}(?=[.、)）](?![0-9]))|[①-⑳]")
_WEEKDAY = re.compile(
    r"(?<![0-9一二两三四五六七八九十])(?<![^上这下]个)(?:周|星期|礼拜)([一二三四五六日天])(?![次天回遍节小])(?!个(?!人))"
)
_GRADE = re.compile(
    r"(?<![最更很太不伟远])(大学|高中|初中|小学|大|高|初|(?<!考)研|博)([一二三四五六1-6])"
    r"(?:年级|(?![点些样个次步下块倍家年月天对人条直旦定番岁战0-9]|起(?![\s，。！？；,.就我]|$)))"
)
_PERCENT = re.compile(rf"百分之({_N})|({_N})%")
_HALF = re.compile(r"(?<![大多个年月])半(年|个月|个?小时|个?钟头|个?学期|斤|公里|片|粒|颗)")

_UNIT_OF: dict[str, tuple[str, float]] = {
    word: (unit, float(size))
    for unit, sizes in _LEXICON["units"].items()
    for size, words in sizes.items()
    for word in words.split("|")
}
_UNIT = "|".join(sorted(_UNIT_OF, key=len, reverse=True))
_NO_UNIT = re.compile("|".join(_LEXICON["no_unit"]["words"].split()))
_NUMBER = re.compile(
    rf"(?P<vague>[几数好成]|上(?=[百千万]))?(?P<ordinal>第)?(?P<low>{_N})(?:[-~—–到至](?P<high>{_N}))?[多来几余]?"
    rf"(?P<half>个半)?(?P<unit>{_UNIT})?(?P<tail>半)?"
)
_SIDE_BY_SIDE = re.compile(r"(.*?)([一二两三四五六七八九])([二三四五六七八九])([十百千万]?)")

# 一 before one of these is a figure, unless it stands for no more than an instant (一分钟都不想等, 有一天), or for
# every one of them (一周三次, 一个月回来一次).
_LASTING, _INSTANT = ("month", "day", "minute", "age"), ("天", "分钟")
_EVERY = re.compile(f"(?=[^前后内里以，。！？；,.!?;\\s]{{0,7}}(?:{_N}))")
# Past times may be given in figures: 去年, 一年前.
_AGO_OF = {
    **dict.fromkeys(("去年", "旧年"), (12, "month")),
    "前年": (24, "month"),
    **dict.fromkeys(("上个月", "上月"), (1, "month")),
    **dict.fromkeys(("上周", "上个周", "上星期", "上个星期", "上礼拜", "上个礼拜"), (7, "day")),
}
_AGO = re.compile(f"({'|'.join(_AGO_OF)})")
# 两个人, 我们两个, 你俩 are no figure; 我们两个孩子 is one.
_OF_TWO = re.compile("(?:们|你|咱|[他她]和我|爸妈|夫妻|[母父][子女]|兄[弟妹]|姐[弟妹])$")
_PEOPLE = re.compile("[^，。！？；,.!?;的]{1,6}的人(?![家生物])")  # 两个亲近的人
_COUNTED = re.compile("孩子|小孩|娃|儿子|女儿|月|老人|弟|妹|哥|姐")
_BACK = 3  # characters: the longest of these, and of the times of day
_TIME_OF_DAY = re.compile("(?:早上|早晨|清晨|上午|中午|下午|傍晚|晚上|夜里|半夜|深夜|凌晨|夜间)$")


def chinese(text: str) -> Iterator[Figure]:
    """The figures of a text in NFKC, in no order."""
    text = "，".join(clause for clause in _CLAUSE_END.split(text) if _HINT.search(clause))
    text = blanked(_NONE, blanked(_ITEM, text, "，"), "，")
    text = text.replace("半夜", "夜里")  # no half of a night
    for pattern, read in ((CLOCK, clock), (_PERCENT, _percent), (_WEEKDAY, _weekday), (_GRADE, _grade)):
        yield from filter(None, map(read, pattern.finditer(text)))
        text = blanked(pattern, text, "，")
    for match in _HALF.finditer(text):
        yield figure(0.5, *_UNIT_OF.get(match[1], ("term", 1)))
    for match in _NUMBER.finditer(text):
        yield from _counted(match, text)


def chinese_equivalents(text: str) -> Iterator[Figure]:
    """What 去年 and its like stand for: twelve months ago."""
    for match in _AGO.finditer(text):
        yield figure(*_AGO_OF[match[1]])._replace(written="")  # 去年 is no 12


def _percent(match: re.Match[str]) -> Figure | None:
    value = value_of(match[1] or match[2])
    return None if value is None else figure(value, "percent")


def _weekday(match: re.Match[str]) -> Figure:
    day = match[1].replace("天", "日")
    return Figure(day, "weekday", day)


def _grade(match: re.Match[str]) -> Figure | None:
    value = value_of(match[2])
    return None if value is None else figure(value, "grade")._replace(value=f"{match[1][0]}{value:g}")


def _counted(match: re.Match[str], text: str) -> Iterator[Figure]:
    """The figure of a match of _NUMBER, where it is a fact."""
    named = match["unit"] and not _NO_UNIT.match(text, match.start("unit"))
    unit, size = _UNIT_OF[match["unit"]] if named else ("", 1.0)
    low, high = value_of(match["low"]), value_of(match["high"] or "")
    if low is None:  # 三四年
        yield from _side_by_side(match["low"], unit, size)
    elif high is not None:
        yield span(low, high, unit, size)
    elif match["ordinal"]:  # 第一次 is 头一回, and 第三，… counts points
        if unit and low > 1:
            yield figure(low, "ordinal")
    elif _is_fact(low, unit, match, text):
        if match["low"][-1] in "俩仨":
            unit = unit or "piece"
        if unit == "clock" and not _is_clock(low, match, text):  # 有两点建议
            unit = "piece"
        if unit == "month" and size == 12 and low >= 1900:
            unit, size = "year", 1
        with_half = match["half"] or (match["tail"] and unit in ("month", "clock", "day", "minute"))
        yield figure(low + (0.5 if with_half else 0), unit, size)


def _is_fact(value: float, unit: str, match: re.Match[str], text: str) -> bool:
    """Whether a figure is a fact: 三年 and 0.5片 are; 几十次, 一个, 十分 and 一个半 (小时 is read with it) are not."""
    arabic = match["low"][0] not in _HAN_DIGITS
    if match["low"][-1] in "俩仨":
        return _COUNTED.match(text, match.end("low")) is not None
    if unit == "piece" and value == 2 and _of_two(match, text):
        return _COUNTED.match(text, match.end()) is not None
    if 0 < value < 1:
        return True
    if not unit:  # 十五了, but not 十 or 万 alone, nor 一
        return not match["half"] and (arabic or (value > 10 and len(match["low"]) > 1 and not match["vague"]))
    if value <= 1:
        return value == 1 and unit in _LASTING and match["unit"] not in _INSTANT and not _EVERY.match(text, match.end())
    return arabic or not (match["vague"] or (unit == "mark" and match["low"] == "十"))


def _of_two(match: re.Match[str], text: str) -> bool:
    if (
        match["unit"] in ("人", "个人", "位")
        or _OF_TWO.search(text, max(0, match.start() - _BACK), match.start()) is not None
    ):
        return True
    return match["unit"] == "个" and _PEOPLE.match(text, match.end()) is not None


def _is_clock(value: float, match: re.Match[str], text: str) -> bool:
    if match["unit"] == "点钟" or match["tail"] or value >= 6:
        return value <= 24
    start = match.start()
    return match["low"][0] not in _HAN_DIGITS or _TIME_OF_DAY.search(text, max(0, start - _BACK), start) is not None


def _side_by_side(written: str, unit: str, size: float) -> Iterator[Figure]:
    """三四年, 十七八岁, 七八十."""
    if match := _SIDE_BY_SIDE.fullmatch(written):
        head, one, other, place = match.groups()
        low, high = value_of(head + one + place), value_of(head + other + place)
        if low is not None and high is not None:
            yield span(low, high, unit, size)
