"""Classes of characters: how many of each a text holds, in one pass over the bytes of a column; emoji and faces."""

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers, decoded_of_three
from pipelines.core.kernels import Bytes, Places, kernel

CODES = 0x40000  # every character with letters or signs lies below; what lies above counts as the last one
_TAGS = 0xE0000  # but for these, which are invisible and never counted

Classes = npt.NDArray[np.uint8]
"""One entry a code point: its class, from 1; 0 for what is not counted."""


# What a picture is made of: pictographs, the letters of flags and skin tones (joiners, selectors and tags are invisible
# characters anyway). A digit, # and * are emoji only under the enclosing key; ©, ® and ™ are signs of writing.
EMOJI = r"[[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Emoji_Modifier}]--[©®™‼⁉]]"
KEYCAP = "\u20e3"
KEYS = "0123456789#*"

# (^_^), （￣▽￣）, (´・ω・`), T_T: something like a mouth between two like eyes. Prose, sums and lists in brackets
# hold a letter, a digit or a Chinese character where a face has none.
MOUTHS = "︵︶︿﹀"  # by their names brackets of vertical text
_EYE = r"[\^><;；=≧≦￣¯´`‵′'ˊˋ•·｡°◕◔●ಠಥ╥╯╰┬TQoOuU@*xX×╬☉⊙∩⊂つд๑⁄~～-]"
_MOUTH = rf"[{MOUTHS}_ω⌒﹏▽△□▿‿∀дДерㅂㅅ皿益エзᴗ◡∇﹃ヮ—.。oOvw]"
_AROUND = r"[^()（）\n0-9A-Za-z一-鿿]{0,3}"
_LEFT, _RIGHT = r"[ヾヽ╮╭ԅง٩つづ╰oO\\]?[(（][oづっつ]?", r"[づっつo]?[)）][ノﾉゞっつづง╯╭╮وoO/]?(?:[︵彡]?┻━┻)?"
FACE = "|".join(
    (
        rf"{_LEFT}{_AROUND}{_EYE}{{1,3}} ?{_MOUTH}{{1,3}} ?{_EYE}{{1,3}}{_AROUND}{_RIGHT}",
        r"[(（][oO]?\^{2}[oO]?[)）]|¯\\_\(ツ\)_/¯|(?-u:\b)(?:T_+T|Q_+Q|t_+t|o_+O|O_+o)(?-u:\b)",
        r"\^[_.ω▽]?\^|[><][_.﹏][><]|=[_ω▽]=|-_+-\|*|[;；]_[;；]|[·•￣][_ω▽﹏][·•￣]",
    )
)
FACE_SIGNS = f"{MOUTHS}^_ω⌒﹏▽△□▿‿∀дДㅂㅅ益エзᴗ◡∇﹃ヮ≧≦￣¯´╥╯ಠಥ"  # every face has one of them

# Faces that lie on their side. :) alone may end a bracket, but not a line.
LYING_FACE = r"(?m)[:;]-[)(]|[：；]-[）)（(]|(?:[:;]\)+ ?)+$"
LYING_FACE_SIGNS = ":;：；"


def every_character() -> pl.Series:
    """All code points below CODES, in order, each a string; a surrogate is U+FFFD."""
    return pl.Series([chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd" for code in range(CODES)])


def counted(texts: pl.Series, classes: Classes, names: tuple[str, ...]) -> dict[str, npt.NDArray[np.int64]]:
    """How many characters of each class in `names` (the first is class 1) each text holds; 0 for a null."""
    counts = _counts(*buffers(texts), classes, len(names) + 1)
    return {name: counts[:, n] for n, name in enumerate(names, 1)}


@kernel
def _counts(data: Bytes, offsets: Places, classes: Classes, n_classes: int) -> npt.NDArray[np.int64]:
    rows, readable = len(offsets) - 1, data.shape[0] - 3
    counts = np.zeros((rows, n_classes), np.int64)
    for row in range(rows):
        at, end, here = offsets[row], offsets[row + 1], counts[row]
        while at < end:
            code, at = decoded_of_three(data, at, readable)
            if not _TAGS <= code < _TAGS + 0x1000:
                here[classes[min(code, len(classes) - 1)]] += 1
    return counts
