import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.text.pii.numbers import is_id_card, passes_luhn

DIGITS = st.text("0123456789", min_size=1, max_size=19)


def luhn_by_hand(number: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(number)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


@given(st.lists(DIGITS, max_size=30))
def test_luhn_is_luhns(numbers):
    assert passes_luhn(pl.Series(numbers, dtype=pl.String)).to_list() == [luhn_by_hand(number) for number in numbers]
    assert not passes_luhn(pl.Series(["", "12a", "1" * 20])).any()


ID_CARDS = {
    "11010519491231002X": True,  # the standard's own example
    "440524188001010014": False,  # the other example: born in 1880
    "110105194912310021": False,
    "11010519491231002x": False,  # a caller folds first
    "91010519491231002X": False,  # no such region
    "110105194913310023": False,  # no such month
    "110105491231002": True,  # fifteen digits, before 1999
    "110105491331002": False,
    "": False,
    "１１０１０５１９４９１２３１００２Ｘ": False,
}


def test_id_cards():
    assert is_id_card(pl.Series(list(ID_CARDS))).to_list() == list(ID_CARDS.values())
    assert is_id_card(pl.Series([], dtype=pl.String)).is_empty()


def check_digit_by_hand(stem: str) -> str:
    """ISO 7064 MOD 11-2, digit by digit."""
    total = 0
    for digit in stem:
        total = (total + int(digit)) * 2 % 11
    return "0123456789X"[(12 - total) % 11]


def test_the_check_digit_is_that_of_the_standard():
    stems = [f"440524{year}0101{number:03}" for year in range(1900, 2100, 7) for number in range(0, 1000, 37)]
    cases = {stem + last: last == check_digit_by_hand(stem) for stem in stems for last in "0123456789X"}
    assert is_id_card(pl.Series(list(cases))).to_list() == list(cases.values())
