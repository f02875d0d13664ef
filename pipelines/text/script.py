"""Which Chinese script a text is written in, and Simplified Chinese from either."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers, strings
from pipelines.core.overlap import points
from pipelines.text.characters import CODES, Classes, counted
from pipelines.text.chunks import in_slices, with_rows

# A marker of the other script in ten still is no mixture: 后, 里 and 干 are in both.
_TOLERATED = 0.1

# Characters that OpenCC converts only inside phrases: 藉口 反覆 瞭解 沈默 甦醒 英哩 衹得. A test holds them against its
# dictionaries.
IN_PHRASES = "哩沈甦瞭藉衹覆"

# What is before and behind 著 where it means writing or standing out.
_BEFORE_WRITTEN, _AFTER_WRITTEN = "原編编土名巨專专譯译遺遗拙論论合卓昭顯显", "名作者述稱称"

_CLASSES = ("simplified", "traditional", "in_phrases")
_SIMPLIFIED, _TRADITIONAL, _IN_PHRASES = 1, 2, 3


def script(text: pl.Expr) -> pl.Expr:
    """`simplified`, `traditional`, `mixed`, or `neutral` where no character is of one script alone.

    A character is of one script where OpenCC's dictionaries change it in one direction alone.
    """
    return text.map_batches(_script, return_dtype=pl.String, is_elementwise=True)


def _script(texts: pl.Series) -> pl.Series:
    simplified, traditional = pl.col("simplified"), pl.col("traditional")
    both = simplified + traditional
    return pl.DataFrame(counted(texts, _gate(), _CLASSES)).select(
        pl.when(both == 0)
        .then(pl.lit("neutral"))
        .when(traditional <= _TOLERATED * both)
        .then(pl.lit("simplified"))
        .when(simplified <= _TOLERATED * both)
        .then(pl.lit("traditional"))
        .otherwise(pl.lit("mixed"))
        .alias(texts.name)
    )[texts.name]


def as_simplified(text: pl.Expr) -> pl.Expr:
    """`text` with every character that only Traditional has in its Simplified form, one by one.

    For comparison only: 著, which both scripts have, stays where a reader would write 着.
    """
    return text.str.replace_many(traditional_only())


def simplified(text: pl.Expr) -> pl.Expr:
    """`text` in Simplified Chinese, by OpenCC's phrases and characters; a null stays one.

    Only a row that holds something to convert is touched, and in it no character that only Simplified has: OpenCC turns
    打坏 into 打坯. A row that is rather Traditional is read as typed in Taiwan (看著 becomes 看着), another is not
    (显著 stays). No word is exchanged for the mainland's: 憂鬱症 becomes 忧郁症.
    """
    return text.map_batches(lambda texts: in_slices(_simplified, texts), return_dtype=pl.String, is_elementwise=True)


def _simplified(texts: pl.Series) -> pl.Series:
    counts = counted(texts, _gate(), _CLASSES)
    rather_traditional = counts["traditional"] >= counts["simplified"]
    gated = counts["traditional"] + counts["in_phrases"] > 0
    for config, mask in (("tw2s", gated & rather_traditional), ("t2s", gated & ~rather_traditional)):
        rows = np.flatnonzero(mask)
        if len(rows):
            texts = with_rows(texts, rows, _converted(texts.gather(rows), config))
    return texts


def _converted(texts: pl.Series, config: str) -> pl.Series:
    """All rows in one call of OpenCC, a line end between them; its dictionaries keep the number of characters."""
    data, offsets = buffers(texts + "\n")
    joined = data[offsets[0] : offsets[-1]].tobytes().decode()
    before = points(joined)
    made = points(_opencc(config).convert(joined.replace("\0", "\n")))  # it stops at a NUL
    assert len(made) == len(before), "OpenCC has changed the number of characters"
    # Where 著 is no 着, but the verb: 原著, 土著, 著稱. OpenCC's list of such words is short.
    framed = np.concatenate([[0], before, [0]])
    behind, ahead = np.isin(framed[:-2], points(_BEFORE_WRITTEN)), np.isin(framed[2:], points(_AFTER_WRITTEN))
    written = (before == ord("著")) & (behind | ahead)
    kept = (before == 0) | (_gate()[np.minimum(before, CODES - 1)] == _SIMPLIFIED) | written
    made = np.where(kept, before, made)
    widths = 1 + (made > 0x7F) + (made > 0x7FF) + (made > 0xFFFF)
    ends = np.concatenate([[0], np.cumsum(widths)])
    begins = np.concatenate([[0], np.cumsum(texts.str.len_chars().to_numpy() + 1, dtype=np.int64)])
    encoded = np.frombuffer(made.tobytes().decode("utf-32-le").encode(), np.uint8)
    return strings(encoded, ends[begins]).str.head(-1)


def in_both_scripts(pattern: str) -> str:
    """A regex that matches what `pattern`, written in Simplified Chinese, does, each character in any form."""
    return "".join(f"[{one}{others}]" if (others := _forms().get(one)) else one for one in pattern)


def traditional_only() -> dict[str, str]:
    """The characters that only Traditional Chinese has, each with its Simplified form."""
    return _markers()[1]


def convertible() -> str:
    """All characters that become another one when Traditional Chinese is turned into Simplified."""
    return "".join(map(chr, np.flatnonzero(_gate() > _SIMPLIFIED).tolist()))


@cache
def _forms() -> dict[str, str]:
    """Per character of Simplified Chinese all others that become it."""
    forms = {"复": "覆", "了": "瞭", "借": "藉", "沉": "沈"}  # inside phrases
    for config in ("t2s", "tw2s"):
        for one, made in each_alone(config).items():
            if _gate()[ord(one)] > _SIMPLIFIED and one != made and one not in forms.get(made, ""):
                forms[made] = forms.get(made, "") + one
    return forms


@cache
def _gate() -> Classes:
    """The class of each character of one script alone, or that OpenCC converts in some phrases."""
    simplified_only, traditional_only = _markers()
    of_taiwan = [one for one, made in each_alone("tw2s").items() if one != made and one not in traditional_only]
    classes = np.zeros(CODES, np.uint8)
    for characters, what in (
        (of_taiwan, _IN_PHRASES),
        (IN_PHRASES, _IN_PHRASES),
        (traditional_only, _TRADITIONAL),
        (simplified_only, _SIMPLIFIED),
    ):
        classes[[ord(one) for one in characters]] = what
    return classes


@cache
def _markers() -> tuple[dict[str, str], dict[str, str]]:
    """The characters that only Simplified has and those that only Traditional has, each with its counterpart."""
    to_simplified, to_traditional = each_alone("t2s"), each_alone("s2t")
    simplified, traditional = {}, {}
    for character, in_simplified in to_simplified.items():
        in_traditional = to_traditional[character]
        if in_simplified != character and in_traditional == character:
            traditional[character] = in_simplified
        elif in_traditional != character and in_simplified == character:
            simplified[character] = in_traditional
    # 么 has lost its own meaning (幺) to 麼: it is what Simplified writes.
    simplified["么"] = to_traditional["么"]
    return simplified, traditional


@cache
def each_alone(config: str) -> dict[str, str]:
    """What OpenCC makes of each character alone."""
    # One character a line, so that no phrase of the dictionaries matches.
    characters = [chr(code) for code in range(0x3400, 0xA000)]
    return dict(zip(characters, _opencc(config).convert("\n".join(characters)).split("\n"), strict=True))


@cache
def _opencc(config: str) -> Any:
    from opencc import OpenCC

    return OpenCC(config)
