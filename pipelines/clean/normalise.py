"""A text as it is stored: one form of every character, without what a platform left in it."""

from typing import Literal

import numpy as np
import polars as pl

from pipelines.clean.artefacts import enclosed, without_artefacts
from pipelines.clean.characters import CLOSE, MARK, OPEN, rewritten
from pipelines.text.chunks import in_slices, with_rows

Profile = Literal["default", "paper"]

# How often a text is looked at again after a rule has changed it. Entities in entities are all that needs more than
# two or three; a text that was made to need more loses every sign that may start something.
_ROUNDS = 12
_SIGNS = r"[!-/:-@\[-`{-~]"


def normalised(text: pl.Expr, profile: Profile = "default") -> pl.Expr:
    """`text` without artefacts, in unified characters; normalising twice changes nothing.

    Args:
        text: Strings. A null stays null, what is nothing but artefacts becomes an empty string.
        profile: `default` keeps what carries meaning (MBTI, 5mg, 996, English words); `paper` keeps Chinese
            characters, their punctuation and line ends alone (M §2). Placeholders stay in both.
    """
    return text.map_batches(
        lambda texts: in_slices(lambda some: _normalised(some, paper=profile == "paper"), texts),
        return_dtype=pl.String,
        is_elementwise=True,
    )


def _normalised(texts: pl.Series, *, paper: bool) -> pl.Series:
    """A slice of the column."""
    raw = texts.str.contains(f"[{OPEN}{CLOSE}]").arg_true()
    own = with_rows(texts, raw, texts.gather(raw).str.replace_many([OPEN, CLOSE], ["", ""]))
    spared = own.str.contains("[", literal=True).arg_true()
    made = _settled(with_rows(own, spared, enclosed(own.gather(spared))), paper=paper)
    enclosing = made.str.contains(OPEN, literal=True).arg_true()
    made = with_rows(made, enclosing, made.gather(enclosing).str.replace_many([OPEN, CLOSE], ["[", "]"]))
    if texts.null_count():
        made = with_rows(made, texts.is_null().arg_true(), pl.Series([None], dtype=pl.String))
    return made.alias(texts.name)


def _settled(texts: pl.Series, *, paper: bool) -> pl.Series:
    """All rules until none changes anything."""
    made = _without_artefacts(texts)
    rows = np.arange(len(texts)) if paper else np.arange(0)
    for _ in range(_ROUNDS):
        if len(rows) == 0:
            break
        bare, _ = rewritten(made.gather(rows), paper=True)
        again = _without_artefacts(bare)
        made = with_rows(made, rows, again)
        rows = rows[(again != bare).to_numpy()]
    return made


def _without_artefacts(texts: pl.Series) -> pl.Series:
    """Unified characters and no artefact: again and again on the rows that the last round has changed."""
    made, rows = texts, np.arange(len(texts))
    for round_ in range(_ROUNDS + 1):
        some = made.gather(rows) if round_ else made
        if round_ == _ROUNDS:
            some = some.str.replace_all(_SIGNS, " ")
        unified, signs = rewritten(some)
        marked = np.flatnonzero(signs & MARK)
        composed = with_rows(unified, marked, unified.gather(marked).str.normalize("NFC"))
        cut = without_artefacts(composed, signs)
        made = with_rows(made, rows, cut) if round_ else cut
        rows = rows[(cut != unified).to_numpy()]
        if len(rows) == 0:
            break
    return made
