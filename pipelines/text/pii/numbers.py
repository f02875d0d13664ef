"""Numbers that reach or identify somebody: telephone, identity card, bank card, licence plate.

Long runs of digits are read first, however broken up; then, inside a run, the shapes that mean something.
"""

from functools import cache

import numpy as np
import polars as pl

from pipelines.text.lexicon import lexicon
from pipelines.text.pii.patterns import (
    CHINESE_DIGITS,
    DIGIT,
    DIGIT_OR_LETTER,
    HOMOPHONES,
    LETTER_DIGITS,
    SEPARATOR,
    SPOKEN_DIGITS,
)
from pipelines.text.pii.spans import NONE, SPANS, gather, matches, spans

# A letter at either end is a digit where no word goes on there: not the l of "tel", not the o of "or".
_RUN = (
    rf"(?:{DIGIT}|(?-u:\b)[OolI])(?:{SEPARATOR}{{0,3}}{DIGIT_OR_LETTER}){{3,}}"
    rf"{SEPARATOR}{{0,3}}(?:{DIGIT}|[OolI](?-u:\b))(?:[ -]?[Xx](?-u:\b))?"
)

# A mobile number on lines of its own.
_LINES = r"1[3-9][0-9] {0,2}\n{1,2} {0,2}(?:[0-9]{4} {0,2}\n{1,2} {0,2}[0-9]{4}|[0-9]{8})"

_LONG = 400  # characters
_PIECE = rf"{DIGIT}(?:[ \-.·]{{0,2}}{DIGIT}){{4,}}"
_UNBROKEN = rf"{DIGIT}{{5,}}|1[ -]{{0,2}}[3-9](?:[ -]{{0,2}}[0-9]){{9}}"

# After the country's code, or the 0 and the codes that people once dialled before a number from elsewhere.
_PREFIX = r"(?:(?:00)?86|0|179[0-9]{2}|12593)"
_MOBILE = rf"\b(?:{_PREFIX} {{0,6}})?1 {{0,6}}[3-9](?: {{0,6}}[0-9]){{9}}\b"
_DIGIT_OR_WORD = rf"(?i:{DIGIT}|[{''.join(HOMOPHONES)}]|{'|'.join(sorted(SPOKEN_DIGITS, key=len, reverse=True))})"
_SPOKEN = rf"{_DIGIT_OR_WORD}(?:[ -]{{0,2}}{_DIGIT_OR_WORD}){{10}}"
_AREA = r"(?:010|02[0-57-9]|0[3-9][0-9]{2})"
_LANDLINE = rf"\b(?:(?:00)?86 {{0,6}})?{_AREA} {{0,6}}[2-9][0-9]{{2,3}} ?[0-9]{{4}}\b"
_TAIWAN = r"\b09[0-9]{2} ?[0-9]{3} ?[0-9]{3}\b"
_WITHOUT_ZERO = r"\b(?:00)?86 {1,6}(?:10|2[0-57-9]|[3-9][0-9]{2}) {0,6}[2-9][0-9]{2,3} ?[0-9]{4}\b"
# A digit too many or too few: still somebody's number where the words say that it is one.
_MISTYPED = r"\b1 {0,6}[3-9](?: {0,6}[0-9]){8}(?:(?: {0,6}[0-9]){2})?\b"
_LOCAL = r"\b[2-9][0-9]{2,3} {0,6}[0-9]{4}\b|^[2-9](?: [0-9]){6,7}$"
_AMERICAN = r"\b(?:1 {1,6})?[2-9][0-9]{2} {0,6}[2-9][0-9]{2} ?[0-9]{4}\b"
_DIALLED = (
    r"\b00[1-9][0-9]{0,2}(?: {0,6}[0-9]){7,12}\b|"
    r"\b(?:85[23] {0,6}[2-9][0-9]{3} ?[0-9]{4}|886 {0,6}9[0-9]{2} ?[0-9]{3} ?[0-9]{3})\b"
)
_ABROAD = r"^[1-9][0-9]{0,2}(?: {0,6}[0-9]){6,12}\b"
_ID_CARD = r"\b[1-8](?: {0,6}[0-9]){14}(?:(?: {0,6}[0-9]){2} {0,6}[0-9X])?\b"
_BANK_CARD = r"\b[1-9](?: {0,6}[0-9]){11,18}\b"

