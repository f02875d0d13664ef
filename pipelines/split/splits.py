"""Train, validation and test, given to groups and kept (DESIGN §2.8).

Rows that share a link (`pipelines.dedup.links`) or a tie (`pipelines.dedup.ties`) form a group. A group gets its
split once, and remembers the links of its rows; ties are found again each time. A new row joins the group that it
touches; one that touches groups of different splits is dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from pipelines.settings import Splits as Sizes
from pipelines.settings import SplitSizes
from schemas.ids import digest, unit_interval
from schemas.training import Splits

AUTHOR = "a:"  # so begins the link of an author; what follows is a pseudonym


@dataclass(frozen=True)
class Grouped:
    """`groups`: row_id → group_id; `bridges`: row_id → what it would tie together; `splits`: the table."""

    groups: dict[str, str]
    bridges: dict[str, str]
    splits: pl.DataFrame


@dataclass
class _Group:
    group_id: str
    split: str
    given_at: str
    links: set[str] = field(default_factory=set)


def give_splits(
    posts: pl.DataFrame,
    dialogues: pl.DataFrame,
    standing: pl.DataFrame,
    sizes: Sizes | None = None,
    *,
    ties: Mapping[str, Sequence[str]] | None = None,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    given_at: str = "",
) -> Grouped:
    """Group the rows and give every new group its split.

    Args:
        posts: `row_id`, `links` of posts.
        dialogues: `row_id`, `links` of dialogues.
        standing: The table `splits` as it stands; its groups keep their split for ever.
        sizes: How much of the new groups goes to validation and test, for groups with posts and for others.
        ties: What ties rows beyond their links; no row need have any.
        clusters: Rows of one cluster will be merged: all of them tie, but a size counts them as one. A row that is
            not named is a cluster of its own.
        seed: Which groups these are follows from it and from the group alone.
        given_at: What to write beside new groups.
    """
    links_of = {
        row: links for frame in (posts, dialogues) for row, links in frame.select("row_id", "links").iter_rows()
    }
    known = {
        row["group_id"]: _Group(row["group_id"], row["split"], row["given_at"], set(row["members"]))
        for row in standing.iter_rows(named=True)
    }
    post_ids = set(posts["row_id"])
    ties, clusters = ties or {}, clusters or {}
    groups, bridging, fresh = _join(links_of, ties, known)
    new = _new_groups(links_of, ties, fresh)
    rows_of = dict(new)
    for row, group in groups.items():
        rows_of.setdefault(group, []).append(row)
    # A group with a post in it is sized by its posts, any other by its dialogues.
    with_posts = {group for group, rows in rows_of.items() if not post_ids.isdisjoint(rows)}
    sizes = sizes or Sizes()
    given: dict[str, str] = {}
    for of_posts, wanted in ((True, sizes.posts), (False, sizes.dialogues)):
        weights = {
            group: len({clusters.get(row, row) for row in rows if (row in post_ids) is of_posts})
            for group, rows in rows_of.items()
            if (group in with_posts) is of_posts
        }
        taken: Counter[str] = Counter()
        for group in weights.keys() - new.keys():
            taken[known[group].split] += weights[group]
        given |= _allot({group: weights[group] for group in weights.keys() & new.keys()}, wanted, taken, seed)
    for group, rows in new.items():
        known[group] = _Group(group, given[group], given_at)
        groups |= dict.fromkeys(rows, group)
    for row, group in groups.items():
        known[group].links.update(links_of[row])
    table = pl.DataFrame(
        [
            {"group_id": one.group_id, "split": one.split, "given_at": one.given_at, "members": sorted(one.links)}
            for one in known.values()
        ],
        schema=Splits.polars_schema(),
    )
    return Grouped(groups, _told(bridging, links_of, ties, groups, known), table.sort("group_id"))


def standing_rows(links: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `split` of the rows that have their split already: every link of theirs stands in groups of one.

    Args:
        links: `row_id`, `links` of rows.
        standing: The table `splits` as it stands.
    """
    split_of = standing.select("split", link="members").explode("link").unique("link")
    found = links.select("row_id", link="links").explode("link").join(split_of, on="link", how="left")
    one = (pl.col("split").null_count() == 0) & (pl.col("split").n_unique() == 1)
    return found.group_by("row_id").agg(pl.col("split").first(), one=one).filter("one").drop("one").sort("row_id")


