"""Leaks between splits: near-duplicates, retold texts, and rows in another split than what they are made from.

A retelling is cut into turns, shortened and half in other words, so each row is the set of its shingles of five
characters (of English: words): of 78,000 unrelated pairs of a question of PsyQA and a dialogue none shared more than
six. Two dialogues by models share more, for they begin alike: where neither's set was made from the other's, one is a
retelling if it holds nearly all of the other, or if both were made from one set and share a good part of their
openings; of two posts, if one holds half of the other. None of this rests on what gave the splits.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.core.overlap import windows
from pipelines.dedup.duplicates import find_duplicates
from pipelines.dedup.group_keys import FORMULA, LONG, SIMILAR, TELLING, passages
from pipelines.dedup.jaccard import similarities
from pipelines.release.checks.released import Leak, Released, finding, origin
from pipelines.release.checks.texts import answers_alone, folded
from pipelines.store.release_manifest import Finding
from pipelines.text import keys
from pipelines.text.keys import key_of
from pipelines.text.script import as_simplified
from schemas.labels import SPLITS

LEAKS = ("near_duplicates", "text_reuse")  # what a release can mend by leaving rows out


def near_duplicates(released: Released) -> Iterator[Finding]:
    """Pairs of texts of different splits whose shingles are at least as alike as those of one cluster.

    Compared are the openings of seekers, and all texts too long for a formula; labels and generic sentences are not,
    nor are texts of very many rows (`shared_passages` counts them). Punctuation, pictures and script do not count.
    """
    compared = _compared(released.texts).filter(pl.col("row_id").n_unique().over("text") <= FORMULA)
    distinct = compared.select("text").unique().sort("text")
    clusters = find_duplicates(distinct["text"], SIMILAR, mode="fast")
    clustered = compared.join(distinct.with_columns(clusters.select("row", "cluster_id")), on="text")
    torn = clustered.filter(pl.col("split").n_unique().over("cluster_id") > 1)
    pairs = [pair for cluster in torn.partition_by("cluster_id") for pair in _pairs(cluster)]
    if pairs:
        origin_of = dict(released.rows.drop_nulls("origin").select("row_id", "origin").iter_rows())
        what = f"{len(pairs):,} pairs of (nearly) equal texts stand in different splits"
        yield _leak("near_duplicates", what, pairs, origin_of)


def shared_passages(released: Released) -> Iterator[Finding]:
    """How many held-out rows have a passage in common with a row that trains: what makes no two rows one story, for
    many have it, or the groups of all who have it would be one.
    """
    compared = _compared(released.texts)
    distinct = compared.select("text").unique().sort("text")
    marks = passages(distinct["text"]).unique()
    marked = marks.select("passage", text=distinct["text"].gather(marks["row"])).join(compared, on="text")
    learnt = marked.filter(split="train")["passage"].unique().implode()
    rows = marked.filter(pl.col("split") != "train", pl.col("passage").is_in(learnt))["row_id"].unique()
    if len(rows):
        of = compared.filter(pl.col("split") != "train")["row_id"].n_unique()
        what = f"{len(rows):,} of {of:,} held-out rows share a line with a row that trains"
        hint = "nothing is left out for it: a quotation, a form or a pasted reply is no story (docs/training-sets.md)"
        yield finding("shared_passages", what, hint, rows, severity="warn")


def _compared(texts: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `split`, `text` (folded) of what is compared."""
    spoken = texts.filter(~pl.col("part").is_in(["label", "generic"])).with_columns(text=answers_alone(pl.col("text")))
    length = keys.key(pl.col("text")).str.len_chars()
    telling = spoken.with_columns(length=length, text=folded(pl.col("text"))).filter(pl.col("length") >= TELLING)
    seeker = telling.filter(pl.col("part") == "seeker").sort("place")
    openings = seeker.unique(["config", "row_id"], keep="first", maintain_order=True)
    return pl.concat([openings, telling.filter(pl.col("length") >= LONG)]).select("row_id", "split", "text").unique()


# An id and its split, of each of two.
Pair = tuple[tuple[str, str], tuple[str, str]]


def _leak(check: str, what: str, pairs: Collection[Pair], origin_of: Mapping[str, str]) -> Leak:
    """The finding of pairs in two splits. Of each the side goes that is learnt from, or tuned on: a test set stays."""
    goes = {min(pair, key=lambda side: SPLITS.index(side[1]))[0] for pair in pairs}
    named = [" ~ ".join(f"{name} ({split})" for name, split in sorted(pair)) for pair in pairs]
    hint = (
        "gongqing refresh puts such rows into one group, but an older version that was promoted may tear them; without "
        "--strict the release leaves out the side that trains"
    )
    origins = sorted({origin_of.get(name, name) for name in goes})
    return Leak(**finding(check, what, hint, named, severity="leave_out").model_dump(), origins=origins)


