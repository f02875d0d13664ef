"""Text reuse across splits: rows that retell rows of another split, as SMILE's dialogues retell PsyQA's questions.

A retelling is no near-duplicate: it is cut into turns, shortened, and half of it is in other words. What is left are a
few characters in a row that no other text has. So each row is the set of its shingles of five characters (of English:
words). A post and a dialogue that have nothing to do with each other hardly share any: of 78,000 pairs of a question of
PsyQA and a dialogue of SMILE, CPsyCoun or ESConv none shared more than six. Two dialogues by models do, for they begin
alike: where neither's set was made from the other's, one counts as a retelling if it holds nearly all of the other, or
if both were made from one set and share a good part of their openings; of two posts, if one holds half of the other.
None of this rests on what gave the splits (`pipelines.dedup.group_keys`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import polars as pl

from pipelines.core.overlap import windows
from pipelines.dedup.group_keys import FORMULA, TELLING
from pipelines.release.checks.released import Released, finding
from pipelines.store.release_manifest import Finding
from pipelines.text.keys import key_of
from pipelines.text.script import as_simplified

# Ours. A fifth of an opening or of a whole, and no less than a sentence in all.
REUSED = 0.2
LEAST = 12
# Of two posts, or two dialogues, of unrelated sets: so much of the shorter one, and no less than two sentences.
# Dialogues by models open alike: in five public sets up to 0.73 of the samples.
COPIED = {"post": 0.5, "dialogue": 0.8}
COPIED_LEAST = 24

_TOKEN = re.compile(r"[a-z0-9']+|[^\W_]")  # a word in Latin letters, or a character of any other script
_SIZE = 5

Shingles = frozenset[str]


@dataclass(frozen=True, slots=True)
class Document:
    """The seeker's part of a post or a dialogue: its opening, and all of it."""

    name: str
    split: str
    unit: str
    source: str
    lineage: tuple[str, ...]
    opening: Shingles
    whole: Shingles

    def reuses(self, other: "Document") -> bool:
        """Whether a good part of one of the two, or of its opening, is in the other."""
        both = (self.whole, other.whole)
        if self.unit == other.unit and self.source not in other.lineage and other.source not in self.lineage:
            shorter, longer = sorted(both, key=len)
            return _shares(shorter, longer, COPIED[self.unit], COPIED_LEAST) or self._is_sibling(other)
        openings = ((self.opening, other.whole), (other.opening, self.whole))
        return any(_shares(part, whole, REUSED, LEAST) for part, whole in (*openings, both, both[::-1]))

    def _is_sibling(self, other: "Document") -> bool:
        """Whether both may have been written from one row of the set that theirs were made from."""
        if self.unit != "dialogue" or set(self.lineage).isdisjoint(other.lineage):
            return False
        shorter, longer = sorted((self.opening, other.opening), key=len)
        return _shares(shorter, longer, REUSED, COPIED_LEAST)


def _shares(part: Shingles, whole: Shingles, share: float, least: int) -> bool:
    common = len(part & whole)
    return common >= least and common >= share * len(part)


def text_reuse(released: Released) -> Iterator[Finding]:
    """Pairs of rows of different splits of which one retells the other."""
    documents = list(_documents(released))
    held_out = [document for document in documents if document.split != "train"]
    index = _index(held_out)
    pairs = set()
    for one in documents:
        shared = Counter(place for shingle in one.whole for place in index.get(shingle, ()))
        for place, count in shared.items():
            other = held_out[place]
            if count >= LEAST and one.split != other.split and one.name != other.name and one.reuses(other):
                pairs.add(" ~ ".join(sorted(f"{each.name} ({each.split})" for each in (one, other))))
    if pairs:
        what = f"{len(pairs):,} pairs of rows in different splits tell the same story{_made_from(released)}"
        hint = (
            "leave the set out that was made from the other, or have one row of each pair erased "
            "(gongqing erase ROW_ID)"
        )
        yield finding("text_reuse", what, hint, pairs)


def shingles(text: str) -> Shingles:
    """The 5-grams of a text, of characters or of words in Latin letters; punctuation and case do not count."""
    return frozenset(map(" ".join, windows(tuple(_TOKEN.findall(key_of(text, "form"))), _SIZE)))


def _documents(released: Released) -> Iterator[Document]:
    """A document per post or dialogue and split: the same one may be in several sets."""
    origins = released.rows.drop_nulls("origin").select("config", "row_id", "origin")
    texts = released.texts.filter(pl.col("part").is_in(["seeker", "judged"]))
    texts = texts.with_columns(text=as_simplified(pl.col("text"))).join(origins, on=["config", "row_id"])
    texts = texts.sort("origin", "config", "row_id", "place")
    telling = (pl.col("part") == "seeker") & (pl.col("text").str.len_chars() >= TELLING)
    openings = _shingles_of(texts.filter(telling).unique(["config", "row_id"], keep="first", maintain_order=True))
    facts = {name: facts for name, *facts in released.sources.select("origin", "unit", "source", "lineage").iter_rows()}
    for (name, split), whole in _shingles_of(texts).items():
        unit, source, lineage = facts[name]
        yield Document(name, split, unit, source, tuple(lineage), openings.get((name, split), frozenset()), whole)


def _shingles_of(texts: pl.DataFrame) -> dict[tuple[str, str], Shingles]:
    each = texts.group_by("origin", "split", maintain_order=True).agg(pl.col("text").unique(maintain_order=True))
    return {(name, split): frozenset().union(*map(shingles, parts)) for name, split, parts in each.iter_rows()}


def _index(documents: Iterable[Document]) -> dict[str, list[int]]:
    """The documents of each shingle; a shingle of more than FORMULA of them says nothing."""
    index: defaultdict[str, list[int]] = defaultdict(list)
    for place, document in enumerate(documents):
        for shingle in document.whole:
            index[shingle].append(place)
    return {shingle: places for shingle, places in index.items() if len(places) <= FORMULA}


def _made_from(released: Released) -> str:
    """Which released sets were made from which others, in words."""
    sets = released.sources.join(released.rows.select("origin").unique(), on="origin").select("source", "lineage")
    there = set(sets["source"])
    made = {(source, of) for source, lineage in sets.unique().iter_rows() for of in lineage if of in there}
    return f" ({', '.join(f'{source} was made from {of}' for source, of in sorted(made))})" if made else ""
