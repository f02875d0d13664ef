"""`disc`: the profile of a speaker by cues of manner (`lexicons/disc.*.toml`): how they talk, not what they tell of.

A score is the weight of a trait's cues in a clause, r, held against what is usual for the language and the role, u:
r/(r + u), .5 where it is as usual, towards 1 where the talk is full of them. Honest and coarse: a baseline that
anybody can check against the clauses that it quotes.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.annotate.rules.clauses import clauses
from pipelines.annotate.rules.wording import pick
from pipelines.text.finder import Finder, any_of, straight
from schemas.labels import TRAITS
from schemas.reasoning import Lang

_HERE = Path(__file__).parent / "lexicons"

_WEIGHTS = {"strong": 2, "plain": 1}
# A clause counts so much at the most: ten exclamation marks are one outcry. So many clauses as are usual
# stand beside what was said, so that one clause of two makes nobody extreme. Ours, as all figures here.
_MOST_A_CLAUSE = 3
_PRIOR = 3
# So far from .5 a trait is told of in the description, and of so many at the most.
_LEADS = 0.05
_MOST_TOLD = 3
# Of the leading trait so many clauses are quoted, of each other one that is as usual or more, one. In characters: a
# quote of fewer tells nothing, of more too much.
_QUOTES = 2
_QUOTED: dict[Lang, range] = {"zh": range(4, 41), "en": range(8, 121)}

_STOP: dict[Lang, str] = {"zh": "。", "en": "."}
_GAP: dict[Lang, str] = {"zh": "", "en": " "}


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of the speaker as it stands, and the weight of each trait's cues in it."""

    text: str
    cues: Mapping[str, int]


def reply(inputs: Mapping[str, Any]) -> str:
    """JSON {D, I, S, C, evidence, description} for {lang, role, turns}."""
    lang: Lang = inputs["lang"]
    said = [turn["text"] for turn in inputs["turns"] if turn["role"] == inputs["role"]]
    parts = [part for text in said for part in _clauses(text, lang)]
    scores = _scores(parts, inputs["role"], lang)
    profile = scores | {
        "evidence": _evidence(parts, scores, said, lang),
        "description": describe(scores, inputs["role"], lang, "\n".join(said)),
    }
    return json.dumps(profile, ensure_ascii=False)


def _scores(parts: list[_Clause], role: str, lang: Lang) -> dict[str, float]:
    usual = _lexicon(lang)["usual"][role]
    scores = {}
    for trait in TRAITS:
        weight = sum(min(_MOST_A_CLAUSE, part.cues[trait]) for part in parts)
        rate = (weight + _PRIOR * usual[trait]) / (len(parts) + _PRIOR)
        scores[trait] = round(rate / (rate + usual[trait]), 3)
    return scores


# --- cues


def _clauses(text: str, lang: Lang) -> Iterator[_Clause]:
    """The clauses of a turn. What stands behind one, such as an exclamation mark, counts to it."""
    plain = straight(text) if lang == "en" else text
    parts = clauses(plain, titled=False)
    cues = list(_cues(plain, lang))
    for place, part in enumerate(parts):
        end = parts[place + 1].start if place + 1 < len(parts) else len(plain)
        start = part.start if place else 0
        weights = {
            trait: sum(weight for at, one, weight in cues if one == trait and start <= at < end) for trait in TRAITS
        }
        yield _Clause(text[part.start : part.end], weights)


def _cues(text: str, lang: Lang) -> Iterator[tuple[int, str, int]]:
    """Every cue in a text: where it ends, its trait, its weight."""
    for hit in _finder(lang).hits(text):
        trait, _, level = hit.name.partition(" ")
        if trait in TRAITS:
            yield hit.end - 1, trait, _WEIGHTS[level]
    for trait, level, pattern in _patterns(lang):
        for found in pattern.finditer(text):
            yield max(found.start(), found.end() - 1), trait, _WEIGHTS[level]


@cache
def _lexicon(lang: Lang) -> dict[str, Any]:
    return tomllib.loads((_HERE / f"disc.{lang}.toml").read_text(encoding="utf-8"))


@cache
def _finder(lang: Lang) -> Finder:
    tables = _lexicon(lang)
    lists = [(f"{trait} {level}", tables[trait][level]) for level in _WEIGHTS for trait in TRAITS]
    return Finder([("none", tables["none"]["words"]), *lists], lang)


@cache
def _patterns(lang: Lang) -> list[tuple[str, str, re.Pattern[str]]]:
    tables = _lexicon(lang)
    return [
        (trait, level, any_of([pattern], lang))
        for trait in TRAITS
        for level, patterns in tables[trait]["patterns"].items()
        for pattern in patterns
    ]


# --- what is said of them


def _evidence(parts: list[_Clause], scores: Mapping[str, float], said: list[str], lang: Lang) -> list[str]:
    """The clauses that hold the strongest cues, those of the leading trait first; a clause or turn where none does."""
    quotable = [part for part in parts if len(part.text) in _QUOTED[lang] and _words(part.text)]
    found: dict[str, None] = {}
    for trait in sorted(TRAITS, key=lambda trait: -scores[trait]):
        if found and scores[trait] < 0.5:
            break
        best = sorted(quotable, key=lambda part: (-part.cues[trait], len(part.text)))
        found.update({part.text: None for part in best[: 1 if found else _QUOTES] if part.cues[trait]})
    if found:
        return list(found)
    told = [*(part.text for part in parts), *said]
    longest = max(told, key=lambda text: (_words(text), len(text) in _QUOTED[lang], len(text)), default="")
    return [longest[: _QUOTED[lang].stop - 1].strip()]


def _words(text: str) -> bool:
    """Whether a quote says anything: control characters and dots do not (`profiles.parse` wants two letters)."""
    return sum(map(str.isalnum, text)) >= 2


def describe(scores: Mapping[str, float], role: str, lang: Lang, said: str) -> str:
    """Two or three sentences: of the traits that are furthest from usual, or that the rest, or all, is as usual."""
    who, says = _lexicon(lang)["who"], _lexicon(lang)["says"]
    order = sorted(TRAITS, key=lambda trait: -abs(scores[trait] - 0.5))
    leading = [trait for trait in order if abs(scores[trait] - 0.5) >= _LEADS][:_MOST_TOLD]
    told = [pick(says["high" if scores[trait] > 0.5 else "low"][trait], trait, said) for trait in leading]
    if len(told) < 2:
        told += says["rest"] if told else says["even"]
    subjects = [who[role]] + [who["again"]] * len(told)
    return _GAP[lang].join(f"{subject}{one}{_STOP[lang]}" for subject, one in zip(subjects, told, strict=False))