def _pairs(cluster: pl.DataFrame) -> Iterator[Pair]:
    """The pairs of a cluster that are alike themselves, and not through others, and of different splits."""
    texts = cluster.select("text").unique().sort("text")["text"]
    places = {one: place for place, one in enumerate(texts)}
    rows = sorted({(row, split, places[one]) for row, split, one in cluster.select("row_id", "split", "text").rows()})
    data, offsets = buffers(texts)
    for at, (row, split, place) in enumerate(rows):
        others = [other for other in rows[at + 1 :] if other[1] != split]
        right = np.array([other[2] for other in others], np.uint32)
        alike = similarities(data, offsets, np.full(len(others), place, np.uint32), right) >= SIMILAR
        for (other, its_split, _), near in zip(others, alike, strict=True):
            if near:
                yield (row, split), (other, its_split)


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
    pairs: set[Pair] = set()
    for one in documents:
        shared = Counter(place for shingle in one.whole for place in index.get(shingle, ()))
        for place, count in shared.items():
            other = held_out[place]
            if count >= LEAST and one.split != other.split and one.name != other.name and one.reuses(other):
                first, second = sorted(((one.name, one.split), (other.name, other.split)))
                pairs.add((first, second))
    if pairs:
        what = f"{len(pairs):,} pairs of rows in different splits tell the same story{_made_from(released)}"
        yield _leak("text_reuse", what, pairs, {})


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


# Tables that are made of training rows alone, each with the column that leads to what a row was made from.
MADE_OF_TRAINING_ROWS = {
    "ecot_chains": "post_id",
    "coe_chains": "post_id",
    "disc_profiles": "dialogue_id",
    "personas": "persona_id",
    "rewrite_drafts": "dialogue_id",
    "rewrite_judgements": "row_id",
    "rewritten_dialogues": "source_dialogue_id",
    "rewritten_rounds": "source_dialogue_id",
    "sampled_rewrites": "source_dialogue_id",
}

_REFRESH = "an older version was promoted, or a table was edited: gongqing refresh, without --select"


def descendants(released: Released) -> Iterator[Finding]:
    """Rows without an origin in the tables, rows of another split than their group, rows that hold an answer of another
    split, and what was made from held-out rows for training: candidates of held-out rounds are there to be judged, and
    stand in no training row.
    """
    split_of = released.table("splits").select("group_id", of_group="split")
    rows = released.rows.join(split_of, on="group_id", how="left")
    no_group = rows.filter(pl.col("of_group").is_null())
    yield from _refused(no_group["row_id"], "rows come from no post or dialogue that has a group and a split")
    moved = rows.filter(pl.col("split") != pl.col("of_group"))
    yield from _refused(moved["row_id"], "rows have another split than the group that they come from")
    answers = _drawn(released).join(_answers(released, split_of), on="answer_id", how="left")
    foreign = answers.filter(~pl.col("splits").list.contains(pl.col("split")).fill_null(value=False))
    yield from _refused(foreign["row_id"].unique(), "rows hold an answer to a question of another split, or to none")
    known = set(released.sources["origin"])
    held_out = set(released.sources.join(split_of, on="group_id").filter(pl.col("of_group") != "train")["origin"])
    for table, column in MADE_OF_TRAINING_ROWS.items():
        ids = [row_id for row_id in released.table(table)[column] if origin(row_id, known) in held_out]
        yield from _refused(ids, f"rows of {table} were made from held-out rows")
    for config, rows in released.configs.items():
        if "made_from" in rows.columns:
            learnt = rows.filter(split="train").select("row_id", "made_from").iter_rows()
            ids = [row_id for row_id, made_from in learnt if origin(made_from, known) in held_out]
            yield from _refused(ids, f"training rows of {config} were made from held-out rows")


def _drawn(released: Released) -> pl.DataFrame:
    """`row_id`, `split`, `answer_id` of every answer to a post that a row holds: reference, positive or negative."""
    reference = pl.concat_list(pl.col("extra_info").struct.field("reference_id"))
    triplet = pl.concat_list("positive_id", "negative_ids")
    drawn = [
        released.configs[config].select("row_id", "split", answer_id=ids).explode("answer_id")
        for config, ids in (("grpo_ecot", reference), ("grpo_coe", reference), ("rm_triplets", triplet))
        if config in released.configs
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(("row_id", "split", "answer_id"), pl.String))
    return pl.concat([empty, *drawn]).drop_nulls("answer_id")


def _answers(released: Released, split_of: pl.DataFrame) -> pl.DataFrame:
    """`answer_id` and the `splits` that it stands in. An answer that was moved is named after the post that it left."""
    ids = pl.col("answers").list.eval(pl.element().struct.field("answer_id"))
    answers = released.table("unique_posts").select("group_id", answer_id=ids).explode("answer_id")
    return answers.join(split_of, on="group_id").group_by("answer_id").agg(splits=pl.col("of_group").unique())


def groups(released: Released) -> Iterator[Finding]:
    """Groups in two splits: by their rows, or by a group key that they share."""
    torn = _torn(released.rows.drop_nulls("group_id"), "group_id")
    keys = released.table("splits").select("split", key="members", group_id="group_id").explode("key")
    shared = keys.filter(pl.col("key").is_in(_torn(keys.drop_nulls("key"), "key").implode()))
    ids = pl.concat([torn, shared["group_id"]]).unique()
    if ids.len():
        yield finding("groups", f"{ids.len():,} groups stand in two splits", _REFRESH, ids)


def _torn(rows: pl.DataFrame, by: str) -> pl.Series:
    """The values of a column that are in more than one split."""
    return rows.group_by(by).agg(pl.col("split").n_unique()).filter(pl.col("split") > 1).get_column(by)


def _refused(ids: Collection[str] | pl.Series, what: str) -> Iterator[Finding]:
    if len(ids):
        yield finding("descendants", f"{len(ids):,} {what}", _REFRESH, ids)
