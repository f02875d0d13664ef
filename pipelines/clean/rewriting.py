"""The inner loop of `pipelines.clean.characters`: a column's bytes in, its bytes in unified characters out.

Most rows stay as they are, which one look at them shows. Another is written as often as it takes until nothing changes:
what has come together may be a run, or in Chinese context.
"""

import numpy as np
import numpy.typing as npt

from pipelines.core.arrow import decoded, decoded_of_three
from pipelines.core.kernels import Bytes, Places, kernel
from pipelines.text.characters import CODES  # nothing but tags, selectors and private use lies beyond

Codes = npt.NDArray[np.int32]
Traits = npt.NDArray[np.uint32]

# The traits of a character are one number: what is done with it, what it is to its neighbours, how often it may stand
# in a row, and the sign that it is to the rules for artefacts.
KEPT, DROPPED, ACCENT, KEYCAP, DOUBLE, PLACEHOLDER = range(6)
ACTION = 0b111
HAN, TIGHT, WESTERN, DOT, PAPER, TRAILING, KEY, SPACE, SPECIAL, PLAIN = (1 << n for n in range(3, 13))
LIMIT = 13  # two bits: at most so many in a row; 0: any number
SIGNS = 15

_BLANK, _LINE, _RETURN = 32, 10, 13
_OPEN, _CLOSE = 0xE000, 0xE001
_FULL_STOP, _IDEOGRAPHIC_STOP, _ELLIPSIS = _STOPS = 0x2E, 0x3002, 0x2026  # . 。 …
_NUMERALS = tuple(ord(one) for one in "〇零一二三四五六七八九十百千万")
_COMMA, _TO_FULL_WIDTH = 0x2C, 0xFEE0
_FULL_QUESTION, _FULL_EXCLAMATION = 0xFF1F, 0xFF01
_MARKS = (0x2C, 0x21, 0x3F, 0x3A, 0x3B)  # , ! ? : ;
_EYES, _MOUTHS = (0x3A, 0x3B), (0x29, 0x2D)  # :) ;-(
_OPENING = tuple(ord(one) for one in "（《〈【〔〖“‘")  # each followed in Unicode by what closes it
_ALONE = (0x3002, 0x3001, 0xB7)  # 。、· stay where none of their kind is beside them
_ZERO, _NINE = 0x30, 0x39
_ROUNDS = 16


@kernel
def rewrite(
    data: Bytes, offsets: Places, traits: Traits, folded: Codes, paper: bool
) -> tuple[Bytes, Places, npt.NDArray[np.uint32]]:
    """The bytes and offsets of the rewritten rows (n + 1), and the signs that each row holds.

    `traits` and `folded` are per code point below CODES; the latter is what is written for it, or its second half
    (DOUBLE). `paper`: write nothing but PAPER, line ends and placeholders, and no brackets with nothing between them.
    """
    rows = len(offsets) - 1
    longest = 0
    for row in range(rows):
        longest = max(longest, offsets[row + 1] - offsets[row])
    # A sign of one byte may become one of three, and one character two.
    out = np.empty(3 * (offsets[rows] - offsets[0]), np.uint8)
    ends, signs = np.zeros(rows + 1, np.int64), np.zeros(rows, np.uint32)
    read, made = np.empty(2 * longest + 2, np.int32), np.empty(2 * longest + 2, np.int32)
    end = 0
    for row in range(rows):
        if not paper:
            same, seen = _unchanged(data, offsets[row], offsets[row + 1], traits, folded)
            if same:
                as_read = data[offsets[row] : offsets[row + 1]]
                as_written = out[end : end + as_read.shape[0]]
                for i in range(as_read.shape[0]):  # four times as fast as to assign the slice
                    as_written[i] = as_read[i]
                end += as_read.shape[0]
                ends[row + 1], signs[row] = end, seen >> SIGNS
                continue
        n, seen = _read(data, offsets[row], offsets[row + 1], traits, folded, read)
        if seen & SPACE and _spaced_out(read, n, traits):
            n = _closed_up(read, n, traits)
        of_chinese = seen & HAN != 0
        n, settled = _write(read, n, traits, of_chinese, paper, made)
        rounds = 1
        while not settled and rounds < _ROUNDS:
            for i in range(n):
                read[i] = made[i]
            n, settled = _write(read, n, traits, of_chinese, paper, made)
            rounds += 1
        end = _encode(made, n, out, end)
        ends[row + 1], signs[row] = end, seen >> SIGNS
    return out[:end], ends, signs


