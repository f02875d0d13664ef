"""Train, validation and test, given to groups and kept (DESIGN §2.8).

Rows that share a group key (`pipelines.dedup.group_keys`) form a group. It gets its split once and remembers the exact
keys of its rows. A new row joins the group whose key it has; one with keys of groups in two splits is dropped.

A weak key ties rows into a group of MOST at most: of sentences that many posts share, each with others, all posts of a
corpus would become one group.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.settings import Splits as Sizes
from pipelines.settings import SplitSizes
from schemas.ids import digest, unit_interval
from schemas.training import Splits

AUTHOR = "a:"  # so begins the key of an author; what follows is a pseudonym
WEAK = ("p:", "b:")  # so begin the keys of a shared passage, and of texts that differ in marks alone
MOST = 50  # rows that weak keys tie together; ours

KeysOf = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Grouped:
    """`groups`: row_id → group_id; `conflicts`: row_id → the groups that it would join; `splits`: the table."""

    groups: dict[str, str]
    conflicts: dict[str, str]
    splits: pl.DataFrame


@dataclass
class _Group:
    group_id: str
    split: str
    given_at: str
    keys: set[str] = field(default_factory=set)


def give_splits(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    known: pl.DataFrame,
    sizes: Sizes | None = None,
    *,
    soft: KeysOf | None = None,
    clusters: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    given_at: str = "",
) -> Grouped:
    """Groups the rows and gives every new group its split.

    Args:
        posts: `row_id`, `keys` (exact ones) of posts; `dialogues`: of dialogues.
        known: The table `splits` so far; its groups keep their split for ever.
        sizes: How much of the new groups goes to validation and test, for groups with posts, by their source, and for
            others.
        soft: The soft keys of rows; no row need have any.
        clusters: Rows of one cluster will be merged: the keys of all of them count, but a size counts them as one.
        sources: The source of each post; of a cluster that of the post that stays.
        seed: Which groups these are follows from it and from the group alone.
        given_at: What to write beside new groups.
    """
    exact = dict(pl.concat([frame.select("row_id", "keys") for frame in (posts, dialogues)]).iter_rows())
    all_keys = {row: [*keys, *(soft or {}).get(row, ())] for row, keys in exact.items()}
    table = {
        row["group_id"]: _Group(row["group_id"], row["split"], row["given_at"], set(row["members"]))
        for row in known.iter_rows(named=True)
    }
    groups, conflicting, unattached = _join(exact, all_keys, table)
    new = _new_groups(exact, all_keys, unattached)
    rows_of = dict(new)
    for row, group in groups.items():
        rows_of.setdefault(group, []).append(row)
    sections = _sections(sizes or Sizes())
    section_of = {row: _section((sources or {}).get(row, ""), sections) for row in posts["row_id"]}
    weights = {group: _weights(rows, section_of, clusters or {}) for group, rows in rows_of.items()}
    taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in weights.keys() - new.keys():
        taken[table[group].split].update(weights[group])
    split_of = _allot({group: weights[group] for group in new}, sections, taken, seed)
    table |= {group: _Group(group, split, given_at) for group, split in split_of.items()}
    for group, rows in new.items():
        groups |= dict.fromkeys(rows, group)
    for row, group in groups.items():
        table[group].keys.update(exact[row])
    splits = pl.DataFrame(
        [
            {"group_id": one.group_id, "split": one.split, "given_at": one.given_at, "members": sorted(one.keys)}
            for one in table.values()
        ],
        schema=Splits.polars_schema(),
    )
    return Grouped(groups, _conflicts(conflicting, all_keys, groups, table), splits.sort("group_id"))


def known_splits(keys: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `split` of the rows that have their split already: all their `keys` are of groups in one split."""
    split_of = known.select("split", key="members").explode("key").unique("key")
    splits = keys.select("row_id", key="keys").explode("key").join(split_of, on="key", how="left")
    one = (pl.col("split").null_count() == 0) & (pl.col("split").n_unique() == 1)
    return splits.group_by("row_id").agg(pl.col("split").first(), one=one).filter("one").drop("one").sort("row_id")


def _join(exact: KeysOf, all_keys: KeysOf, table: Mapping[str, _Group]) -> tuple[dict[str, str], list[str], list[str]]:
    """Lets rows join the known groups: (row → group, rows in conflict, rows that have no key of any group)."""
    owner = {key: group for group in sorted(table) for key in table[group].keys}
    groups: dict[str, str] = {}
    n_rows: Counter[str] = Counter()
    conflicting: list[str] = []
    waiting = dict.fromkeys(sorted(exact))

    def touched(row: str) -> set[str]:
        held = ((key, owner[key]) for key in all_keys[row] if key in owner)
        return {group for key, group in held if not key.startswith(WEAK) or n_rows[group] < MOST}

    def place(row: str, joined: set[str]) -> None:
        del waiting[row]
        by_exact = {owner[key] for key in exact[row] if key in owner}
        if len({table[group].split for group in joined}) > 1:
            conflicting.append(row)
            return
        groups[row] = min(by_exact or joined)
        n_rows[groups[row]] += 1
        for key in all_keys[row]:
            owner.setdefault(key, groups[row])

    # Rows that were there before come first, so that no new one takes their place. Then in rounds: a row that joins
    # brings its keys with it. A row in conflict ends the search there, and its keys go to nobody.
    for row in [row for row in waiting if all(key in owner for key in exact[row])]:
        place(row, touched(row))
    while near := [row for row in waiting if touched(row)]:
        for row in near:
            if joined := touched(row):  # else the group is full by now
                place(row, joined)
    return groups, conflicting, list(waiting)


