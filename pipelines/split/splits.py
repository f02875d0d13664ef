"""Train, validation and test, given to groups and kept (DESIGN §2.8).

Rows that share a group key (`pipelines.dedup.group_keys`) form a group. It gets its split once and remembers the exact
keys of its rows. A new row joins the group whose key it has; one with keys of groups in two splits is dropped.

A weak key ties rows into a group of MOST at most: of sentences that many posts share, each with others, all posts of a
corpus would become one group.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.core.kernels import Places, Slots, Words, kernel, part
from pipelines.settings import Splits as Sizes
from pipelines.settings import SplitSizes
from schemas.ids import digest, unit_interval

AUTHOR = "a:"  # so begins the key of an author; what follows is a pseudonym
WEAK = ("p:", "b:")  # so begin the keys of a shared passage, and of texts that differ in marks alone
MOST = 50  # rows that weak keys tie together; ours

SOFT = {"row_id": pl.String, "key": pl.String}

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Grouped:
    """`rows`: every `row_id` with its `group_id`, or with the `conflict` of the groups that it would join, the other
    null; `splits`: the table.
    """

    rows: pl.DataFrame
    splits: pl.DataFrame


def give_splits(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    known: pl.DataFrame,
    sizes: Sizes | None = None,
    *,
    soft: pl.DataFrame | None = None,
    clusters: pl.DataFrame | None = None,
    sources: pl.DataFrame | None = None,
    seed: int = 0,
    given_at: str = "",
) -> Grouped:
    """Groups the rows and gives every new group its split.

    Args:
        posts: `row_id`, `keys` (exact ones) of posts; `dialogues`: of dialogues.
        known: The table `splits` so far; its groups keep their split for ever.
        sizes: How much of the new groups goes to validation and test, for groups with posts, by their source, and for
            others.
        soft: `row_id`, `key`: the soft keys of rows; no row need have any.
        clusters: `row_id`, `cluster` of rows: those of one cluster will be merged: the keys of all of them count, but a
            size counts them as one.
        sources: `row_id`, `source` of each post; of a cluster that of the post that stays.
        seed: Which groups these are follows from it and from the group alone.
        given_at: What to write beside new groups.
    """
    known = known.sort("group_id")
    rows = pl.concat([posts.select("row_id", "keys", post=True), dialogues.select("row_id", "keys", post=False)])
    rows = rows.sort("row_id").with_row_index("row")
    held, names = _held(rows, pl.DataFrame(schema=SOFT) if soft is None else soft)
    joined, tied = _groups(held, names, known, rows.height)
    rows = rows.with_columns(group=joined, component=tied)
    new = _named(held.filter("exact").join(rows.select("row", "component"), on="row"), names)
    rows = rows.join(new, on="component", how="left", maintain_order="left").with_columns(
        group_id=pl.coalesce(known["group_id"].gather(rows["group"]), "group_id")
    )
    sections = dict(sorted(_sections(sizes or Sizes()).items()))
    weights = _weights(rows, list(sections), clusters, sources)
    new = _allotted(new.select("group_id").sort("group_id"), weights, known, sections, seed)
    table = pl.concat([known.select("group_id", "split", "given_at"), new.with_columns(given_at=pl.lit(given_at))])
    members = pl.concat(
        [
            known.select("group_id", key="members").explode("key", empty_as_null=False),
            rows.select("group_id", key="keys").drop_nulls("group_id").explode("key"),
        ]
    ).unique()
    of_group = members.sort("group_id", "key").group_by("group_id", maintain_order=True).agg(members="key")
    splits = table.join(of_group, on="group_id", how="left").sort("group_id")
    conflicts = _conflicts(held.join(names, on="id"), rows, members, table)
    return Grouped(
        rows.select("row_id", "row", "group_id")
        .join(conflicts, on="row", how="left", maintain_order="left")
        .drop("row"),
        splits.select(pl.col("group_id", "split", "given_at"), pl.col("members").fill_null([])),
    )


def known_splits(keys: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `split` of the rows that have their split already: all their `keys` are of groups in one split."""
    split_of = known.select("split", key="members").explode("key").unique("key")
    splits = keys.select("row_id", key="keys").explode("key").join(split_of, on="key", how="left")
    one = (pl.col("split").null_count() == 0) & (pl.col("split").n_unique() == 1)
    return splits.group_by("row_id").agg(pl.col("split").first(), one=one).filter("one").drop("one").sort("row_id")


