"""Rows of one split that tell again what is asked in another: SMILE's dialogues were written from PsyQA's questions.

A retelling is no near-duplicate: it is cut into turns, shortened, and half of it is in other words. What is left is
runs of a few characters that nobody else has. So a row is looked at as the set of what stands in five characters (of
English: words) in a row. A post and a dialogue that have nothing to do with each other hardly share any: of 78,000
pairs of a question of PsyQA and a dialogue of SMILE, CPsyCoun or ESConv none shared more than six. Two dialogues that
models wrote do, for they begin alike: where neither's set was made from the other's, one tells the other again if it
holds nearly all that the other asks, or if both were made from one set and tell a good part of one story at once; of
two posts, if one holds half of the other. All this rests on nothing that gave the splits (`pipelines.dedup.links`,
`ties`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from pipelines.core.overlap import windows
from pipelines.dedup.links import TELLING
from pipelines.dedup.ties import FORMULA
from pipelines.release.checks.released import EXAMPLES, Released
from pipelines.store.release_manifest import Finding
from pipelines.text.keys import key_of
from pipelines.text.script import as_simplified

# Ours. A fifth of an opening or of a whole, and no less than a sentence in all.
RETOLD = 0.2
LEAST = 12
# Of two posts, or two dialogues, of sets that have nothing to do with each other: so much of the shorter one's whole,
# and no less than two sentences. Dialogues that models wrote open alike: in five public sets up to 0.73 of what was
# drawn of them.
COPIED = {"post": 0.5, "dialogue": 0.8}
COPIED_LEAST = 24

_TOKEN = re.compile(r"[a-z0-9']+|[^\W_]")  # a word in Latin letters, or a character of any other script
_SIZE = 5

Shingles = frozenset[str]


@dataclass(frozen=True, slots=True)
class Teller:
    """What a post or a dialogue asks: how it begins, and all of it."""

    name: str
    split: str
    unit: str
    source: str
    lineage: tuple[str, ...]
    opening: Shingles
    asked: Shingles

    def may_tell_of(self, other: "Teller") -> bool:
        """Whether the two are rows of different splits."""
        return self.split != other.split and self.name != other.name

    def retells(self, other: "Teller") -> bool:
        """Whether a good part of what one of the two asks, or of how it begins, stands in the other."""
        both = (self.asked, other.asked)
        if self.unit == other.unit and self.source not in other.lineage and other.source not in self.lineage:
            shorter, longer = sorted(both, key=len)
            return _share(shorter, longer, COPIED[self.unit], COPIED_LEAST) or self._sibling_of(other)
        openings = ((self.opening, other.asked), (other.opening, self.asked))
        return any(_share(part, whole, RETOLD, LEAST) for part, whole in (*openings, both, both[::-1]))

    def _sibling_of(self, other: "Teller") -> bool:
        """Whether both may have been written from one row of the set that theirs were made from."""
        if self.unit != "dialogue" or set(self.lineage).isdisjoint(other.lineage):
            return False
        shorter, longer = sorted((self.opening, other.opening), key=len)
        return _share(shorter, longer, RETOLD, COPIED_LEAST)


def _share(part: Shingles, whole: Shingles, share: float, least: int) -> bool:
    common = len(part & whole)
    return common >= least and common >= share * len(part)


def retold(released: Released) -> Iterator[Finding]:
    """Pairs of rows of different splits of which one tells the other again."""
    tellers = list(_tellers(released))
    held_out = [one for one in tellers if one.split != "train"]
    index = _index(held_out)
    found = set()
    for one in tellers:
        met = Counter(place for shingle in one.asked for place in index.get(shingle, ()))
        for place, common in met.items():
            if common >= LEAST and one.may_tell_of(held_out[place]) and one.retells(held_out[place]):
                found.add(tuple(sorted(f"{each.name} ({each.split})" for each in (one, held_out[place]))))
    if found:
        yield Finding(
            check="retold",
            severity="refuse",
            count=len(found),
            what=f"{len(found):,} pairs of rows in different splits tell the same story{_of_lineage(released)}",
            hint="leave the set out that was made from the other, or have one row of each pair erased "
            "(gongqing erase ROW_ID)",
            examples=[" ~ ".join(pair) for pair in sorted(found)[:EXAMPLES]],
        )


def shingles(text: str) -> Shingles:
    """What stands in five characters, or words in Latin letters, in a row; punctuation and case do not count."""
    return frozenset(map(" ".join, windows(tuple(_TOKEN.findall(key_of(text, "form"))), _SIZE)))


def _tellers(released: Released) -> Iterator[Teller]:
    """What is asked in each split, a post or dialogue each: the same one stands in several sets."""
    origins = released.rows.drop_nulls("origin").select("config", "row_id", "origin")
    texts = released.texts.filter(pl.col("part").is_in(["seeker", "judged"]))
    told = texts.with_columns(text=as_simplified(pl.col("text"))).join(origins, on=["config", "row_id"])
    told = told.sort("origin", "config", "row_id", "place")
    telling = (pl.col("part") == "seeker") & (pl.col("text").str.len_chars() >= TELLING)
    openings = told.filter(telling).unique(["config", "row_id"], keep="first", maintain_order=True)
    begun = _gathered(openings)
    about = {name: about for name, *about in released.sources.select("origin", "unit", "source", "lineage").iter_rows()}
    for (name, split), asked in _gathered(told).items():
        unit, source, lineage = about[name]
        yield Teller(name, split, unit, source, tuple(lineage), begun.get((name, split), frozenset()), asked)


def _gathered(texts: pl.DataFrame) -> dict[tuple[str, str], Shingles]:
    each = texts.group_by("origin", "split", maintain_order=True).agg(pl.col("text").unique(maintain_order=True))
    return {(name, split): frozenset().union(*map(shingles, told)) for name, split, told in each.iter_rows()}


def _index(tellers: Iterable[Teller]) -> dict[str, list[int]]:
    """The tellers of each shingle; those of more than FORMULA of them say nothing."""
    index: defaultdict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(tellers):
        for shingle in one.asked:
            index[shingle].append(place)
    return {shingle: places for shingle, places in index.items() if len(places) <= FORMULA}


def _of_lineage(released: Released) -> str:
    """Which released sets were made from which others, in words."""
    sets = released.sources.join(released.rows.select("origin").unique(), on="origin").select("source", "lineage")
    there = set(sets["source"])
    made = {(source, of) for source, lineage in sets.unique().iter_rows() for of in lineage if of in there}
    return f" ({', '.join(f'{source} was made from {of}' for source, of in sorted(made))})" if made else ""