# How people break a mobile number up. Others (3-3-3-2) are as likely a row of scores, and need a cue.
_GROUPINGS = (
    *("11", "3-4-4", "4-3-4", "4-4-3", "3-8", "8-3", "7-4", "4-7", "2-3-3-3", "3-3-5", "3-5-3", "5-6", "6-5", "5-3-3"),
    *("2-9", "3-2-2-2-2", "3-2-2-4", "3-4-2-2", "3-2-3-3", "1-10", "1-2-4-4", "1-3-3-4", "1-1-1-1-1-1-1-1-1-1-1"),
    *("3-1-1-1-1-1-1-1-1", "2-2-2-2-2-1", "1-2-2-2-2-2", "3-1-1-1-1-4", "3-4-1-1-1-1", "2-4-5", "2-5-4"),
)
# The same, with lines or dots between, for else they are three amounts.
_SIGNED_GROUPINGS = ("5-1-5", "6-1-4", "4-1-6", "3-1-7", "7-1-3", "5-2-4", "4-2-5", "3-2-6", "3-6-2", "6-2-3", "4-5-2")
_SIGNED = r"^[0-9]+[-_.~*/—–·][0-9]+[-_.~*/—–·][0-9]+$"
_PHONE_CUE = (
    r"(?i)(?:[☎☏📞📱📲✆]|电话|手机|座机|固话|小灵通|宅电|传真|联系|致电|拨打?|打|短信|号码|tel|phone|mobile|call|text|number|cell|fax)"
    r"(?:号码?|方式|小|大|通|给|到|是|为|了|的|就|也|换成|改成|换了?|me|us|at|is|on|我|你|他|她|您|家|新|旧|这个|一下|[^\p{L}\p{N}])*$"
)
_BANK_CUE = r"(?:卡|卡号|[账帐]户|[工农中建交招]行|支付宝|储蓄所|转到|打到|汇到)(?:号码?|是|为|[ :：,，、(（])*$"
_ID_CUE = r"(?i)(?:身份证|身份|证件|证号|\bid)(?:号码?|证|是|为|card|number|[ :：,，、(（])*$"
_OTHER_CUE = (
    r"(?i)(?:单号|订单|编号|流水号?|货号|条形?码|快递|运单|票号|案号|序列号|发票|取件码|验证码|口令|学籍|isbn|imei|no\.|order)"
    r"(?:号码?|是|为|[ :：#,，、(（])*$"
)
# 400 and 800: an institution's, or an advertiser's.
_SERVICE = r"\b(?:1 {0,6})?[48]00 {0,6}[0-9]{3} ?[0-9]{4}\b|\b[48]00 {0,6}[0-9]{4} ?[0-9]{3}\b"
_PROVINCE = "[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]"
_GAP = r"[ ·•・.\-—_]{0,2}"
_PLACE = rf"[A-HJ-NP-Za-hj-np-z0-9{''.join(CHINESE_DIGITS)}]"
# Licence plates of cars (GA 36-2018): five places, the last of which may say what the car is for; six for an electric
# car.
_PLATE = (
    rf"{_PROVINCE}{_GAP}[A-Za-z]{_GAP}(?:{_PLACE}{_GAP}){{4}}(?:{_PLACE}{{1,2}}|[挂学警港澳试超领])"
    rf"|(?:WJ|wj){_PROVINCE}?{_GAP}{_PLACE}{{5}}"
)
# All places apart, so that they are counted.
_PLATE_APART = rf"{_PROVINCE}[ ·.\-_]{{1,2}}[A-HJ-NP-Za-hj-np-z](?:[ ·.\-_]{{1,2}}{_PLACE}){{6}}"
# Without the place, where the words say what it is.
_PLATE_CUE = r"车牌(?:号码?)?(?:是|为|[:： ]){0,3}"
_CUED_PLATE = r"[A-Za-z]?[·•]?[A-HJ-NP-Za-hj-np-z0-9]{5,6}"


def find_numbers(texts: pl.Series) -> pl.DataFrame:
    """Telephone numbers, identity cards and bank cards in folded texts, as a frame of SPANS."""
    runs = _runs(texts)
    if runs.is_empty():
        return _spoken_mobiles(texts)
    runs = runs.with_columns(plain=_plain(pl.col("hit")))
    return gather([_mobiles(runs), _other_phones(runs), _id_cards(runs), _bank_cards(runs), _spoken_mobiles(texts)])


