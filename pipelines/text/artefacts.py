"""What a model leaves in a text and nobody says aloud: that it is one, remarks, lists, markup, labels, its orders.

Of a rewrite line by line, and only what the line's source does not hold.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from pipelines.core.overlap import windows
from pipelines.text.keys import key_of
from pipelines.text.lexicon import lexicon
from pipelines.text.script import traditional_only

# In the order of a detail.
KINDS = (
    *("ai", "ai_phrase", "remark", "boilerplate", "persona", "list", "enumeration", "markdown", "code_fence", "tag"),
    *("speaker_label", "stage_direction", "emoji", "invisible", "traditional", "instructions"),
)

# Kinds that a source may say in other words: `<kind>_before` of the lexicon.
_EXCUSED = ("enumeration", "boilerplate")

# A run of so many characters of Chinese, or words of another language, out of the instructions is no accident. Ours.
_CHARACTERS, _WORDS = 12, 6
_HAN_RUN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff]+")
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def artefacts(pairs: Sequence[tuple[str, str]], instructions: str) -> dict[str, int]:
    """How many lines hold an artefact that was not there before, by kind; empty where none does.

    `pairs` are each line before and after; traditional characters are no artefact where any line before has some.
    """
    counts: Counter[str] = Counter()
    for before, after in pairs:
        if new := kinds(after):
            # Who counts in a sentence may count in another way, and who names a doctor may name a professional.
            patterns = {kind: _patterns()[f"{kind}_before"].values() for kind in _EXCUSED}
            excused = {kind for kind, of in patterns.items() if any(pattern.search(before) for pattern in of)}
            counts.update(new - kinds(before) - excused)
        counts["instructions"] += _copies_instructions(before, after, instructions)
    for kind, pattern in _characters().items():
        if pattern.search("\n".join(after for _, after in pairs)):
            counts[kind] = sum(
                bool(set(pattern.findall(after)) - set(pattern.findall(before))) for before, after in pairs
            )
    if counts["traditional"] and any(_characters()["traditional"].search(before) for before, _ in pairs):
        del counts["traditional"]
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def kinds(text: str) -> set[str]:
    """The kinds of artefacts in the words of a text: no instructions, and no single characters."""
    plain = text.replace("\u2019", "'")
    scripts = [script for script, pattern in _WRITTEN_IN.items() if pattern.search(plain)]
    return {
        kind
        for kind, patterns in _patterns().items()
        if kind in KINDS and any(script in patterns and patterns[script].search(plain) for script in scripts)
    }


# --- copied instructions


class _Shingles(NamedTuple):
    han: frozenset[str]
    words: frozenset[tuple[str, ...]]


def _copies_instructions(before: str, after: str, instructions: str) -> bool:
    """Whether a run of the instructions stands in a line that was not in its source."""
    prompt, new = _shingles_of_prompt(instructions), _shingles(after)
    han, words = new.han & prompt.han, new.words & prompt.words
    if not han and not words:
        return False
    old = _shingles(before)
    return bool(han - old.han or words - old.words)


def _shingles(text: str) -> _Shingles:
    words = _WORD.findall(key_of(text, "form").replace("\u2019", "'"))
    return _Shingles(
        frozenset(one for run in _HAN_RUN.findall(key_of(text, "marks")) for one in windows(run, _CHARACTERS)),
        frozenset(windows(tuple(words), _WORDS)),
    )


_shingles_of_prompt = lru_cache(maxsize=16)(_shingles)  # the prompts of a run are a handful


# --- the lexicon

_WRITTEN_IN = {"han": re.compile("[\u4e00-\u9fff]"), "latin": re.compile("[A-Za-z]{2}"), "any": re.compile("")}


@cache
def _patterns() -> dict[str, dict[str, re.Pattern[str]]]:
    """By kind and by the script of their letters, for they match no text without it: most lines are of one."""
    alternatives: dict[str, dict[str, list[str]]] = {}
    for kind, patterns in lexicon("artefacts", __file__).items():
        for one in patterns if isinstance(patterns, list) else ():
            alternatives.setdefault(kind, {}).setdefault(script_of(one), []).append(f"(?:{one})")
    return {
        kind: {script: re.compile("|".join(of), re.IGNORECASE | re.MULTILINE) for script, of in by_script.items()}
        for kind, by_script in alternatives.items()
    }


def script_of(pattern: str) -> str:
    """The script of the letters that a pattern is written with: han, latin or any."""
    return next(name for name, letters in _WRITTEN_IN.items() if letters.search(pattern))


@cache
def _characters() -> dict[str, re.Pattern[str]]:
    """Single characters by kind; of the two scripts those that Simplified Chinese never has."""
    listed = {**lexicon("artefacts", __file__)["characters"], "traditional": f"[{''.join(traditional_only())}]"}
    return {kind: re.compile(pattern) for kind, pattern in listed.items()}
