"""What the form of an output is worth: M's graded reward (eq. 4–8), E's strict one (eq. 4), C's ±1.

All three read tags as `schemas.reasoning` does: a tag is exact, so ``<Answer>`` and ``<answer a=1>`` are ordinary text.
The cost is linear in the length of the text, whatever stands in it.
"""

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from pydantic import ValidationError

from schemas.reasoning import COE, ECOT, ECOT_TAGS, Cer, FormatError, Grammar, each_tag

_ANSWER = Grammar(("answer", ()))

# M eq. 8. The key sequence is ours to read (papers.md §6): its three consecutive pairs are "the three".
_KEYS = ("thinking", "situation", "motivation", "answer")
_OF_PAIRS = {1: 0.4, 2: 0.7, 3: 1.0}
_NONE_IN_ORDER = 0.1  # all tags are there


class EcotFormat(NamedTuple):
    """M's format reward, `r_format`, the mean of its three parts; all are in [0, 1].

    Beside it, and no part of it, stand what M's reward does not ask for: `ordered`, that all five elements begin in
    order, and `strict`, that the output is well formed, with text in every section and nowhere else.
    """

    r_exist: float
    r_num: float
    r_order: float
    r_format: float
    ordered: bool
    strict: bool


class _Element(NamedTuple):
    """What of one name stands in a text: where it first opens, and how often it opens and closes."""

    first: int
    opened: int
    closed: int


def ecot(text: str) -> EcotFormat:
    """M eq. 4–8 over T = {thinking, situation, motivation, strategy, answer}.

    An element exists where an opening tag is followed by its closing tag, and occurs once where each of both stands
    once. A pair of elements is in order where both exist and the first one opens first; of a doubled one the first
    opening counts.
    """
    there = _elements(text)
    r_exist = len(there) / len(ECOT_TAGS)
    r_num = sum(element.opened == element.closed == 1 for element in there.values()) / len(ECOT_TAGS)
    r_order = _order(there)
    return EcotFormat(
        r_exist,
        r_num,
        r_order,
        (r_exist + r_num + r_order) / 3,
        ordered=len(there) == len(ECOT_TAGS)
        and all(_in_order(there, one, other) for one, other in pairwise(ECOT_TAGS)),
        strict=_well_formed(ECOT, text),
    )


def coe(text: str) -> float:
    """E eq. 4: 1 for one ``<empathy_think>`` that holds L1 … L4 in order and closed, then one ``<answer>``; else 0."""
    return float(_well_formed(COE, text))


def answer_alone(text: str) -> float:
    """E's form in the ablation without a chain: 1 for one ``<answer>`` with text, and nothing else; else 0."""
    return float(_well_formed(_ANSWER, text))


def cer(text: str) -> float:
    """C's format term: +1 for three steps with their fields and a response, −1 for anything else."""
    try:
        Cer.parse(text)
    except (FormatError, ValidationError):
        return -1.0
    return 1.0


def _elements(text: str) -> dict[str, _Element]:
    """The elements by name: those of which an opening tag is followed by a closing one."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    opened: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    for tag in each_tag(text, ECOT_TAGS):
        if tag.closing:
            last[tag.name] = tag.start
            closed[tag.name] += 1
        else:
            first.setdefault(tag.name, tag.start)
            opened[tag.name] += 1
    return {
        name: _Element(first[name], opened[name], closed[name])
        for name in ECOT_TAGS
        if name in first and first[name] < last.get(name, -1)
    }


def _order(there: dict[str, _Element]) -> float:
    pairs = sum(_in_order(there, one, other) for one, other in pairwise(_KEYS))
    return _OF_PAIRS.get(pairs, _NONE_IN_ORDER if len(there) == len(ECOT_TAGS) else 0.0)


def _in_order(there: dict[str, _Element], one: str, other: str) -> bool:
    return one in there and other in there and there[one].first < there[other].first


def _well_formed(grammar: Grammar, text: str) -> bool:
    try:
        grammar.read(text)
    except FormatError:
        return False
    return True