def _runs(texts: pl.Series) -> pl.DataFrame:
    """Runs of digits, as spans.MATCHES. What is too long for a handful of numbers is read piece by piece."""
    runs = pl.concat([_one_word_less(matches(texts, _RUN)), matches(texts, _LINES)])
    for piece in (_PIECE, _UNBROKEN):
        long = runs.filter(pl.col("hit").str.len_chars() > _LONG)
        hits = matches(long["hit"], piece)
        base, row = long["start"].gather(hits["row"]), long["row"].gather(hits["row"])
        pieces = hits.with_columns(row=row, start=hits["start"] + base, end=hits["end"] + base)
        runs = pl.concat([runs.filter(pl.col("hit").str.len_chars() <= _LONG), pieces])
    return runs


def _one_word_less(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs, and those whose only Chinese digit is the last also without it: of 13812345678一直 it is a word."""
    chinese = f"[{''.join(CHINESE_DIGITS)}]"
    last = pl.col("hit").str.slice(-1)
    less = runs.filter(pl.col("hit").str.contains(f"^[^{chinese[1:]}*[0-9]{chinese}$")).with_columns(
        hit=pl.col("hit").str.head(-1), end=pl.col("end") - _bytes(last), after=last + pl.col("after")
    )
    return pl.concat([runs, less])


def is_hotline(digits: pl.Expr) -> pl.Expr:
    """Whether a number without anything between its digits is a public line, which stays readable."""
    return digits.is_in(_hotlines())


def digits_of(text: pl.Expr) -> pl.Expr:
    """`text` as Arabic digits alone (and a check digit X), whatever stood between them."""
    return _plain(text).str.replace_all("[^0-9X]", "")


def _plain(run: pl.Expr) -> pl.Expr:
    """A run with Arabic digits and blanks alone: one ASCII character for each of its characters."""
    digits = {digit: str(value) for digit, value in (CHINESE_DIGITS | LETTER_DIGITS).items()}
    return run.str.replace_many(digits | {"x": "X"}).str.replace_all("[^0-9X]", " ")


def _inside(runs: pl.DataFrame, shape: str) -> pl.DataFrame:
    """What has a shape inside the runs: start and end in the text, as `written`, `plain`, and `digits`."""
    hits = matches(runs["plain"], shape)
    run = runs[hits["row"]]
    # A plain run has one byte for each character of the run itself.
    return run.with_columns(plain=hits["hit"], first=hits["start"], last=hits["end"]).with_columns(
        start=pl.col("start") + _bytes(pl.col("hit").str.head(pl.col("first"))),
        end=pl.col("start") + _bytes(pl.col("hit").str.head(pl.col("last"))),
        written=pl.col("hit").str.slice(pl.col("first"), pl.col("last") - pl.col("first")),
        before=pl.col("before") + pl.col("hit").str.head(pl.col("first")),
        after=pl.col("hit").str.slice(pl.col("last")) + pl.col("after"),
        digits=pl.col("plain").str.replace_all(" ", "", literal=True),
    )


def _bytes(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes().cast(pl.Int64)


def _spans(hits: pl.DataFrame, kind: str) -> pl.DataFrame:
    if hits.is_empty():
        return NONE
    # The + of a country code and the bracket of an area code belong to the number.
    sign = pl.col("before").str.extract(r"(\+ ?|[(（])$")
    opened = ~sign.str.contains("[(（]") | pl.col("written").str.contains("[)）]")
    start = pl.col("start") - pl.when(opened).then(_bytes(sign)).fill_null(0)
    return hits.select("row", start, "end", kind=pl.lit(kind), value="digits").cast(SPANS)


def _mobiles(runs: pl.DataFrame) -> pl.DataFrame:
    national = pl.col("plain").str.replace(rf"^{_PREFIX} *(1(?: *[0-9]){{10}})$", "$1")
    hits = _inside(runs, _MOBILE).with_columns(digits=national.str.replace_all(" ", "", literal=True))
    group = pl.element().filter(pl.element() != "").str.len_chars().cast(pl.String)
    groups = national.str.split(" ").list.eval(group).list.join("-")
    usual = groups.is_in(_GROUPINGS) | groups.is_in(_SIGNED_GROUPINGS) & pl.col("written").str.contains(_SIGNED)
    # Letters may stand in for the odd digit; a word of letters is no number.
    figures = pl.col("written").str.count_matches("[OolI]") <= 5
    inside_a_word = pl.col("before").str.contains("[0-9A-Za-z_]$") & pl.col("after").str.contains("^[0-9A-Za-z_]")
    hits = hits.filter(
        (usual | pl.col("before").str.contains(_PHONE_CUE))
        & figures
        & ~inside_a_word
        & ~pl.col("before").str.contains(_OTHER_CUE)
        & ~pl.col("after").str.contains(r"^\.?[0-9]")
        & ~is_hotline(pl.col("digits"))
    )
    return _spans(hits, "phone")


def _spoken_mobiles(texts: pl.Series) -> pl.DataFrame:
    """Eleven digits in words, or in characters that sound like them beside real ones."""
    hits = matches(texts, _SPOKEN)
    if hits.is_empty():
        return NONE
    meant = {word: str(digit) for word, digit in (SPOKEN_DIGITS | HOMOPHONES | CHINESE_DIGITS).items()}
    digits = pl.col("hit").str.to_lowercase().str.replace_many(meant).str.replace_all("[^0-9]", "")
    hits = hits.with_columns(digits=digits)
    sounds = pl.col("hit").str.contains(f"[{''.join(HOMOPHONES)}]")
    words = pl.col("hit").str.contains("[A-Za-z]")
    enough = pl.when(sounds).then(pl.col("hit").str.count_matches(DIGIT) >= 6).otherwise(words)
    hits = hits.filter(pl.col("digits").str.contains("^1[3-9][0-9]{9}$") & enough)
    return hits.select("row", "start", "end", kind=pl.lit("phone"), value="digits").cast(SPANS)


def _other_phones(runs: pl.DataFrame) -> pl.DataFrame:
    free = ~is_hotline(pl.col("digits")) & ~pl.col("before").str.contains(_OTHER_CUE)
    cue = pl.col("before").str.contains(_PHONE_CUE)
    landlines = _inside(runs, _LANDLINE).filter(free)
    taiwan = _inside(runs, _TAIWAN).filter(free)
    local = _inside(runs, _LOCAL).filter(free & cue)
    word_behind = pl.col("written").str.contains(f"[0-9]{{11}}[{''.join(CHINESE_DIGITS)}]$")
    mistyped = _inside(runs, _MISTYPED).filter(free & cue & ~word_behind)
    signed = pl.col("written").str.contains(r"^(?:1[- ])?[(（]?[0-9]{3}(?:[)）] ?|[-.])[0-9]{3}[-. ][0-9]{4}$")
    american = _inside(runs, _AMERICAN).filter(free & (signed | cue))
    service = _inside(runs, _SERVICE).filter(free & (cue | ~pl.col("written").str.contains("[ ,，、]")))
    without_zero = _inside(runs, _WITHOUT_ZERO).filter(free)
    dialled = _inside(runs, _DIALLED).filter(free)
    abroad = _inside(runs, _ABROAD).filter(free & pl.col("before").str.contains(r"(?:^|[^0-9A-Za-z])\+ ?$"))
    kinds = (landlines, without_zero, taiwan, local, mistyped, service, american, dialled, abroad)
    return gather(_spans(hits, "phone") for hits in kinds)


def _id_cards(runs: pl.DataFrame) -> pl.DataFrame:
    hits = _inside(runs, _ID_CARD)
    valid = is_id_card(hits["digits"])
    cue = pl.col("before").str.contains(_ID_CUE) & pl.col("digits").str.len_chars().is_in([15, 18])
    old = pl.col("digits").str.len_chars() == 15
    other = pl.col("before").str.contains(_OTHER_CUE)
    return _spans(hits.filter(cue | (valid & ~(old & other))), "id_card")


def _bank_cards(runs: pl.DataFrame) -> pl.DataFrame:
    hits = _inside(runs, _BANK_CARD)
    luhn = passes_luhn(hits["digits"])
    length = pl.col("digits").str.len_chars()
    shaped = pl.col("digits").str.contains("^[34569]") & (length >= 15)
    cue = pl.col("before").str.contains(_BANK_CUE)
    other = pl.col("before").str.contains(_OTHER_CUE)
    return _spans(hits.filter(cue | (luhn & shaped & ~other)), "bank_card")


def find_plates(texts: pl.Series) -> pl.DataFrame:
    """Licence plates in folded texts, as a frame of SPANS."""
    hits = pl.concat([matches(texts, f"{_PLATE_APART}|{_PLATE}"), matches(texts, _CUED_PLATE, cue=_PLATE_CUE)]).filter(
        (pl.col("hit").str.count_matches(rf"[0-9{''.join(CHINESE_DIGITS)}]") >= 2)
        & ~pl.col("after").str.contains(r"^[0-9A-Za-z]")
    )
    return spans(hits, "licence_plate", pl.col("hit").str.to_uppercase().str.replace_all(_GAP, ""))


@cache
def _hotlines() -> tuple[str, ...]:
    lists = lexicon("hotlines", __file__)
    return tuple(sorted({line for part in lists.values() for lines in part.values() for line in lines}))


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
