"""Facts that changed places within a line: 我儿子25，我40 and 我儿子40，我25 hold the same facts.

What goes with a fact is the rest of its clause. Two facts of a kind have changed places where what went with the one
now goes with the other, and the other way round. It is read off the wording: where a line was put in other words
altogether nothing is seen, which is left to the judge.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple

from pipelines.llm.language import Lang
from pipelines.rewrite.figures import figures
from pipelines.text.nearness import cosine, wording

# How much more, of 2, two facts share with what went with the other than with what went with themselves; and how much,
# of 1, each shares at least with that. Ours.
_LEAST_MORE, _LEAST_CROSS = 0.5, 0.3

_CLAUSE = re.compile(r"[^，。！？；：、,.!?;:\n]+(?:\.[0-9]+)?")
_NUMERAL = re.compile(r"[0-9零〇一二两三四五六七八九十百千万半]+")
# What turns who does it and whom it is done to, or who has more of it.
_TURNED = re.compile("[被让给叫]|不如|没有|\\b(?:by|than)\\b", re.IGNORECASE)
# How like each other two clauses are in which two facts stand the other way round; ours.
_LEAST_LIKE = 0.6

# Two that are named side by side, in whatever order: 爸爸和妈妈, mum and dad.
_SIDE_BY_SIDE = re.compile(r" ?(?:和|跟|与|及|以及|还有|或|或者|and|or) ?(?:my |his |her |our |their )?", re.IGNORECASE)

Names = Callable[[str], Iterable[tuple[int, int, str, str]]]  # of a text: start, end, kind and name of its facts


class Mark(NamedTuple):
    """A fact of a kind: a name, or a value in a unit."""

    kind: str
    name: str
    unit: str = ""


class _Clause(NamedTuple):
    """The facts of a clause, names in their order; what else it says, without the names or without the figures;
    whether two are named side by side, and whether it is in the passive or compares.
    """

    marks: tuple[Mark, ...]
    unnamed: frozenset[str]
    uncounted: frozenset[str]
    side_by_side: bool
    turned: bool

    def beside(self, mark: Mark) -> frozenset[str]:
        """What goes with one of its facts."""
        return self.uncounted if mark.kind == "number" else self.unnamed


def swapped(pairs: Sequence[tuple[str, str]], names: Names, lang: Lang) -> Counter[str]:
    """In how many lines facts changed places, by kind.

    Args:
        pairs: Each line before and after.
        names: The facts of a text but figures, with their places.
        lang: The language of all lines.
    """
    found: Counter[str] = Counter()
    for before, after in pairs:
        had = _clauses(before, names, lang)
        if len({mark for one in had for mark in one.marks}) > 1:
            has = _clauses(after, names, lang)
            found.update(_exchanged(_company(had), _company(has)) | _turned(had, has))
    return found


def _exchanged(had: Mapping[Mark, set[str]], has: Mapping[Mark, set[str]]) -> set[str]:
    """The kinds of which two facts keep each other's company."""
    kinds: set[str] = set()
    for one, other in combinations([mark for mark in had if mark in has], 2):
        if one.kind == other.kind:
            cross = cosine(had[one], has[other]), cosine(had[other], has[one])
            straight = cosine(had[one], has[one]) + cosine(had[other], has[other])
            if min(cross) >= _LEAST_CROSS and sum(cross) - straight >= _LEAST_MORE:
                kinds.add(one.kind)
    return kinds


def _turned(had: Sequence[_Clause], has: Sequence[_Clause]) -> set[str]:
    """The kinds of which two facts stand the other way round in a clause that is otherwise the same."""
    kinds: set[str] = set()
    heads = [(one, _in_order(one)) for one in had if not one.side_by_side]
    tails = [(one, {(last, first) for first, last in _in_order(one)}) for one in has if not one.side_by_side]
    for (before, stood), (after, stands) in product(heads, tails):
        if before.turned == after.turned and (exchanged := stood & stands):
            for mark in {one.kind: one for one, _ in exchanged if one.kind not in kinds}.values():
                if cosine(before.beside(mark), after.beside(mark)) >= _LEAST_LIKE:
                    kinds.add(mark.kind)
    return kinds


def _in_order(clause: _Clause) -> set[tuple[Mark, Mark]]:
    """The pairs of facts of a kind in a clause, whichever stands first first."""
    return {(one, other) for one, other in combinations(clause.marks, 2) if one.kind == other.kind}


def _company(clauses: Iterable[_Clause]) -> dict[Mark, set[str]]:
    """What goes with each fact: what is said in the clauses that hold no other of its kind."""
    company: dict[Mark, set[str]] = defaultdict(set)
    for clause in clauses:
        kinds = Counter((mark.kind, mark.unit) for mark in clause.marks)
        for mark in clause.marks:
            if kinds[mark.kind, mark.unit] == 1:
                company[mark] |= clause.beside(mark)
    return company


def _clauses(text: str, names: Names, lang: Lang) -> list[_Clause]:
    found: list[_Clause] = []
    for clause in _CLAUSE.findall(text):
        named = list(names(clause))
        marks = [Mark(kind, name) for _, _, kind, name in named]
        marks += [Mark("number", figure.value, figure.unit) for figure in figures(clause, lang)]
        if marks:
            rest = clause
            for start, end, _, _ in reversed(named):
                rest = f"{rest[:start]} {rest[end:]}"
            between = [clause[end:start] for (_, end, *_), (start, *_) in pairwise(named)]
            found.append(
                _Clause(
                    tuple(dict.fromkeys(marks)),
                    frozenset(wording(rest)),
                    frozenset(wording(_NUMERAL.sub(" ", clause))),
                    side_by_side=any(map(_SIDE_BY_SIDE.fullmatch, between)),
                    turned=_TURNED.search(clause) is not None,
                )
            )
    return found
