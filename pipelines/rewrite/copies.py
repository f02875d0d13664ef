"""Whether a rewrite is its source again, and whether it copies what the model was told to do."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pipelines.core.overlap import windows
from pipelines.text.keys import key_of

# Of the lines of so many letters and digits (a shorter one may have no other wording), more than this share the same
# but for punctuation: a copy. Ours.
_LEAST_LETTERS = 8
# A line with so many letters more or fewer at an end says the same again: 嗯, 呀, well. Ours.
A_WORD = 4
_COPIED_SHARE = 0.8

# So many characters of Chinese, or words of another language, of the instructions are no accident. Ours.
_CHARACTERS, _WORDS = 12, 6
_HAN = r"\u3007\u3400-\u4dbf\u4e00-\u9fff"
_HAN_RUN = re.compile(f"[{_HAN}]+")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


class _Shingles(NamedTuple):
    han: frozenset[str]
    words: frozenset[tuple[str, ...]]


def is_copy(pairs: Sequence[tuple[str, str]]) -> str | None:
    """How many of the lines are the same but for punctuation and a word at one end (``9 of 10 lines``), where too many
    are; else None.

    Args:
        pairs: Each line before and after. Where all are short, all of them count.
    """
    keys = [(key_of(before, "marks"), key_of(after, "marks")) for before, after in pairs]
    counting = [pair for pair in keys if len(pair[0]) >= _LEAST_LETTERS] or keys
    same = sum(is_said_again(before, after) for before, after in counting)
    return f"{same} of {len(counting)} lines" if same > _COPIED_SHARE * len(counting) else None


def is_said_again(before: str, after: str) -> bool:
    """Whether the key of a line is that of its source but for a word at one end."""
    short, long = sorted((before, after), key=len)
    return len(long) - len(short) <= A_WORD and (long.startswith(short) or long.endswith(short))


def copies_instructions(before: str, after: str, prompt_text: str) -> bool:
    """Whether a run of the prompt stands in a line that was not in its source: 12 characters of Chinese, or 6 words."""
    told, wrote = _of_prompt(prompt_text), _shingles(after)
    han, words = wrote.han & told.han, wrote.words & told.words
    if not han and not words:
        return False
    had = _shingles(before)
    return bool(han - had.han or words - had.words)


@lru_cache(maxsize=16)  # the prompts of a run are a handful
def _of_prompt(prompt_text: str) -> _Shingles:
    return _shingles(prompt_text)


def _shingles(text: str) -> _Shingles:
    words = _WORD.findall(key_of(text, "form").replace("\u2019", "'"))
    return _Shingles(
        frozenset(one for run in _HAN_RUN.findall(key_of(text, "marks")) for one in windows(run, _CHARACTERS)),
        frozenset(windows(tuple(words), _WORDS)),
    )
