"""Licence plates of cars (GA 36-2018)."""

import polars as pl

from pipelines.text.pii.patterns import CHINESE_DIGITS
from pipelines.text.pii.spans import matches, spans

_PLACE = "[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]"
_BETWEEN = r"[ ·•・.\-—_]{0,2}"
_PLACED = rf"[A-HJ-NP-Za-hj-np-z0-9{''.join(CHINESE_DIGITS)}]"
# Five places, the last of which may say what the car is for; six for a car of new energy.
_PLATE = (
    rf"{_PLACE}{_BETWEEN}[A-Za-z]{_BETWEEN}(?:{_PLACED}{_BETWEEN}){{4}}(?:{_PLACED}{{1,2}}|[挂学警港澳试超领])"
    rf"|(?:WJ|wj){_PLACE}?{_BETWEEN}{_PLACED}{{5}}"
)
# All places apart, so that they are counted.
_APART = rf"{_PLACE}[ ·.\-_]{{1,2}}[A-HJ-NP-Za-hj-np-z](?:[ ·.\-_]{{1,2}}{_PLACED}){{6}}"
# Without the place, where the words say what it is.
_CUE = r"车牌(?:号码?)?(?:是|为|[:： ]){0,3}"
_CUED = r"[A-Za-z]?[·•]?[A-HJ-NP-Za-hj-np-z0-9]{5,6}"


def find_plates(texts: pl.Series) -> pl.DataFrame:
    """Licence plates in folded texts, as a frame of SPANS."""
    found = pl.concat([matches(texts, f"{_APART}|{_PLATE}"), matches(texts, _CUED, cue=_CUE)]).filter(
        (pl.col("hit").str.count_matches(rf"[0-9{''.join(CHINESE_DIGITS)}]") >= 2)
        & ~pl.col("after").str.contains(r"^[0-9A-Za-z]")
    )
    return spans(found, "licence_plate", pl.col("hit").str.to_uppercase().str.replace_all(_BETWEEN, ""))