def _held(rows: pl.DataFrame, soft: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`row`, `id`, `exact`: which row has which key, in the order of rows; and `id`, `key`, in the order of keys."""
    of_rows = [
        rows.select("row", key="keys", exact=True).explode("key"),
        rows.select("row", "row_id").join(soft, on="row_id").select("row", "key", exact=False),
    ]
    held = pl.concat(of_rows)
    names = held.select("key").unique().sort("key").with_row_index("id")
    return held.join(names, on="key").select("row", "id", "exact").sort("row"), names


NOBODY, CONFLICT = -1, -2


class _Held(NamedTuple):
    """Row r has the keys `ids[of_row[r]:of_row[r + 1]]`, key k is of `rows[of_key[k]:of_key[k + 1]]`."""

    of_row: Places
    ids: Words
    exact: Flags  # beside `ids`
    of_key: Places
    rows: Words
    weak: Flags  # of each key


class _Joining(NamedTuple):
    """What changes while rows join the known groups, which are numbered in the order of their names."""

    owners: Slots  # of each key the group, or NOBODY
    splits: Slots  # of each group
    heights: Places  # how many rows have joined each group
    groups: Slots  # of each row the group, CONFLICT, or NOBODY
    reached: Flags  # whether a row has a key that a group got since it was looked at


def _groups(held: pl.DataFrame, names: pl.DataFrame, known: pl.DataFrame, n: int) -> tuple[pl.Series, pl.Series]:
    """Of each of n rows the known group that it joins, as its place in the table, or the new one, as its first row;
    neither for a row in conflict.
    """
    weak = names.select(pl.any_horizontal(pl.col("key").str.starts_with(one) for one in WEAK)).to_series().to_numpy()
    rows, ids = held["row"].to_numpy(), held["id"].to_numpy()
    of_row, of_key = _starts(rows, n), _starts(ids, names.height)
    arrays = _Held(of_row, ids, held["exact"].to_numpy(), of_key, rows[np.argsort(ids, kind="stable")], weak)
    joined = _joined(arrays, names, known)
    waiting = joined == NOBODY
    # Weak keys last, those of few rows first: what few share says most.
    n_waiting = np.bincount(ids[waiting[rows]], minlength=names.height)
    order = np.lexsort((n_waiting, weak))
    tied = _tie(arrays, order[n_waiting[order] > 1], waiting)
    joins = pl.Series(joined)
    return joins.set(joins < 0, None), pl.Series(tied).set(pl.Series(~waiting), None)


def _starts(values: NDArray[np.uint32], n: int) -> Places:
    """Where each value below n begins, and where the last one ends, once the values are sorted."""
    return np.concatenate([[0], np.cumsum(np.bincount(values, minlength=n))]).astype(np.int64)


def _joined(held: _Held, names: pl.DataFrame, known: pl.DataFrame) -> Slots:
    """Lets rows join the known groups: of each row the group, CONFLICT, or NOBODY where it has no key of any group."""
    n = len(held.of_row) - 1
    members = known.select(key="members").with_row_index("group").explode("key").join(names, on="key").sort("group")
    owners = np.full(names.height, NOBODY, np.int32)
    owners[members["id"]] = members["group"]
    splits = known["split"].rank("dense").cast(pl.Int32).to_numpy()
    groups, heights = np.full(n, NOBODY, np.int32), np.zeros(known.height, np.int64)
    joining = _Joining(owners, splits, heights, groups, np.ones(n, np.bool_))
    # Rows that were there before come first, so that no new one takes their place. Then in rounds: a row that joins
    # brings its keys with it. A row in conflict ends the search there, and its keys go to nobody.
    _place(_there_before(held, owners), held, joining)
    while len(near := _near(held, joining)):
        _place(near, held, joining)
    return groups


@kernel
def _there_before(held: _Held, owners: Slots) -> Places:
    """The rows of which every exact key is a group's."""
    known = np.ones(held.of_row.shape[0] - 1, np.bool_)
    for row in range(known.shape[0]):
        for at in range(held.of_row[row], held.of_row[row + 1]):
            known[row] &= owners[held.ids[at]] != NOBODY or not held.exact[at]
    return np.flatnonzero(known)


@kernel
def _near(held: _Held, joining: _Joining) -> Places:
    """The rows without a group that have a key of one, of those that were reached since the last time."""
    near = np.flatnonzero(joining.reached & (joining.groups == NOBODY))
    joining.reached[:] = False
    for place in range(near.shape[0]):
        if _touched(near[place], held, joining)[0] < 0:
            near[place] = -1
    return near[near >= 0]


@kernel
def _place(near: Places, held: _Held, joining: _Joining) -> None:
    """Lets rows join, one after the other."""
    for row in near:
        first, of_exact, several = _touched(row, held, joining)
        if first < 0:
            continue  # the group is full by now
        if several:
            joining.groups[row] = CONFLICT
            continue
        group = first if of_exact < 0 else of_exact
        joining.groups[row] = group
        joining.heights[group] += 1
        for key in held.ids[held.of_row[row] : held.of_row[row + 1]]:
            if joining.owners[key] == NOBODY:
                joining.owners[key] = group
                for other in held.rows[held.of_key[key] : held.of_key[key + 1]]:
                    joining.reached[other] = True


@kernel
def _touched(row: int, held: _Held, joining: _Joining) -> tuple[int, int, bool]:
    """Of the groups that a row would join the first, the first by an exact key, and whether they are of several splits;
    -1 where there is none.
    """
    first, of_exact, split, several = -1, -1, -1, False
    for at in range(held.of_row[row], held.of_row[row + 1]):
        key = held.ids[at]
        group = joining.owners[key]
        if group == NOBODY:
            continue
        if held.exact[at] and (of_exact < 0 or group < of_exact):
            of_exact = group
        if held.weak[key] and joining.heights[group] >= MOST:
            continue
        if first < 0 or group < first:
            first = group
        several |= split >= 0 and joining.splits[group] != split
        split = joining.splits[group]
    return first, of_exact, several


@kernel
def _tie(held: _Held, order: Places, waiting: Flags) -> Words:
    """Groups the waiting rows by the keys that they share, key after key: of each row the first one of its group."""
    parents = np.arange(waiting.shape[0]).astype(np.uint32)
    heights = np.ones(waiting.shape[0], np.int64)
    counted = np.full(waiting.shape[0], -1, np.int64)
    for key in order:
        height, first = 0, waiting.shape[0]
        rows = held.rows[held.of_key[key] : held.of_key[key + 1]]
        for row in rows:
            root = _root(parents, row)
            if waiting[row] and counted[root] != key:
                counted[root] = key
                height += heights[root]
                first = min(first, root)
        if held.weak[key] and height > MOST:
            continue
        for row in rows:
            if waiting[row]:
                parents[_root(parents, row)] = first
        heights[first] = height
    for row in range(parents.shape[0]):
        parents[row] = _root(parents, row)
    return parents


@part
def _root(parents: Words, row: int) -> int:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


def _named(exact: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """`component`, `group_id` of new groups, of the exact keys of their rows. A group is named by the first of them, a
    text where there is one: pseudonyms are others in each home, and a split follows from the name.
    """
    author = names["key"].str.starts_with(AUTHOR)
    keys = exact.drop_nulls("component").with_columns(author=author.gather(exact.drop_nulls("component")["id"]))
    text = pl.col("id").filter(~pl.col("author")).min()
    firsts = keys.group_by("component").agg(first=pl.coalesce(text, pl.col("id").min()))
    names_of_firsts = names["key"].gather(firsts["first"])
    group_ids = pl.Series(["g" + digest(name) for name in names_of_firsts], dtype=pl.String)
    return firsts.select("component", group_id=group_ids)


def _conflicts(held: pl.DataFrame, rows: pl.DataFrame, members: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """`row`, `conflict` of each row in conflict: the groups that it would join, with their splits."""
    torn = held.join(rows.filter(pl.col("group_id").is_null()).select("row"), on="row", how="semi")
    holders = held.join(torn, on="key", how="semi").join(rows.select("row", "group_id"), on="row")
    holders = pl.concat([holders.drop_nulls("group_id").select("group_id", "key"), members]).unique()
    would_join = torn.join(holders, on="key").select("row", "group_id").unique().join(table, on="group_id")
    name = pl.format("{} ({})", "split", "group_id")
    return would_join.sort("row", "group_id").group_by("row").agg(conflict=name.str.join(" and "))


_POSTS, _DIALOGUES = "posts", "dialogues"


def _sections(sizes: Sizes) -> dict[str, SplitSizes]:
    """The sizes by their section in the settings."""
    of_sources = {f"{_POSTS}.sources.{name}": of_source for name, of_source in sizes.posts.sources.items()}
    return {_POSTS: sizes.posts, _DIALOGUES: sizes.dialogues, **of_sources}


def _weights(
    rows: pl.DataFrame, sections: list[str], clusters: pl.DataFrame | None, sources: pl.DataFrame | None
) -> pl.DataFrame:
    """`group_id`, `section`, `rows`: how many rows of a group count in which section, as its place in the list: its
    posts, or its dialogues where it holds no post.
    """
    nothing = pl.DataFrame(schema={"row_id": pl.String, "cluster": pl.String, "source": pl.String})
    rows = rows.drop_nulls("group_id")
    rows = rows.join(nothing.drop("source") if clusters is None else clusters, on="row_id", how="left")
    rows = rows.join(nothing.drop("cluster") if sources is None else sources, on="row_id", how="left")
    named = pl.format(f"{_POSTS}.sources.{{}}", "source")
    of_post = pl.when(named.is_in(sections)).then(named).otherwise(pl.lit(_POSTS))
    section = pl.when("post").then(of_post).otherwise(pl.lit(_DIALOGUES))
    counting = rows.filter(pl.col("post") | ~pl.col("post").any().over("group_id"))
    one = pl.coalesce(pl.col("cluster").cast(pl.String), "row_id")
    place = section.replace_strict(sections, range(len(sections)), return_dtype=pl.Int64)
    return counting.group_by("group_id", section=place).agg(rows=one.n_unique())


def _allotted(
    new: pl.DataFrame, weights: pl.DataFrame, known: pl.DataFrame, sections: Mapping[str, SplitSizes], seed: int
) -> pl.DataFrame:
    """`group_id`, `split` of the new groups; `weights` are the rows of all groups, by the place of their section.

    A group is drawn by the section that most of its rows are in, the first by name among equals, and takes room in
    every section that gives a number. By a share it is drawn alone, so that no other row can move it; but one of more
    than MOST rows and than the share of all rows is for training. A number is filled up in the order of the draws,
    counting the rows that are there already and never passing it.
    """
    every = _by_section(weights, sections)
    of_group = np.zeros((new.height, len(sections)), np.int64)
    placed = weights.join(new.with_row_index("place"), on="group_id")
    of_group[placed["place"], placed["section"]] = placed["rows"]
    most_in = of_group.argmax(1)
    split = np.full(new.height, "train", object)
    left = np.ones(len(sections))
    for name in ("test", "validation"):
        wanted = np.array([getattr(size, name) for size in sections.values()], np.float64)
        by_share = np.array([isinstance(getattr(size, name), float) for size in sections.values()])
        taken = _by_section(weights.join(known.filter(split=name), on="group_id", how="semi"), sections)
        room = np.where(by_share, np.iinfo(np.int64).max, wanted.astype(np.int64) - taken)
        undecided = np.flatnonzero(split == "train")
        draws = np.array([unit_interval(seed, name, group) for group in new["group_id"].gather(undecided)])
        order = np.argsort(draws, kind="stable")
        draws, undecided = draws[order], undecided[order]
        section = most_in[undecided]
        fits = of_group[undecided, section] <= np.maximum(MOST, wanted * every)[section]
        is_drawn = ~by_share[section] | ((draws < (wanted / left)[section]) & fits)
        split[_taking_room(of_group, undecided[is_drawn], room)] = name
        left = left - np.where(by_share, wanted, 0.0)
    return new.with_columns(split=pl.Series(split.tolist(), dtype=pl.String))


def _by_section(weights: pl.DataFrame, sections: Mapping[str, SplitSizes]) -> Places:
    return np.bincount(weights["section"], weights["rows"], len(sections)).astype(np.int64)


@kernel
def _taking_room(weights: NDArray[np.int64], groups: Places, room: Places) -> Places:
    """The groups that fit, one after the other, into what is left of the room of each section."""
    fitting = np.empty_like(groups)
    n_fitting = 0
    for group in groups:
        fits = True
        for section in range(room.shape[0]):
            fits &= weights[group, section] <= max(room[section], 0)
        if fits:
            room -= weights[group]
            fitting[n_fitting] = group
            n_fitting += 1
    return fitting[:n_fitting]
