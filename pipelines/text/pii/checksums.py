"""Check digits, for whole columns at once."""

import numpy as np
import polars as pl

_CODE_ZERO = ord("0")
_ID_CARD_WEIGHTS = np.array([7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2])
_ID_CARD_CHECKS = np.frombuffer(b"10X98765432", np.uint8)
_LONGEST_CARD = 19

# The first two digits of a residence code (GB/T 2260), the first four of a year of birth, month and day.
_REGION = r"(?:1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3])[0-9]{4}"
_MONTH_DAY = (
    r"(?:(?:0[13578]|1[02])(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)(?:0[1-9]|[12][0-9]|30)|02(?:0[1-9]|[12][0-9]))"
)
_ID_CARD_18 = rf"^{_REGION}(?:19|20)[0-9]{{2}}{_MONTH_DAY}[0-9]{{3}}[0-9X]$"
_ID_CARD_15 = rf"^{_REGION}[0-9]{{2}}{_MONTH_DAY}[0-9]{{3}}$"


def is_id_card(numbers: pl.Series) -> pl.Series:
    """Whether each is a resident identity number (GB 11643-1999): a region, a date of birth, a check digit.

    Args:
        numbers: Digits without anything between, the check digit X in upper case; no nulls.

    Of the 15 digits in use until 1999, which have no check digit, region and date are looked at alone.
    """
    shaped = numbers.str.contains(_ID_CARD_18)
    digits = _digits(numbers.filter(shaped).str.head(17), 17)
    check = _ID_CARD_CHECKS[(digits @ _ID_CARD_WEIGHTS) % 11]
    last = _digits(numbers.filter(shaped).str.tail(1), 1)[:, 0] + _CODE_ZERO
    valid = shaped.to_numpy().copy()
    valid[valid] = check == last
    return pl.Series(valid) | numbers.str.contains(_ID_CARD_15)


def passes_luhn(numbers: pl.Series) -> pl.Series:
    """Whether the last digit of each is Luhn's check digit (ISO/IEC 7812-1).

    Args:
        numbers: 1 to 19 digits without anything between; no nulls. Anything else does not pass.
    """
    shaped = numbers.str.contains(rf"^[0-9]{{1,{_LONGEST_CARD}}}$")
    # Zeros in front change nothing: the sum runs from the last digit.
    digits = _digits(numbers.filter(shaped).str.zfill(_LONGEST_CARD), _LONGEST_CARD)
    doubled = digits[:, -2::-2] * 2
    total = digits[:, ::-2].sum(axis=1) + (doubled - 9 * (doubled > 9)).sum(axis=1)
    valid = shaped.to_numpy().copy()
    valid[valid] = total % 10 == 0
    return pl.Series(valid)


def _digits(numbers: pl.Series, length: int) -> np.ndarray:
    """Strings of `length` ASCII characters as int64 `[n, length]`."""
    characters = np.frombuffer("".join(numbers.to_list()).encode(), np.uint8)
    return characters.reshape(-1, length).astype(np.int64) - _CODE_ZERO
