"""`rewrite_judge`: whether two wordings share their words and their facts, and whether labelled lines keep their cues.

No understanding: what says the contrary in the same words passes. It judges what the rules write, and is the floor that
a model has to beat.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.llm.language import Lang
from pipelines.rewrite.facts import changed
from pipelines.rewrite.rules.exchange import canonical
from pipelines.rewrite.rules.segments import words
from pipelines.text.finder import straight

_LEXICONS = Path(__file__).parent / "lexicons"

# Content words that are in both wordings, of those in either. Ours: of what the rules write .8 and more in nineteen
# cases of twenty; of fifty careful rewrites by hand .13 to .51, .31 in the middle; of two dialogues of CPsyCounD and
# SMILE, which all speak of feelings and of trying things, .08 in the middle and .16 at one in twenty: those the facts
# tell apart.
LEAST_SHARED = 0.12
# A line of so many content words that keeps none of them says something else; ours.
_LONG_LINE = 8
_WORD = {"zh": re.compile(r"[\u3400-\u9fff]{2,}|[A-Za-z]{2,}"), "en": re.compile(r"[a-z]{4,}")}
# An English word and its forms begin alike: so many letters are looked at.
_STEM = 5


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {same_meaning, strategies_lost, why} for {lang, lines}."""
    lang: Lang = inputs["lang"]
    lines: Sequence[Mapping[str, Any]] = inputs["lines"]
    said = [(_content(line["before"], lang), _content(line["after"], lang)) for line in lines]
    shared = _shared(said)
    facts = changed([(line["before"], line["after"], line["who"] == "seeker") for line in lines], lang)
    strayed = sum(len(before) >= _LONG_LINE and not before & after for before, after in said)
    same = shared >= LEAST_SHARED and not facts and not strayed
    lost = [line["n"] for line in lines if any(_is_lost(label, line, lang) for label in line["strategies"])]
    judged = {"same_meaning": same, "strategies_lost": lost, "why": _why(lang, shared, sum(facts.values()), strayed)}
    return json.dumps(judged, ensure_ascii=False)


def _shared(said: Sequence[tuple[frozenset[str], frozenset[str]]]) -> float:
    """Content words that stand in both texts, of those in either, 0–1; 1 where there were none."""
    before, after = (frozenset[str]().union(*(pair[n] for pair in said)) for n in (0, 1))
    return len(before & after) / len(before | after) if before else 1.0


def _content(text: str, lang: Lang) -> frozenset[str]:
    """The words that carry what is said; of a group of the exchange table one stands for all."""
    same = canonical(lang)
    if lang == "zh":
        found = (same.get(word, word) for word in words(text) if _WORD["zh"].fullmatch(word))
        return frozenset(word for word in found if word not in _empty(lang))
    spoken = (same.get(word, word) for word in _WORD["en"].findall(straight(text).lower()))
    return frozenset(word[:_STEM] for word in spoken if word not in _empty(lang))


def _is_lost(label: str, line: Mapping[str, Any], lang: Lang) -> bool:
    """Whether a cue of the strategy was there and is gone."""
    cue = _cues(lang).get(label)
    before, after = (straight(line[name]) for name in ("before", "after"))
    return cue is not None and cue.search(before) is not None and cue.search(after) is None


def _why(lang: Lang, shared: float, facts: int, strayed: int) -> str:
    if lang == "zh":
        told = f"改写前后共有的实词占{shared:.0%}"
        told += f"，有{facts}处事实对不上" if facts else "，事实都对得上"
        return told + (f"，有{strayed}行说的完全是别的话" if strayed else "")
    told = f"of the content words {shared:.0%} are shared"
    told += f", and {facts} facts differ" if facts else ", and the facts agree"
    return told + (f"; {strayed} lines say something else" if strayed else "")


@cache
def _lexicon(lang: Lang) -> dict[str, Any]:
    return tomllib.loads((_LEXICONS / f"judging.{lang}.toml").read_text(encoding="utf-8"))


@cache
def _cues(lang: Lang) -> dict[str, re.Pattern[str]]:
    return {label: re.compile(cue, re.IGNORECASE | re.MULTILINE) for label, cue in _lexicon(lang)["cues"].items()}


@cache
def _empty(lang: Lang) -> frozenset[str]:
    return frozenset(_lexicon(lang)["empty"]["words"].split())
