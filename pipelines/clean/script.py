"""Which Chinese script a text is written in."""

from functools import cache

import polars as pl

# A marker of the other script in ten still is no mixture: 后, 里 and 干 stand in both.
_TOLERATED = 0.1


def script(text: pl.Expr) -> pl.Expr:
    """`simplified`, `traditional`, `mixed`, or `neutral` where no character tells the two apart.

    A character tells where OpenCC's dictionaries change it in one direction alone.
    """
    simplified_only, traditional_only = (f"[{''.join(characters)}]" for characters in _markers())
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


def as_simplified(text: pl.Expr) -> pl.Expr:
    """`text` with every character that only Traditional has in its Simplified form, one by one.

    For comparison only: 著, which both scripts have, stays where a reader would write 着.
    """
    _, traditional_only = _markers()
    return text.str.replace_many(traditional_only)


@cache
def _markers() -> tuple[dict[str, str], dict[str, str]]:
    """The characters that only Simplified has and those that only Traditional has, each with its counterpart."""
    from opencc import OpenCC

    # One character a line, so that no phrase of the dictionaries matches.
    characters = [chr(code) for code in range(0x4E00, 0xA000)]
    to_simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    to_traditional = OpenCC("s2t").convert("\n".join(characters)).split("\n")
    simplified, traditional = {}, {}
    for character, in_simplified, in_traditional in zip(characters, to_simplified, to_traditional, strict=True):
        if in_simplified != character and in_traditional == character:
            traditional[character] = in_simplified
        elif in_traditional != character and in_simplified == character:
            simplified[character] = in_traditional
    return simplified, traditional
