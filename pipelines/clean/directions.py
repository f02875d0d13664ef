"""Stage directions in Chinese dialogues that models wrote: （微笑）, （一段时间后）, a line in brackets of its own.

Nobody says them aloud. The brackets in which people add something (（继父）, （和别人相比）) stay: only the words of
`[directions]` in `lexicons/artefacts.toml` tell one from the other, and a bracket that is a whole line.
"""

from functools import cache

import polars as pl

from pipelines.text.lexicon import alternation, filled, lexicon


def without_directions(text: pl.Expr) -> pl.Expr:
    """`text` of a turn without stage directions; a null stays one, what was nothing else becomes empty."""
    made = text.str.replace_all(_line(), "").str.replace_all(_pattern(), "")
    changed = pl.when(text.str.contains(_OPENING)).then(made).otherwise(text)
    return pl.when(changed == text).then(text).otherwise(changed.str.strip_chars())


_OPENING = "[（(]"


@cache
def _pattern() -> str:
    return alternation(
        filled(pattern, {"in": _inside()}) for pattern in lexicon("artefacts", __file__)["directions"]["patterns"]
    )


@cache
def _line() -> str:
    return rf"(?m)^[ \t]*{_OPENING}{_inside()}{{1,80}}[）)][。.]?[ \t]*$\n?"


def _inside() -> str:
    return str(lexicon("artefacts", __file__)["directions"]["in"])
