"""The characters of a text: invisible ones out, white space and punctuation unified, emoji out.

One pass over the UTF-8 bytes of a column. Chinese punctuation stays Chinese: what NFKC would do to ，？！ is not done.

* Line ends become \\n, at most two in a row; other white space one blank, none beside Chinese punctuation or line ends.
* Controls, zero-width and bidirectional marks, selectors, private use, blank fillers, U+FFFD and enclosing marks go.
* An emoji becomes a blank: it often stands where a comma would. Digits on several keys in a row are a number and stay.
* Full-width letters, digits and signs become ASCII; , ? ! ; : and . become full-width behind a Chinese character.
* ... 。。。 … become ……; ！！！！ is cut to three: that much of an emphasis carries feeling.
"""

from collections.abc import Callable, Iterable
from functools import cache
from string import ascii_letters
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.clean import rewriting as do
from pipelines.clean.rewriting import Codes, Traits
from pipelines.core.arrow import buffers, strings
from pipelines.text.characters import CODES, EMOJI, FACE_SIGNS, KEYCAP, KEYS, LYING_FACE_SIGNS, MOUTHS, every_character
from pipelines.text.script import convertible

# What encloses a placeholder that has to stay as it is; both are private use, so no text holds them otherwise.
OPEN, CLOSE = "\ue000", "\ue001"

# Signs that a row holds, by which the rules for artefacts choose their rows.
BRACKET, HASH, AT, AMPERSAND, LESS, SLASH, LATIN, FACE, LYING, MARK, SPARED, TRADITIONAL = (1 << n for n in range(12))

_INVISIBLE = r"[\p{Cc}\p{Cf}\p{Co}\p{Me}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\ufffc\ufffd]"
_TIGHT = "，。！？；：、（）《》〈〉【】〔〕〖〗"
_CHINESE = _TIGHT + "“”‘’…—～·"
_TRAILING = "，。、；：）》〉】〕〗”’·～"  # what no line begins with; only the paper's profile makes such lines
_DOUBLES = {"‼": "！", "⁇": "？", "⁈": "！", "⁉": "？"}  # and their second half
_FOLDED = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code) not in "！（），：；？～"},
    **dict(zip("｡｢｣､･「」『』﹁﹂﹃﹄〝〞‧∙⋅・‥⋯―─⸺⸻〜∼˜", "。“”、·“”‘’“”‘’“”····……————～～～", strict=True)),
}
_ONCE, _TWICE = "，。；：、~～", "—"  # how often in a row; other marks and signs three times


def rewritten(texts: pl.Series, *, paper: bool = False) -> tuple[pl.Series, npt.NDArray[np.uint32]]:
    """`texts` in unified characters, and the signs that each row holds: the union of BRACKET, HASH …

    A null comes out empty; what stands between OPEN and CLOSE stays as it is. `paper` leaves nothing but Chinese
    characters, their punctuation and line ends (M §2).
    """
    data, offsets = buffers(texts)
    out, ends, signs = do.rewrite(data, offsets, *_tables(), paper)
    return strings(out, ends), signs


@cache
def _tables() -> tuple[Traits, Codes]:
    """The traits of each character, and what is written for it."""
    every = every_character()

    def where(pattern: str) -> npt.NDArray[np.bool_]:
        return every.str.contains(pattern).to_numpy()

    folded = _folded(where)
    action = np.full(CODES, do.KEPT, np.uint32)
    action[where(r"\p{Mn}")] = do.ACCENT
    action[where(_INVISIBLE)] = do.DROPPED
    action[where(EMOJI) | where(r"\p{White_Space}|[\x1c-\x1e]")] = do.KEPT
    action[_codes(_DOUBLES)], action[ord(KEYCAP)], action[ord(OPEN)] = do.DOUBLE, do.KEYCAP, do.PLACEHOLDER

    han, marks = where(r"\p{Han}"), where(r"\p{M}")
    traits = np.zeros(CODES, np.uint32)
    traits[han] |= do.HAN | do.PAPER
    traits[where(r"[\p{L}\p{N}]") & ~han | marks] |= do.WESTERN
    for trait, characters in (
        (do.TIGHT, _TIGHT),
        (do.PAPER, _CHINESE),
        (do.TRAILING, _TRAILING),
        (do.DOT | do.SPECIAL, ".。…、·"),
        (do.SPECIAL, ",!?:;"),
        (do.KEY, KEYS),
        (do.SPACE, " "),
        (do.HAN | do.PAPER | do.SPECIAL, OPEN + CLOSE),
    ):
        traits[_codes(characters)] |= trait
    limit = np.where(where(r"[\p{P}\p{S}]") & ~han, 3, 0)
    limit[_codes(_ONCE)], limit[_codes(_TWICE)], limit[_codes("…")] = 1, 2, 0
    signs = np.zeros(CODES, np.uint32)
    for sign, characters in (
        (BRACKET, "["),
        (HASH, "#"),
        (AT, "@"),
        (AMPERSAND, "&"),
        (LESS, "<"),
        (SLASH, "/"),
        (LATIN, ascii_letters),
        (FACE, FACE_SIGNS),
        (LYING, LYING_FACE_SIGNS),
        (SPARED, OPEN),
        (TRADITIONAL, convertible()),
    ):
        signs[_codes(characters)] |= sign
    signs[marks | where(r"[\u1160-\u11ff]")] |= MARK  # and what of Hangul composes
    traits |= limit.astype(np.uint32) << do.LIMIT | signs << do.SIGNS
    seen = do.SPACE | np.uint32(0xFFFFFFFF << do.SIGNS & 0xFFFFFFFF)
    traits[limit == 0] |= do.PLAIN
    traits[traits & do.SPECIAL > 0] &= ~np.uint32(do.PLAIN)
    traits[_codes(" \n\r")] &= ~np.uint32(do.PLAIN)
    traits[(folded != np.arange(CODES)) | (action != do.KEPT)] &= ~np.uint32(do.PLAIN)
    return traits | traits[folded] & seen | action, folded


def _folded(where: Callable[[str], npt.NDArray[np.bool_]]) -> Codes:
    """What is written for each character: its composed, full-sized, horizontal form, Chinese punctuation full-width."""
    folded = np.arange(CODES, dtype=np.int32)
    for code in np.flatnonzero(where(r"[\p{L}\p{N}\p{P}\p{S}\p{M}]")).tolist():
        composed = normalize("NFC", chr(code))
        if len(composed) == 1:
            folded[code] = ord(composed)
    for code in (*range(0xFE10, 0xFE70), *range(0x2E80, 0x2FD6)):  # vertical and small forms; radicals
        same = normalize("NFKC", chr(code))
        if len(same) == 1 and chr(code) not in MOUTHS:
            folded[code] = ord("，！？：；（）"[",!?:;()".index(same)] if same in ",!?:;()" else same)
    for characters, forms in ((_FOLDED, _FOLDED.values()), (_DOUBLES, _DOUBLES.values())):
        folded[_codes(characters)] = _codes(forms)
    folded[where(EMOJI) | where(r"\p{White_Space}")] = ord(" ")
    folded[_codes("\v\f\x1c\x1d\x1e\x85\u2028\u2029")] = ord("\n")
    folded[_codes("\n\r")] = _codes("\n\r")
    return folded


def _codes(characters: Iterable[str]) -> list[int]:
    return [ord(one) for one in characters]