def _conflicts(
    conflicting: Iterable[str], all_keys: KeysOf, groups: Mapping[str, str], table: Mapping[str, _Group]
) -> dict[str, str]:
    """Of each row in conflict the groups that it would join, with their splits."""
    holders: defaultdict[str, set[str]] = defaultdict(set)
    for group, one in table.items():
        for key in one.keys:
            holders[key].add(group)
    for row, group in groups.items():
        for key in all_keys[row]:
            holders[key].add(group)
    joined = {row: sorted({group for key in all_keys[row] for group in holders[key]}) for row in conflicting}
    return {row: " and ".join(f"{table[group].split} ({group})" for group in joined[row]) for row in joined}


def _new_groups(exact: KeysOf, all_keys: KeysOf, rows: Iterable[str]) -> dict[str, list[str]]:
    """Groups the rows that have no key of a known group, by the keys that they share. A group is named by the first of
    its exact keys, a text where there is one: pseudonyms are others in each home, and a split follows from the name.
    """
    rows = list(rows)
    parent = {row: row for row in rows}
    sizes = dict.fromkeys(rows, 1)
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        for key in all_keys[row]:
            holders[key].append(row)

    def root(row: str) -> str:
        while (above := parent[row]) != row:
            parent[row] = row = parent[above]
        return row

    # Weak keys last, those of few rows first: what few share says most.
    for key in sorted(holders, key=lambda key: (key.startswith(WEAK), len(holders[key]), key)):
        first, *others = dict.fromkeys(map(root, holders[key]))
        size = sum(sizes[one] for one in (first, *others))
        if not key.startswith(WEAK) or size <= MOST:
            parent |= dict.fromkeys(others, first)
            sizes[first] = size
    components: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        components[root(row)].append(row)
    groups = {}
    for component in components.values():
        first = min((key for row in component for key in exact[row]), key=lambda key: (key.startswith(AUTHOR), key))
        groups["g" + digest(first)] = sorted(component)
    return groups


_POSTS, _DIALOGUES = "posts", "dialogues"


def _sections(sizes: Sizes) -> dict[str, SplitSizes]:
    """The sizes by their section in the settings."""
    of_sources = {f"{_POSTS}.sources.{name}": of_source for name, of_source in sizes.posts.sources.items()}
    return {_POSTS: sizes.posts, _DIALOGUES: sizes.dialogues, **of_sources}


def _section(source: str, sections: Mapping[str, SplitSizes]) -> str:
    """The section for posts of a source."""
    named = f"{_POSTS}.sources.{source}"
    return named if named in sections else _POSTS


def _weights(rows: Iterable[str], section_of: Mapping[str, str], clusters: Mapping[str, str]) -> Counter[str]:
    """How many rows of a group count in which section: its posts, or its dialogues where it holds no post."""
    posts = {clusters.get(row, row): section_of[row] for row in rows if row in section_of}
    return Counter(posts.values()) or Counter({_DIALOGUES: len({clusters.get(row, row) for row in rows})})


def _allot(
    weights: Mapping[str, Counter[str]],
    sections: Mapping[str, SplitSizes],
    taken: Mapping[str, Counter[str]],
    seed: int,
) -> dict[str, str]:
    """A split for each new group; `weights` are its rows in each section, `taken` those of known groups by split.

    A group is drawn by the section that most of its rows are in, the first by name among equals, and takes room in
    every section that gives a number. By a share it is drawn alone, so that no other row can move it; but one of more
    than MOST rows and than the share of all rows is for training. A number is filled up in the order of the draws,
    counting the rows that are there already and never passing it.
    """
    split_of: dict[str, str] = {}
    every = sum((*weights.values(), *taken.values()), Counter[str]())
    section_of = {group: min(rows, key=lambda section: (-rows[section], section)) for group, rows in weights.items()}
    left = dict.fromkeys(sections, 1.0)
    for split in ("test", "validation"):
        wanted = {section: getattr(sizes, split) for section, sizes in sections.items()}
        room = {name: size - taken[split][name] for name, size in wanted.items() if not isinstance(size, float)}
        draws = {group: unit_interval(seed, split, group) for group in weights if group not in split_of}
        for group in sorted(draws, key=lambda group: (draws[group], group)):
            section = section_of[group]
            is_drawn = section in room or (
                draws[group] < wanted[section] / left[section]
                and weights[group][section] <= max(MOST, wanted[section] * every[section])
            )
            if is_drawn and all(weights[group][name] <= room[name] for name in weights[group].keys() & room.keys()):
                split_of[group] = split
                room = {name: size - weights[group][name] for name, size in room.items()}
        left = {name: left[name] - (0.0 if name in room else wanted[name]) for name in sections}
    return {group: split_of.get(group, "train") for group in weights}
