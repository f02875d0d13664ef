"""What the form of an output is worth: M's graded reward (eq. 4–8), E's strict one (eq. 4), C's ±1 for completeness;
and the text of one section of it, which alone a judge or an encoder sees.

All read tags as `schemas.reasoning` does: a tag is exact, so ``<Answer>`` and ``<answer a=1>`` are ordinary text.
The cost is linear in the length of the text, whatever stands in it.
"""

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from pydantic import ValidationError

from schemas.reasoning import CER, CER_TAGS, COE, ECOT, ECOT_TAGS, Cer, FormatError, Grammar, Tag, blank, each_tag

_ANSWER = Grammar(("answer", ()))

# M eq. 8. The key sequence is ours to read (papers.md §6): its three consecutive pairs are "the three".
_KEYS = ("thinking", "situation", "motivation", "answer")
_OF_PAIRS = {1: 0.4, 2: 0.7, 3: 1.0}
_NONE_IN_ORDER = 0.1  # all tags are there


class EcotFormat(NamedTuple):
    """M's format reward, `r_format`, the mean of its three parts; all are in [0, 1].

    No part of it are `ordered`, that all five elements begin in order, and `strict`, that the output is well formed,
    with text in every section and nowhere else.
    """

    r_exist: float
    r_num: float
    r_order: float
    r_format: float
    ordered: bool
    strict: bool


def ecot(text: str) -> EcotFormat:
    """M eq. 4–8 over T = {thinking, situation, motivation, strategy, answer}.

    An element exists where an opening tag is followed by its closing tag, and occurs once where each of both stands
    once. A pair of elements is in order where both exist and the first one opens first; of a doubled one the first
    opening counts.
    """
    first: dict[str, int] = {}
    last_closed: dict[str, int] = {}
    opened: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    for tag in each_tag(text, ECOT_TAGS):
        if tag.closing:
            last_closed[tag.name] = tag.start
            closed[tag.name] += 1
        else:
            first.setdefault(tag.name, tag.start)
            opened[tag.name] += 1
    there = {name: first[name] for name in ECOT_TAGS if name in first and first[name] < last_closed.get(name, -1)}
    complete = len(there) == len(ECOT_TAGS)

    def in_order(one: str, other: str) -> bool:
        return one in there and other in there and there[one] < there[other]

    r_exist = len(there) / len(ECOT_TAGS)
    r_num = sum(opened[name] == closed[name] == 1 for name in there) / len(ECOT_TAGS)
    pairs = sum(in_order(one, other) for one, other in pairwise(_KEYS))
    r_order = _OF_PAIRS.get(pairs, _NONE_IN_ORDER if complete else 0.0)
    return EcotFormat(
        r_exist,
        r_num,
        r_order,
        (r_exist + r_num + r_order) / 3,
        ordered=complete and all(in_order(one, other) for one, other in pairwise(ECOT_TAGS)),
        strict=_well_formed(ECOT, text),
    )


def coe(text: str) -> float:
    """E eq. 4: 1 for one ``<empathy_think>`` that holds L1 … L4 in order and closed, then one ``<answer>``; else 0."""
    return float(_well_formed(COE, text))


def answer_alone(text: str) -> float:
    """E's form in the ablation without a chain: 1 for one ``<answer>`` with text, and nothing else; else 0."""
    return float(_well_formed(_ANSWER, text))


def cer(text: str) -> float:
    """C's format term, "format completeness": +1 where all three steps and the response are included, −1 where any is
    missing.

    One is included where its opening tag is followed by its closing tag, with text to see and no other tag between
    them. Order, number and labels are the judge's business, and `cer_strict`'s.
    """
    opened: Tag | None = None
    included: set[str] = set()
    for tag in each_tag(text, CER_TAGS):
        if opened is not None and tag.closing and tag.name == opened.name and not blank(text[opened.end : tag.start]):
            included.add(tag.name)
        opened = None if tag.closing else tag
    return 1.0 if CER.sections <= included else -1.0


def cer_strict(text: str) -> bool:
    """Whether C's format is held to our grammar (papers.md §2): every element once and in order, nothing outside of
    them, each step with its fields out of the closed sets and free text.
    """
    try:
        Cer.parse(text)
    except (FormatError, ValidationError):
        return False
    return True


def section(text: str, name: str, names: tuple[str, ...]) -> str | None:
    """The stripped text of the only element `name`; None where there is none, a second, a tag in it, or no text to see.
    `names` are those of the format's elements.

    The output need not be well formed. With a second element of the name, or a tag of the format inside it, there is
    no telling what the seeker would see.
    """
    opening: Tag | None = None
    closing: Tag | None = None
    for tag in each_tag(text, names):
        if opening is not None and closing is None:
            if tag.name != name or not tag.closing:
                return None
            closing = tag
        elif tag.name == name:
            if closing is not None or tag.closing:
                return None
            opening = tag
    if opening is None or closing is None:
        return None
    inside = text[opening.end : closing.start].strip()
    return None if blank(inside) else inside


def _well_formed(grammar: Grammar, text: str) -> bool:
    try:
        grammar.read(text)
    except FormatError:
        return False
    return True
