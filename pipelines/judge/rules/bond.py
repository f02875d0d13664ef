"""What ties a reply to what was told: the telling words that both use, and how much of it only repeats.

Words, no understanding: a reply that says the contrary in the seeker's words passes.
"""

import re
from functools import cache, lru_cache
from math import log10, sqrt

from pipelines.rewrite.rules.segments import frequency, words
from pipelines.text.nearness import wording
from schemas.reasoning import Lang

# A Chinese word that stands more often than this in jieba's corpus of 60 million ties nothing; ours.
_COMMON = 30_000
_WORD = re.compile(r"[\u3400-\u9fff]{2,}")
_SHORTEST_EN = 4  # letters
# An echo repeats so many characters, or English words, in a row; ours.
_RUN = {"zh": 5, "en": 4}


def bond(told: str, answer: str, lang: Lang) -> float:
    """The cosine of the telling words of two texts, 0–1, the rarer ones weighing more.

    Of 239 answers of PsyQA to posts without signs of danger 82 % have 0.04 or more with their own post, 8 % with
    another one.
    """
    one, other = _telling(told, lang), _telling(answer, lang)
    across = sum(weight * weight for word, weight in one.items() if word in other)
    return across / sqrt(_squares(one) * _squares(other)) if across else 0.0


def echo(told: str, answer: str, lang: Lang) -> float:
    """The share of an answer that stands in what was told, run for run, 0–1; 0 for an answer shorter than a run.

    Of words in English, unlike E's guard (`rewards.contrastive.echoed`): there five letters in a row are everybody's.
    """
    runs = _runs(answer, lang)
    there = set(_runs(told, lang))
    return sum(run in there for run in runs) / len(runs) if runs else 0.0


def repeats(answer: str, lang: Lang) -> float:
    """The share of an answer that it has said before itself, 0–1."""
    runs = _runs(answer, lang)
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


@lru_cache(maxsize=4096)
def _telling(text: str, lang: Lang) -> dict[str, float]:
    """The telling words of a text with their weights."""
    if lang == "en":
        return {word: 1.0 for word in wording(text) if len(word) >= _SHORTEST_EN}
    weights = {word: _rarity(word) for word in words(text) if _WORD.fullmatch(word)}
    return {word: weight for word, weight in weights.items() if weight > 0}


@cache
def _rarity(word: str) -> float:
    """Powers of ten by which a word is rarer than a common one."""
    return max(0.0, log10(_COMMON / (frequency(word) + 10)))


def _squares(weights: dict[str, float]) -> float:
    return sum(weight * weight for weight in weights.values())


def _runs(text: str, lang: Lang) -> list[tuple[str, ...]]:
    said = re.findall(r"[a-z']+", text.lower()) if lang == "en" else [one for one in text if one.isalnum()]
    n = _RUN[lang]
    return [tuple(said[at : at + n]) for at in range(len(said) - n + 1)]