@kernel
def _unchanged(data: Bytes, at: int, end: int, traits: Traits, folded: Codes) -> tuple[bool, np.uint32]:
    """Whether a row is certain to be written as it is, and the traits of its characters."""
    seen, before, pairs = np.uint32(0), np.uint32(0), np.uint32(0)
    last, run, blanks = -1, 0, False
    readable = data.shape[0] - 3
    while at < end:
        code, at = decoded_of_three(data, at, readable)
        of = traits[min(code, CODES - 1)]
        if not of & PLAIN:
            if code >= CODES or of & ACTION != KEPT or folded[code] != code or code == _RETURN:
                return False, seen
            run = run + 1 if code == last else 1
            limit = of >> LIMIT & 0b11
            unified = of & SPECIAL != 0 and (code not in _ALONE or run > 1)  # by its neighbours
            if code == _BLANK:
                blanks = True
                if at == end or last in (-1, _BLANK, _LINE) or before & TIGHT:
                    return False, seen
            elif code == _LINE:
                if at == end or last in (-1, _BLANK) or run > 2:
                    return False, seen
            elif code == _ELLIPSIS:  # two of them behind Chinese
                second, at = decoded(data, at) if at < end else (-1, at)
                third = decoded(data, at)[0] if at < end else -1
                if second != _ELLIPSIS or third in _STOPS or last in _STOPS or not before & (HAN | TIGHT):
                    return False, seen
            elif unified or (limit and run > limit) or (last == _BLANK and of & TIGHT):
                return False, seen
        pairs |= of & before
        seen |= of
        before, last = of, code
    return not blanks or pairs & HAN != 0, seen  # without two Chinese characters side by side it may be spaced out


@kernel
def _read(data: Bytes, at: int, end: int, traits: Traits, folded: Codes, line: Codes) -> tuple[int, np.uint32]:
    """A row as folded code points without the invisible ones: how many, and the traits of all of them."""
    n, seen, inside = 0, np.uint32(0), False
    readable = data.shape[0] - 3
    key, digit = -1, _BLANK  # where the last character under a key stands, and which it was
    while at < end:
        code, at = decoded_of_three(data, at, readable)
        if code >= CODES:
            continue
        of = traits[code]
        action = of & ACTION
        if inside:
            inside = code != _CLOSE
        elif action != KEPT:
            before = traits[line[n - 1]] if n > 0 else np.uint32(0)
            if action == DROPPED:
                continue
            if action == ACCENT and not before & WESTERN:  # on a Chinese character it strikes through or decorates
                continue
            if action == KEYCAP:  # what is under a key goes with it, but a number of several keys stays
                if before & KEY and key < n - 1:
                    under = line[n - 1]
                    several = key == n - 2 and digit != _BLANK and _ZERO <= under <= _NINE
                    line[n - 1] = under if several else _BLANK
                    if several:
                        line[n - 2] = digit
                    key, digit = n - 1, under if _ZERO <= under <= _NINE else _BLANK
                continue
            if action == DOUBLE:  # ⁇ and ⁈ begin with ？, ‼ and ⁉ with ！
                line[n], n = _FULL_QUESTION if code in (0x2047, 0x2048) else _FULL_EXCLAMATION, n + 1
            inside = action == PLACEHOLDER
        seen |= of
        line[n], n = folded[code], n + 1
    return n, seen


@kernel
def _spaced_out(line: Codes, n: int, traits: Traits) -> bool:
    """Whether a blank stands between any two Chinese characters, as in a text that was cut into characters."""
    spaced, last = 0, 0  # where the last Chinese character stood, from 1
    for i in range(n):
        if traits[line[i]] & HAN:
            if i > 0 and last == i:
                return False
            spaced += last > 0 and line[last] == _BLANK and line[i - 1] == _BLANK
            last = i + 1
    return spaced > 2


@kernel
def _closed_up(line: Codes, n: int, traits: Traits) -> int:
    """Takes the blanks between Chinese characters out of `line`: what is left of its length."""
    m = 0
    for i in range(n):
        behind = traits[line[m - 1]] if m > 0 else 0
        ahead = traits[line[i + 1]] if i + 1 < n else 0
        if line[i] == _BLANK and behind & HAN and ahead & (HAN | SPACE):
            continue
        line[m], m = line[i], m + 1
    return m


