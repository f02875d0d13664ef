"""English figures with what they count: "three years" is 36 months; "one day" and "you two" are none.

What is vague (a couple of days) is no fact, and neither is a one that is no more than an article (one year, a year).
"""

import re
from collections.abc import Callable, Iterator

from pipelines.rewrite.figure import CLOCK, Figure, blanked, clock, figure
from pipelines.text.numerals import value_of

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUE_OF: dict[str, int] = {
    **{word: value for value, word in enumerate(_SMALL)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}
_SIZES = {"hundred": 100, "thousand": 1000, "million": 10**6, "dozen": 12}
# As written: what it is counted in, and how many of that it is.
_UNIT_OF: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("year", "years", "yr", "yrs", "yo", "y/o"), ("month", 12)),
    **dict.fromkeys(("month", "months", "mo", "mos"), ("month", 1)),
    **dict.fromkeys(("week", "weeks", "wk", "wks"), ("day", 7)),
    **dict.fromkeys(("day", "days"), ("day", 1)),
    **dict.fromkeys(("night", "nights"), ("night", 1)),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), ("minute", 60)),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), ("minute", 1)),
    **dict.fromkeys(("time", "times"), ("time", 1)),
    **dict.fromkeys(("dollar", "dollars", "bucks", "usd"), ("dollar", 1)),
    **dict.fromkeys(("percent", "%"), ("percent", 1)),
    **dict.fromkeys(("pound", "pounds", "lb", "lbs"), ("pound", 1)),
    **dict.fromkeys(("mg", "milligrams", "milligram"), ("gram", 0.001)),
    **dict.fromkeys(("g", "gram", "grams"), ("gram", 1)),
    **dict.fromkeys(("ml", "millilitres", "milliliters"), ("millilitre", 1)),
    **dict.fromkeys(("pill", "pills", "tablet", "tablets", "capsule", "capsules"), ("pill", 1)),
    **dict.fromkeys(("am", "pm", "o'clock"), ("clock", 1)),
}
_MEASURED = ("gram", "millilitre", "percent")  # of which 1 is no article
_WORDS = "|".join(sorted(_VALUE_OF, key=len, reverse=True))
_UNIT = "|".join(sorted(map(re.escape, _UNIT_OF), key=len, reverse=True))
_NUMBER = re.compile(
    r"(?P<sign>\$)?(?<![\w.])(?:(?P<arabic>[0-9]{1,15}(?:,[0-9]{3})*(?:\.[0-9]{1,6})?)(?P<thousand>k(?!\w))?"
    rf"|(?P<words>(?:{_WORDS})(?:[- ](?:{_WORDS}))*))(?:[ -](?P<size>{'|'.join(_SIZES)})(?!\w))?"
    rf"(?P<half>(?: and)? a half)?(?:[ -]?(?P<unit>{_UNIT})(?!\w))?(?P<of_us> of (?:us|you|them)\b)?",
    re.IGNORECASE,
)
# Sentences without a numeral are not looked at, for the sake of speed.
_SENTENCE_END = re.compile(r"(?<=[!?;.])\s+(?![0-9])|\n")
_HINT = re.compile(rf"[0-9]|\b(?:half|twice|thrice|{_WORDS})\b", re.IGNORECASE)
_NONE = re.compile(
    r"\bone day\b|\bno[- ]one\b|\bany one\b|\bevery one\b|\bone another\b|\bsquare one\b|\bnumber one\b|\bat one\b"
    r"|\bone[- ](?:on[- ]one|of|thing|more|who|by one|way|time|point)\b|\bone or two\b|\btwo cents\b"
    r"|\btwo[- ](?:faced|way|sided)\b|\b(?:you|we|us|they|them|the|these|those) two\b(?! \w+s\b)"
    r"|\b(?:a )?million times\b|\b(?:the )?(?:last|next|past|other) (?:one|two|few|couple)\b|\b24/7\b|\bcovid-?19\b"
    r"|\b(?:(?:a|one) hundred|100) ?(?:percent|%)|\b[0-9]{1,2}(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
# At the beginning of a line or behind a mark: "I am 25." is no item, and "a gpa of 0.9." none.
_ITEM = re.compile(
    r"(?:^\s*|(?<=[.;:,!?(“\"])|(?<=[.;:,!?] ))(?<![0-9][.:,])[0-9]{1,2}(?=[.)](?:[\s”\"]|$))", re.MULTILINE
)
_HALF = re.compile(r"\bhalf(?: an?| of an?)? (year|month|hour|dozen|pill|tablet)\b|\bhalf-(year|hour)\b", re.IGNORECASE)
_AND_A_HALF = re.compile(r"\b(?:an?|one) (year|month|week|hour|day) and a half\b", re.IGNORECASE)
_ONE = re.compile(
    r"\b(?:an?|one|the|last) (?:whole |full |past |last )?(year|month|week|day|night|hour|minute)\b", re.IGNORECASE
)
_BOTH = re.compile(r"\b(?:both|twins)\b", re.IGNORECASE)
_TWICE = re.compile(r"\b(twice|thrice)\b", re.IGNORECASE)


def english(text: str) -> Iterator[Figure]:
    """The figures of a text in NFKC, in no order."""
    text = "\n".join(sentence for sentence in _SENTENCE_END.split(text) if _HINT.search(sentence))
    text = blanked(_NONE, blanked(_ITEM, text.replace("\u2019", "'"), ";"), ";")
    for pattern, read in _READ:
        yield from map(read, pattern.finditer(text))
        text = blanked(pattern, text, ";")
    for match in _NUMBER.finditer(text):
        yield from _counted(match)


def english_equivalents(text: str) -> Iterator[Figure]:
    """What an article or a one stands for: a week is seven days, and last week seven days ago.

    And both: two of something, not two days.
    """
    for match in _ONE.finditer(text):
        yield figure(1, *_UNIT_OF[match[1].lower()])
    if _BOTH.search(text):
        yield figure(2, "both")


_READ: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Figure]], ...] = (
    (CLOCK, clock),
    (_AND_A_HALF, lambda match: figure(1.5, *_UNIT_OF[match[1].lower()])),
    (_HALF, lambda match: figure(0.5, *_UNIT_OF.get((match[1] or match[2]).lower(), ("", 12)))),
    (_TWICE, lambda match: figure(2 if match[1].lower() == "twice" else 3, "time")),
)


def _counted(match: re.Match[str]) -> Iterator[Figure]:
    """The figure of a match of _NUMBER, where it is a fact."""
    value = _value(match)
    unit, size = _UNIT_OF.get((match["unit"] or "").lower(), ("dollar" if match["sign"] else "", 1.0))
    if value is None:
        return
    measured = match["arabic"] and unit in _MEASURED
    article = value in (0, 1) and not match["half"] and not measured  # one year, 1 time
    if not article and not (match["of_us"] and not unit):  # three of us
        yield figure(value + (0.5 if match["half"] else 0), unit, size)


def _value(match: re.Match[str]) -> float | None:
    size = _SIZES.get((match["size"] or "").lower(), 1)
    if match["arabic"]:
        value = value_of(match["arabic"])
        return None if value is None else value * size * (1000 if match["thousand"] else 1)
    words = [_VALUE_OF[word] for word in re.split("[- ]", match["words"].lower())]
    if len(words) > 1 and not (len(words) == 2 and words[0] >= 20 and 0 < words[1] < 10):
        return None  # a telephone number in words
    return float(sum(words) * size)