def _join(
    links_of: Mapping[str, list[str]], ties: Mapping[str, Sequence[str]], known: Mapping[str, _Group]
) -> tuple[dict[str, str], list[str], list[str]]:
    """Let rows join the standing groups: (row → group, rows that would be a bridge, rows that touch none)."""
    owner = {link: group for group in sorted(known) for link in known[group].links}
    groups: dict[str, str] = {}
    bridging: list[str] = []
    waiting = dict.fromkeys(sorted(links_of))

    def touches(row: str) -> bool:
        return any(name in owner for name in (*links_of[row], *ties.get(row, ())))

    def place(row: str) -> None:
        del waiting[row]
        by_link = {owner[link] for link in links_of[row] if link in owner}
        touched = by_link | {owner[tie] for tie in ties.get(row, ()) if tie in owner}
        if len({known[group].split for group in touched}) > 1:
            bridging.append(row)
            return
        groups[row] = min(by_link or touched)
        for name in (*links_of[row], *ties.get(row, ())):
            owner.setdefault(name, groups[row])

    # Rows that were there before come first, so that no new one takes their place. Then it is walked outwards, in
    # rounds: a row that joins brings its links and ties with it. A row that meets two splits is where the walk is cut,
    # and what it brings goes to nobody.
    for row in [row for row in waiting if all(link in owner for link in links_of[row])]:
        place(row)
    while near := [row for row in waiting if touches(row)]:
        for row in near:
            place(row)
    return groups, bridging, list(waiting)


def _told(
    bridging: Iterable[str],
    links_of: Mapping[str, list[str]],
    ties: Mapping[str, Sequence[str]],
    groups: Mapping[str, str],
    known: Mapping[str, _Group],
) -> dict[str, str]:
    """Of each bridge the groups that it would tie, with their splits."""
    holders: dict[str, set[str]] = {}
    for group, one in known.items():
        for link in one.links:
            holders.setdefault(link, set()).add(group)
    for row, group in groups.items():
        for tie in ties.get(row, ()):
            holders.setdefault(tie, set()).add(group)
    tied = {
        row: {group for name in (*links_of[row], *ties.get(row, ())) for group in holders.get(name, ())}
        for row in bridging
    }
    return {row: " and ".join(f"{known[group].split} ({group})" for group in sorted(tied[row])) for row in tied}


def _new_groups(
    links_of: Mapping[str, list[str]], ties: Mapping[str, Sequence[str]], rows: Iterable[str]
) -> dict[str, list[str]]:
    """Group the rows that touch no standing group; a group is named by the first of its links, a text where there is
    one: pseudonyms are others in each home, and a split follows from the name.
    """
    names_of = {row: [*links_of[row], *ties.get(row, ())] for row in rows}
    found = {}
    for component in _components(names_of):
        links = [link for row in component for link in links_of[row]]
        first = min(links, key=lambda link: (link.startswith(AUTHOR), link))
        found["g" + digest(first)] = sorted(component)
    return found


def _components(names_of: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Rows that hang together by the names that they share."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = node = parent[above]
        return node

    for names in names_of.values():
        for name in names[1:]:
            parent[root(name)] = root(names[0])
    components: dict[str, list[str]] = {}
    for row, names in names_of.items():
        components.setdefault(root(names[0]), []).append(row)
    yield from components.values()


def _allot(weights: Mapping[str, int], sizes: SplitSizes, taken: Counter[str], seed: int) -> dict[str, str]:
    """A split for each new group; `weights` are its rows.

    A share is drawn group by group, so that no other row can move it. A number is filled up in the order of the
    draws, counting the rows that are there already and never passing it.
    """
    given: dict[str, str] = {}
    left = 1.0
    for split, size in (("test", sizes.test), ("validation", sizes.validation)):
        draws = {group: unit_interval(seed, split, group) for group in weights if group not in given}
        if isinstance(size, float):
            given |= {group: split for group, draw in draws.items() if draw < size / left}
            left -= size
            continue
        room = size - taken[split]
        for group in sorted(draws, key=lambda group: (draws[group], group)):
            if 0 < weights[group] <= room:
                given[group] = split
                room -= weights[group]
    return {group: given.get(group, "train") for group in weights}
