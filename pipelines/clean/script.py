"""Which Chinese script a text is written in."""

from functools import cache

import polars as pl

# A marker of the other script in ten still is no mixture: 后, 里 and 干 stand in both.
_TOLERATED = 0.1


def script(text: pl.Expr) -> pl.Expr:
    """`simplified`, `traditional`, `mixed`, or `neutral` where no character tells the two apart.

    A character tells where OpenCC's dictionaries change it in one direction alone.
    """
    simplified_only, traditional_only = _markers()
    simplified, traditional = text.str.count_matches(simplified_only), text.str.count_matches(traditional_only)
    both = simplified + traditional
    return (
        pl.when(both == 0)
        .then(pl.lit("neutral"))
        .when(traditional <= _TOLERATED * both)
        .then(pl.lit("simplified"))
        .when(simplified <= _TOLERATED * both)
        .then(pl.lit("traditional"))
        .otherwise(pl.lit("mixed"))
    )


@cache
def _markers() -> tuple[str, str]:
    """Two character classes: those that only Simplified has, those that only Traditional has."""
    from opencc import OpenCC

    # One character a line, so that no phrase of the dictionaries matches.
    characters = [chr(code) for code in range(0x4E00, 0xA000)]
    to_simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    to_traditional = OpenCC("s2t").convert("\n".join(characters)).split("\n")
    simplified, traditional = [], []
    for character, as_simplified, as_traditional in zip(characters, to_simplified, to_traditional, strict=True):
        if as_simplified != character and as_traditional == character:
            traditional.append(character)
        elif as_traditional != character and as_simplified == character:
            simplified.append(character)
    return f"[{''.join(simplified)}]", f"[{''.join(traditional)}]"
