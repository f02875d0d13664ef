"""What a numeral is worth, in either script."""

from pipelines.text.numerals import value_of

WORTH = """
12=12 1.5=1.5 1,200=1200 十=10 十五=15 三十二=32 一百零五=105 两千=2000 仨=3 3千=3000 2万=20000 1.2亿=120000000
三万五千=35000 一亿零三万=100030000 二百五=250 三千五=3500 一万五=15000 3万5=35000 一亿五=150000000 二百五十=250
二百零五=205 一千零五=1005 一万零五=10005 一万五百=10500
"""


def test_a_numeral_has_a_value():
    pairs = dict(pair.split("=") for pair in WORTH.split())
    assert len(pairs) == 24
    assert {digits: value_of(digits) for digits in pairs} == {digits: float(value) for digits, value in pairs.items()}


def test_what_is_no_numeral_has_none():
    for digits in ("", ".", "三四", "1.2.3", "12,00", "十个", "万", "9" * 21, "万" * 3000):
        assert value_of(digits) is None, digits[:9]
