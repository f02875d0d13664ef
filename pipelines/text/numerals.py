"""Numerals in Arabic or Chinese digits, or in both: 1,200, 三十, 2万, 3千."""

import re

_DIGIT_OF = dict(zip("零〇一二两俩仨三四五六七八九", (0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9), strict=True))
_ONES = tuple("一二两三四五六七八九123456789")  # one alone behind a place is of the next lower one
_PLACES = {"十": 10, "百": 100, "千": 1000}
_LARGE = (("亿", 10**8), ("万", 10**4))
_ARABIC = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?")
_MIXED = re.compile(r"([0-9]+(?:\.[0-9]+)?)([十百千])")  # 3千
# No figure of a text has more characters; what has is noise.
_LONGEST = 20


def value_of(digits: str) -> float | None:
    """The value of a numeral; None for what is none (三四, 1.2.3) or is longer than any."""
    if len(digits) > _LONGEST:
        return None
    if _ARABIC.fullmatch(digits):
        return float(digits.replace(",", ""))
    for name, size in _LARGE:
        if name in digits:
            head, _, tail = digits.partition(name)
            high, low = value_of(head), value_of(tail) if tail else 0.0
            if low is not None and tail in _ONES:  # 一万五
                low *= size // 10
            return None if high is None or low is None else high * size + low
    if mixed := _MIXED.fullmatch(digits):
        return float(mixed[1]) * _PLACES[mixed[2]]
    return _chinese(digits)


def _chinese(digits: str) -> float | None:
    total, digit, ones = 0, None, 1
    for character in digits:
        if character in _PLACES:
            total += (1 if digit is None else digit) * _PLACES[character]
            digit, ones = None, _PLACES[character] // 10  # 二百五
        elif character in _DIGIT_OF and digit in (None, 0):
            ones = 1 if digit == 0 else ones  # 二百零五
            digit = _DIGIT_OF[character]
        else:
            return None
    return float(total + (digit or 0) * ones) if digits else None
