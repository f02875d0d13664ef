"""What a rewrite holds that nobody says aloud: a model speaking of itself, remarks, lists, markup, labels, its orders.

Line by line, and only what the line's own source does not hold: people quote, count and label as well.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from pipelines.rewrite.copies import copies_instructions
from pipelines.text.lexicon import lexicon
from pipelines.text.script import traditional_only

# The kinds, in the order in which they are told.
KINDS = (
    *("ai_phrase", "remark", "boilerplate", "persona", "list", "enumeration", "markdown", "code_fence", "tag"),
    *("speaker_label", "stage_direction", "emoji", "invisible", "traditional", "instructions"),
)

# Kinds that a source may say in words of its own: `<kind>_before` of the lexicon.
_EXCUSED = ("enumeration", "boilerplate")


def artefacts(pairs: Sequence[tuple[str, str]], prompt_text: str) -> dict[str, int]:
    """How many lines hold an artefact that was not there before, by kind; empty where none does.

    Args:
        pairs: Each line before and after. Traditional characters are none where any line before has some.
        prompt_text: What the model had been told to do.
    """
    found: Counter[str] = Counter()
    for before, after in pairs:
        if written := kinds(after):
            found.update(written - kinds(before) - _excused(before))
        found["instructions"] += copies_instructions(before, after, prompt_text)
    for kind, pattern in _characters().items():
        if pattern.search("\n".join(after for _, after in pairs)):
            found[kind] = sum(
                bool(set(pattern.findall(after)) - set(pattern.findall(before))) for before, after in pairs
            )
    if found["traditional"] and any(_characters()["traditional"].search(before) for before, _ in pairs):
        del found["traditional"]
    return {kind: found[kind] for kind in KINDS if found[kind]}


def kinds(text: str) -> set[str]:
    """The kinds of artefacts in a text that its words tell: no instructions, and no single characters."""
    plain = text.replace("\u2019", "'")
    scripts = [script for script, pattern in _WRITTEN_IN.items() if pattern.search(plain)]
    return {
        kind
        for kind, patterns in _patterns().items()
        if kind in KINDS and any(script in patterns and patterns[script].search(plain) for script in scripts)
    }


def _excused(before: str) -> set[str]:
    """Who counts in a sentence may count in another way, and who names a doctor may name a professional."""
    return {
        kind for kind in _EXCUSED if any(pattern.search(before) for pattern in _patterns()[f"{kind}_before"].values())
    }


# --- the lexicon

_WRITTEN_IN = {"han": re.compile("[\u4e00-\u9fff]"), "latin": re.compile("[A-Za-z]{2}"), "any": re.compile("")}


@cache
def _patterns() -> dict[str, dict[str, re.Pattern[str]]]:
    """By kind and by the script of their own letters, for they match no text without it: most lines are of one."""
    found: dict[str, dict[str, list[str]]] = {}
    for kind, patterns in lexicon("artefacts", __file__).items():
        for one in patterns if isinstance(patterns, list) else ():
            found.setdefault(kind, {}).setdefault(script_of(one), []).append(f"(?:{one})")
    return {
        kind: {script: re.compile("|".join(of), re.IGNORECASE | re.MULTILINE) for script, of in by_script.items()}
        for kind, by_script in found.items()
    }


def script_of(pattern: str) -> str:
    """The script of the letters that a pattern is written with: han, latin or any."""
    return next(name for name, letters in _WRITTEN_IN.items() if letters.search(pattern))


@cache
def _characters() -> dict[str, re.Pattern[str]]:
    """Single characters by kind; of the two scripts those that Simplified Chinese never has."""
    listed = {**lexicon("artefacts", __file__)["characters"], "traditional": f"[{''.join(traditional_only())}]"}
    return {kind: re.compile(pattern) for kind, pattern in listed.items()}