@kernel
def _write(line: Codes, n: int, traits: Traits, of_chinese: bool, paper: bool, made: Codes) -> tuple[int, bool]:
    """`line` with its white space and punctuation unified, into `made`: its length, and whether nothing has changed. A
    line end is written before the next character, and a blank if neither that nor the last one is Chinese punctuation;
    so none is left at an end.
    """
    m, i, run, lines, blank, last, settled = 0, 0, 0, 0, False, _LINE, True
    while i < n:
        code = line[i]
        of = traits[code]
        if of & PLAIN and not blank and lines == 0 and (not paper or of & PAPER):  # most characters
            settled &= m == i
            made[m], m, i, last = code, m + 1, i + 1, code
            continue
        if code in (_BLANK, _LINE, _RETURN):
            blank = code == _BLANK
            lines += code == _LINE or (code == _RETURN and (i + 1 == n or line[i + 1] != _LINE))
            i += 1
            continue
        begin, times = i, 1
        behind = _LINE if lines else last
        i += 1
        if of & SPECIAL:
            i = _end(line, n, begin, traits)
            code, times = _unified(line, begin, i, behind, line[i] if i < n else _LINE, traits, of_chinese)
            of = traits[code]
        if paper and (not of & PAPER or (of & TRAILING and behind == _LINE)):
            continue
        if paper and code == behind + 1 and behind in _OPENING:  # the bracket is left empty; how long the run was, the
            m, run, settled, blank = m - 1, 1, False, False  # next round counts
            last = made[m - 1] if m > 0 else _LINE
            continue

        if lines:
            lines = min(lines, 2) if m > 0 else 0
            m, last, lines = _written(made, m, _LINE, lines), _LINE, 0
        elif blank and m > 0 and not paper and not (traits[last] | of) & TIGHT:
            made[m], m, last = _BLANK, m + 1, _BLANK
        blank = False
        settled &= m == begin and code == line[begin] and times == 1

        if code == _OPEN:
            for at in range(begin, i):
                made[m], m = line[at], m + 1
            last = _CLOSE
            continue
        run = run + times if code == last else times
        last, limit = code, of >> LIMIT & 0b11
        if limit == 0 or run <= limit:
            m = _written(made, m, code, times)
    return m, settled and m == n


@kernel
def _written(made: Codes, m: int, code: int, times: int) -> int:
    """Writes `code` `times` times into `made` at `m`; where it ends."""
    for _ in range(times):
        made[m], m = code, m + 1
    return m


@kernel
def _end(line: Codes, n: int, begin: int, traits: Traits) -> int:
    """Where what belongs to the character at `begin` ends: a placeholder, a run of dots, or the character alone."""
    end = begin + 1
    if line[begin] == _OPEN:
        while end < n and line[end - 1] != _CLOSE:
            end += 1
    elif traits[line[begin]] & DOT:
        stops = line[begin] in _STOPS
        while end < n and (line[end] in _STOPS if stops else line[end] == line[begin]):
            end += 1
    return end


@kernel
def _unified(
    line: Codes, begin: int, end: int, behind: int, ahead: int, traits: Traits, of_chinese: bool
) -> tuple[int, int]:
    """What is written for a mark, or for a run of dots, between two characters: a code point, and how many of it."""
    code, before, after = line[begin], traits[behind], traits[ahead]
    chinese = before & (HAN | TIGHT) != 0
    if code in _MARKS:
        full = chinese and not (code in _EYES and ahead in _MOUTHS)
        return code + (_TO_FULL_WIDTH if full or (code == _COMMA and after & HAN) else 0), 1
    if traits[code] & DOT and (code == _ELLIPSIS or end > begin + 1):
        western = not chinese and not after & (HAN | TIGHT) and (not of_chinese or (before | after) & WESTERN != 0)
        return _dots(line, begin, end, western)
    if code == _FULL_STOP and chinese and (ahead in (_BLANK, _LINE, _RETURN) or after & HAN):
        code = _FULL_STOP if behind in _NUMERALS and ahead in _NUMERALS else _IDEOGRAPHIC_STOP
    return code, 1


@kernel
def _dots(line: Codes, begin: int, end: int, western: bool) -> tuple[int, int]:
    """What is written for several dots: an ellipsis, in Western text of three dots at most."""
    if end == begin + 2 and line[begin] + line[begin + 1] == _FULL_STOP + _IDEOGRAPHIC_STOP:
        return _IDEOGRAPHIC_STOP, 1
    if not western:
        return _ELLIPSIS, 2
    dots = 0
    for at in range(begin, end):
        dots += 1 if line[at] == _FULL_STOP else 3
    return _FULL_STOP, min(dots, 3)


@kernel
def _encode(line: Codes, n: int, out: Bytes, end: int) -> int:
    """The first `n` code points of `line` as UTF-8 into `out` from `end`; where they end."""
    for i in range(n):
        code = line[i]
        if code < 0x80:
            out[end], end = code, end + 1
        elif code < 0x800:
            out[end], out[end + 1], end = 0xC0 | code >> 6, 0x80 | code & 0x3F, end + 2
        elif code < 0x10000:
            out[end], out[end + 1], out[end + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
            end += 3
        else:
            out[end], out[end + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 0x3F
            out[end + 2], out[end + 3] = 0x80 | code >> 6 & 0x3F, 0x80 | code & 0x3F
            end += 4
    return end
