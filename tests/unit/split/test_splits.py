"""Splits without leaks: rows with a key in common stay together, groups keep their split, conflicts are dropped."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.settings import PostSizes, SplitSizes
from pipelines.settings import Splits as Sizes
from pipelines.split.splits import MOST, SOFT, Grouped, give_splits, known_splits
from schemas.training import Splits

Rows = Mapping[str, Iterable[str]]

NONE = Splits.create_empty()
# Much of everything, so that groups of different splits meet often.
EVEN = Sizes(posts=PostSizes(test=0.35, validation=0.35), dialogues=SplitSizes(test=0.35, validation=0.35))


def sizes(**posts: float) -> Sizes:
    return Sizes(posts=PostSizes(**posts), dialogues=SplitSizes(**posts))


def frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(
        {"row_id": list(rows), "keys": [list(keys) for keys in rows.values()]},
        schema={"row_id": pl.String, "keys": pl.List(pl.String)},
    )


@dataclass(frozen=True)
class Given:
    """`groups`: row → group; `conflicts`: row → the groups that it would join; `splits`: the table."""

    groups: dict[str, str]
    conflicts: dict[str, str]
    splits: pl.DataFrame


def by_row(given: Grouped) -> Given:
    groups, conflicts = (
        dict(given.rows.select("row_id", name).drop_nulls().iter_rows()) for name in ("group_id", "conflict")
    )
    return Given(groups, conflicts, given.splits)


def give(
    rows: Rows,
    known: pl.DataFrame = NONE,
    wanted: Sizes = EVEN,
    seed: int = 0,
    dialogues: Rows | None = None,
    soft: Mapping[str, list[str]] | None = None,
) -> Given:
    """The source of a row is what its id begins with, as `psyqa:1`."""
    sources = pl.DataFrame(
        [(row, row.partition(":")[0]) for row in rows], schema={"row_id": pl.String, "source": pl.String}, orient="row"
    )
    soft_keys = pl.DataFrame([(row, key) for row, keys in (soft or {}).items() for key in keys], SOFT, orient="row")
    both = frame(rows), frame(dialogues or {})
    return by_row(give_splits(*both, known, wanted, soft=soft_keys, sources=sources, seed=seed, given_at="now"))


def splits_of(given: Given) -> dict[str, str]:
    """The split of every row that was kept."""
    by_group = dict(given.splits.select("group_id", "split").iter_rows())
    return {row: by_group[group] for row, group in given.groups.items()}


def singletons(number: int, prefix: str = "r") -> dict[str, list[str]]:
    return {f"{prefix}{n}": [f"t:{prefix}{n}"] for n in range(number)}


def test_a_group_is_named_by_its_texts_whatever_its_authors_are_called_in_this_home():
    """So that one data set has the same splits in every home, whose keys and so whose pseudonyms are others."""
    here, there = ({f"r{n}": [f"a:{home}{n // 2}", f"t:{n}"] for n in range(200)} for home in ("u_1f", "u_9c"))
    one, other = give(here), give(there)
    assert len(one.groups) == 200
    assert one.groups == other.groups
    assert splits_of(one) == splits_of(other)
    assert give({"r": ["a:u_1f"]}).groups.keys() == {"r"}, "a row without a text that tells is named by its author"


def test_rows_that_share_a_key_are_one_group_and_so_on():
    given = give({"a": ["1", "2"], "b": ["2", "3"], "c": ["3"], "d": ["4"]})
    assert given.groups["a"] == given.groups["b"] == given.groups["c"] != given.groups["d"]
    assert given.conflicts == {}
    assert set(map(tuple, given.splits["members"])) == {("1", "2", "3"), ("4",)}


def test_a_new_row_joins_the_group_of_its_key_and_brings_its_keys():
    first = give({"a": ["1"]})
    second = give({"a": ["1"], "b": ["1", "2"]}, first.splits)
    third = give({"c": ["2"]}, second.splits)
    assert third.groups["c"] == second.groups["b"] == first.groups["a"]
    assert third.splits["members"].to_list() == [["1", "2"]]


def table(**groups: tuple[str, list[str]]) -> pl.DataFrame:
    rows = [(name, split, "then", keys) for name, (split, keys) in groups.items()]
    return pl.DataFrame(rows, schema=Splits.polars_schema(), orient="row")


TWO = table(g1=("test", ["1"]), g2=("train", ["2"]), g3=("train", ["3"]))


def test_a_row_of_test_and_train_is_in_conflict_and_names_both_groups():
    assert give({"b": ["1", "2"]}, TWO).conflicts == {"b": "test (g1) and train (g2)"}
    given = give({"b": ["1", "2", "9"], "c": ["9"], "d": ["2", "3"]}, TWO)
    assert given.conflicts.keys() == {"b"}
    assert splits_of(given)["d"] == "train"  # both of its groups are
    assert given.groups["c"] not in {"g1", "g2", "g3"}  # the keys of a row in conflict go to nobody


def test_a_chain_of_new_rows_is_cut_where_two_splits_meet():
    given = give({"a": ["1", "x"], "b": ["x", "y"], "c": ["y", "2"]}, TWO)
    assert splits_of(given) == {"a": "test", "c": "train"}
    assert given.conflicts == {"b": "test (g1) and train (g2)"}


def test_rows_that_will_be_merged_count_as_one():
    rows = {"a": ["1"], "a2": ["1", "author"], "b": ["author"], "c": ["2"], "d": ["2"], "e": ["2"]}
    clusters = pl.DataFrame({"row_id": ["a2"], "cluster": ["a"]})
    given = by_row(give_splits(frame(rows), frame({}), NONE, sizes(test=2, validation=0), clusters=clusters))
    assert splits_of(given) == dict.fromkeys(("a", "a2", "b"), "test") | dict.fromkeys("cde", "train")


def test_which_rows_have_their_split():
    keys = frame({"old": ["1"], "both": ["2", "3"], "more": ["1", "new"], "torn": ["1", "2"], "new": ["new"]})
    assert known_splits(keys, TWO).rows() == [("both", "train"), ("old", "test")]
    assert known_splits(keys, NONE).is_empty()


def test_a_soft_key_groups_like_an_exact_one_but_no_table_remembers_it():
    soft = {"a": ["n:1"], "b": ["n:1", "p:2"], "c": ["p:2"], "d": ["p:3"]}
    rows = {row: [f"t:{row}"] for row in "abcd"}
    given = give(rows, soft=soft)
    assert given.groups["a"] == given.groups["b"] == given.groups["c"] != given.groups["d"]
    assert set(map(tuple, given.splits["members"])) == {("t:a", "t:b", "t:c"), ("t:d",)}
    assert given.groups["a"] in give(rows).groups.values()  # named by exact keys alone


def test_soft_keys_of_two_splits_drop_the_new_row_and_no_other():
    soft = {"a": ["n:1"], "b": ["n:2"], "0": ["n:1", "n:2"]}
    given = give({"a": ["1"], "b": ["2"], "0": ["new"]}, TWO, soft=soft)
    assert splits_of(given) == {"a": "test", "b": "train"}
    assert given.conflicts == {"0": "test (g1) and train (g2)"}


def chained(number: int, kind: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Rows of which each shares a soft key with the next, and their soft keys."""
    rows = singletons(number)
    return rows, {f"r{n}": [f"{kind}:{n}", f"{kind}:{n + 1}"] for n in range(number)}


def test_a_chain_of_weak_keys_is_cut_into_groups_of_a_number_and_one_of_strong_keys_is_not():
    rows, soft = chained(4 * MOST, "p")
    heights = Counter(give(rows, soft=soft).groups.values())
    assert max(heights.values()) <= MOST
    assert len(heights) < len(rows) / 2, "they tie as far as that"
    rows, soft = chained(4 * MOST, "n")
    assert len(set(give(rows, soft=soft).groups.values())) == 1


def test_no_row_joins_a_full_group_by_a_weak_key():
    rows, soft = chained(MOST, "p")
    known = give(rows, soft=soft)
    more = rows | singletons(2, "s")
    soft |= {"s0": ["p:3"], "s1": ["n:3"]}
    soft["r3"] = [*soft["r3"], "n:3"]
    given = give(more, known.splits, soft=soft)
    assert given.groups["s1"] == given.groups["r3"]
    assert given.groups["s0"] not in {given.groups[row] for row in rows}


def test_what_few_rows_share_ties_before_what_many_share():
    rows = singletons(MOST + 2)
    soft = {row: ["p:many"] for row in rows if row != "r0"} | {"r0": ["p:two"]}
    soft["r1"] = ["p:many", "p:two"]
    groups = give(rows, soft=soft).groups
    assert groups["r0"] == groups["r1"]
    assert len(set(groups.values())) == len(rows) - 1, "and the others stay by themselves"


def test_a_group_larger_than_the_share_of_a_split_is_for_training():
    large = {f"l{n}": [f"t:l{n}", "a:u_1"] for n in range(400)}
    drawn = [
        splits_of(give(large | singletons(600), wanted=sizes(test=0.3, validation=0.3), seed=seed))["l0"]
        for seed in range(12)
    ]
    assert set(drawn) == {"train"}
    drawn = [
        splits_of(give(large | singletons(600), wanted=sizes(test=0.45, validation=0.45), seed=seed))["l0"]
        for seed in range(12)
    ]
    assert {"test", "validation"} <= set(drawn)


def test_a_row_that_was_there_is_placed_before_a_new_one():
    """The new row comes first by its id and shares an exact key with test; what is in train stays there."""
    given = give({"b": ["2"], "0": ["1", "new"]}, TWO, soft={"b": ["n:1"], "0": ["n:1"]})
    assert splits_of(given) == {"b": "train"}
    assert given.conflicts == {"0": "test (g1) and train (g2)"}


def test_exact_keys_decide_before_soft_ones():
    given = give({"a": ["2"], "b": ["3", "new"]}, TWO, soft={"a": ["n:1"], "b": ["n:1"]})
    assert given.groups == {"a": "g2", "b": "g3"}


KEYS = [f"l{number}" for number in range(12)]
# Soft keys follow from texts, and so do exact ones: a row has the soft keys of its exact ones.
SOFT_OF = st.fixed_dictionaries(
    {key: st.sets(st.sampled_from([f"n:{n}" for n in range(6)]), max_size=1) for key in KEYS}
)
BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 25), st.sets(st.sampled_from(KEYS), min_size=1, max_size=3)), max_size=8),
    min_size=1,
    max_size=5,
)
WANTED = st.sampled_from(
    [EVEN, sizes(test=3, validation=2), sizes(test=0.4, validation=1), sizes(test=0, validation=0)]
)


def require_no_leak(rows: Rows, given: Given) -> None:
    split = splits_of(given)
    for one, other in combinations(split, 2):
        if not set(rows[one]).isdisjoint(rows[other]):
            assert split[one] == split[other], (one, other)


def require_same_in_any_order(
    given: Given, rows: dict[str, list[str]], known: pl.DataFrame, chance: random.Random, **args: Any
) -> None:
    """In any order of rows and of the table, and once more with its own result."""
    soft = args.pop("soft", {})
    order = chance.sample(sorted(rows), len(rows))
    shuffled = known.sample(fraction=1, shuffle=True, seed=chance.randrange(1000))
    other = give({row: rows[row] for row in order}, shuffled, soft={row: soft.get(row, []) for row in order}, **args)
    again = give(rows, given.splits, soft=soft, **args)
    for one in (other, again):
        assert (one.groups, one.conflicts) == (given.groups, given.conflicts)
        assert one.splits.equals(given.splits)


@settings(deadline=None, max_examples=120)
@given(BATCHES, SOFT_OF, WANTED, st.booleans(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_refresh_after_refresh(
    batches: list[list[tuple[int, set[str]]]],
    soft_of: dict[str, set[str]],
    wanted: Sizes,
    changing: bool,
    seed: int,
    chance: random.Random,
):
    """A refresh sees all rows so far; the texts of some are others than before, or none is and there are soft keys."""
    rows: dict[str, list[str]] = {}
    soft: dict[str, list[str]] = {}
    known, split = NONE, {}
    for batch in batches:
        for number, keys in batch:
            if changing or f"r{number}" not in rows:
                rows[f"r{number}"] = sorted(keys)
        if not changing:
            soft = {row: sorted(set.union(*(soft_of[key] for key in keys))) for row, keys in rows.items()}
        given = give(rows, known, wanted, seed, soft=soft)
        assert Splits.is_valid(given.splits)
        # Nothing vanishes, nothing leaks.
        assert given.groups.keys() | given.conflicts.keys() == rows.keys()
        assert given.groups.keys().isdisjoint(given.conflicts)
        require_no_leak({row: [*rows[row], *soft.get(row, [])] for row in rows}, given)
        # A split stays; a group only grows.
        after = {row["group_id"]: row for row in given.splits.iter_rows(named=True)}
        for group in known.iter_rows(named=True):
            now = after[group["group_id"]]
            assert (now["split"], now["given_at"]) == (group["split"], group["given_at"])
            assert set(now["members"]) >= set(group["members"])
        splits_of_key = given.splits.explode("members").group_by("members").agg(pl.col("split").n_unique())["split"]
        assert splits_of_key.max() in (None, 1)
        # A row in conflict names the groups that it would join, in different splits, and has a key of each.
        for row, detail in given.conflicts.items():
            named = re.findall(r"(train|validation|test) \((g\w+)\)", detail)
            assert len({split for split, _ in named}) > 1
            for of_group, group in named:
                assert after[group]["split"] == of_group
                assert soft or not set(after[group]["members"]).isdisjoint(rows[row])
        if not changing:
            assert {member for members in given.splits["members"] for member in members} <= set(KEYS)
            assert split.items() <= splits_of(given).items()  # no row that was there moves, or is dropped for a new one
        before, known, split = known, given.splits, splits_of(given)
    require_same_in_any_order(given, rows, before, chance, wanted=wanted, seed=seed, soft=soft)


def test_those_refreshes_meet_conflicts():
    """The law above is not empty: over random refreshes of that shape rows are dropped, and most are not."""
    chance, conflicts, kept = random.Random(1), 0, 0
    for seed in range(60):
        rows: dict[str, list[str]] = {}
        known = NONE
        for _ in range(3):
            rows |= {f"r{len(rows) + n}": chance.sample(KEYS, chance.randint(1, 2)) for n in range(4)}
            given = give(rows, known, EVEN, seed)
            known = given.splits
        conflicts += len(given.conflicts)
        kept += len(given.groups)
    assert conflicts > 30
    assert kept > 3 * conflicts


def test_a_number_is_filled_up_over_refreshes_and_never_passed():
    wanted, known = sizes(test=50, validation=20), NONE
    rows: dict[str, list[str]] = {f"large{n}": ["t:large"] for n in range(100)}  # fits nowhere
    counted = []
    for batch in range(3):
        rows |= singletons(30, prefix=f"b{batch}_")
        given = give(rows, known, wanted)
        known = given.splits
        counted.append(Counter(splits_of(given).values()))
    assert counted == [
        {"train": 100, "test": 30},
        {"train": 100, "test": 50, "validation": 10},
        {"train": 120, "test": 50, "validation": 20},
    ]


def test_shares_are_kept_within_chance_also_beside_a_number():
    """5,000 single groups: within five standard deviations of a binomial draw."""
    for test, validation, of in ((0.1, 0.1, 5000), (0.05, 0.9, 5000), (500, 0.2, 4500)):
        counted = Counter(splits_of(give(singletons(5000), wanted=sizes(test=test, validation=validation))).values())
        assert counted.total() == 5000
        shares = {"validation": validation} if of < 5000 else {"test": test, "validation": validation}
        assert of == 5000 or counted["test"] == test
        for split, share in shares.items():
            assert abs(counted[split] - of * share) < 5 * (of * share * (1 - share)) ** 0.5, (test, validation)


def test_posts_and_dialogues_are_sized_apart_and_a_mixed_group_by_its_posts():
    wanted = Sizes(posts=PostSizes(test=10, validation=0), dialogues=SplitSizes(test=20, validation=0))
    posts = singletons(50, "p")
    made_from_posts = {f"m{n}": [f"t:p{n}"] for n in range(50)}
    dialogues = {**made_from_posts, **singletons(60, "d")}

    def tested(given: Given) -> Counter[str]:
        return Counter(row[0] for row, split in splits_of(given).items() if split == "test")

    assert tested(give(posts, dialogues=dialogues, wanted=wanted)) == {"p": 10, "m": 10, "d": 20}
    posts_first = give(posts, give(posts, wanted=wanted).splits, wanted, dialogues=dialogues)
    assert tested(posts_first) == {"p": 10, "m": 10, "d": 20}


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 5))
def test_by_share_no_other_row_moves_a_group(few: int, more: int, seed: int):
    alone = splits_of(give(singletons(few), seed=seed))
    among = splits_of(give({**singletons(few), **singletons(more, "x")}, seed=seed))
    assert alone.items() <= among.items()


def test_a_new_group_says_when_it_was_first_seen_and_an_old_one_keeps_saying_it():
    given = give({"a": ["1"], "b": ["new"]}, TWO)
    given_at = dict(given.splits.select("group_id", "given_at").iter_rows())
    assert given_at == {"g1": "then", "g2": "then", "g3": "then", given.groups["b"]: "now"}
    assert give({}).splits.is_empty()
    assert give({}, TWO).splits.equals(TWO)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 9), max_size=30), st.integers(0, 20), st.integers(0, 10), st.integers(0, 5))
def test_large_groups_never_pass_a_number(heights: list[int], test: int, validation: int, seed: int):
    rows = {f"r{group}_{n}": [f"t:{group}"] for group, height in enumerate(heights) for n in range(height)}
    given = give(rows, wanted=sizes(test=test, validation=validation), seed=seed)
    split = splits_of(given)
    counted = Counter(split.values())
    left = [height for group, height in enumerate(heights) if split[f"r{group}_0"] == "train"]
    for name, size in (("test", test), ("validation", validation)):
        assert counted[name] <= size
        assert all(height > size - counted[name] for height in left), "what is left to train would not have fitted"


def by_source(common: PostSizes | None = None, **sources: SplitSizes) -> Sizes:
    return Sizes(posts=PostSizes(**(common or PostSizes()).model_dump(exclude={"sources"}), sources=sources))


def held_out(given: Given) -> Counter[str]:
    """The rows in test, by source."""
    return Counter(row.partition(":")[0] for row, split in splits_of(given).items() if split == "test")


E = by_source(psyqa=SplitSizes(test=2000, validation=100), xinli001=SplitSizes(test=2000, validation=0))


def test_a_source_that_is_named_has_its_number_to_the_row_and_the_others_have_theirs():
    """E tests on 2,000 questions of each of two sources. The share: within five standard deviations of the draw."""
    rows = {**singletons(3000, "psyqa:"), **singletons(2500, "xinli001:"), **singletons(5000, "other:")}
    given = give(rows, wanted=E)
    assert (held_out(given)["psyqa"], held_out(given)["xinli001"]) == (2000, 2000)
    assert abs(held_out(given)["other"] - 500) < 5 * 450**0.5
    counted = Counter((row.partition(":")[0], split) for row, split in splits_of(given).items())
    assert (counted["psyqa", "validation"], counted["xinli001", "validation"]) == (100, 0)


def test_the_number_of_a_source_is_filled_up_over_refreshes_also_where_it_is_named_late():
    rows, wanted = singletons(40, "psyqa:"), by_source(psyqa=SplitSizes(test=30, validation=0))
    first = give(rows, wanted=by_source())
    assert 0 < held_out(first)["psyqa"] < 30
    rows |= singletons(100, "psyqa:later") | singletons(50, "b:")
    second = give(rows, first.splits, wanted)
    assert held_out(second)["psyqa"] == 30
    assert splits_of(first).items() <= splits_of(second).items()


def test_a_group_of_several_sources_is_drawn_as_one_of_the_source_of_most_and_counts_for_each():
    def group(name: str, **of: int) -> dict[str, list[str]]:
        return {f"{source}:{name}{n}": [f"t:{name}"] for source, count in of.items() for n in range(count)}

    rows = {**group("x", a=2, b=1), **group("y", a=1, b=2), **group("z", a=1, b=1)}
    rarely, some, none = 1e-9, SplitSizes(test=9, validation=0), SplitSizes(test=0, validation=0)
    assert held_out(give(rows, wanted=by_source(PostSizes(test=rarely), a=some))) == {"a": 2, "b": 1}
    assert held_out(give(rows, wanted=by_source(a=some, b=some))) == {"a": 4, "b": 4}
    assert held_out(give(rows, wanted=by_source(a=some, b=none))) == {}


HELD_OUT = st.builds(
    SplitSizes,
    test=st.one_of(st.integers(0, 12), st.just(0.4)),
    validation=st.one_of(st.integers(0, 6), st.just(0.3)),
)
GROUPS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 4), min_size=1, max_size=3), max_size=25
)


@settings(deadline=None, max_examples=150)
@given(GROUPS, GROUPS, HELD_OUT, HELD_OUT, HELD_OUT, st.integers(0, 3))
def test_no_number_of_a_source_is_passed_and_what_would_fit_is_taken(
    groups: list[dict[str, int]],
    more: list[dict[str, int]],
    common: SplitSizes,
    of_a: SplitSizes,
    of_b: SplitSizes,
    seed: int,
):
    """Groups of rows of several sources, of which a and b are named, over two refreshes."""
    wanted = by_source(PostSizes(**common.model_dump()), a=of_a, b=of_b)
    known, rows = NONE, {}
    for batch, part in enumerate((groups, more)):
        rows |= {
            f"{source}:{batch}.{number}.{n}": [f"t:{batch}.{number}"]
            for number, group in enumerate(part)
            for source, count in group.items()
            for n in range(count)
        }
        given = give(rows, known, wanted, seed)
        before, known, split = known, given.splits, splits_of(given)
        pools = {"a": ("a", of_a), "b": ("b", of_b), "c": ("cd", common)}
        for name in ("test", "validation"):
            held = Counter(row[0] for row, its in split.items() if its == name)
            numbers = {
                pool: getattr(one, name) - sum(held[source] for source in sources)
                for pool, (sources, one) in pools.items()
                if isinstance(getattr(one, name), int)
            }
            assert all(room >= 0 for room in numbers.values())
            for number, group in enumerate(part):
                row = f"{min(group)}:{batch}.{number}.0"
                weights = Counter({pool: sum(group.get(one, 0) for one in its) for pool, (its, _) in pools.items()})
                most = max(weights.values())
                if split[row] == "train" and all(pool in numbers for pool in weights if weights[pool] == most):
                    assert any(weights[pool] > room for pool, room in numbers.items()), "it would have fitted"
    require_same_in_any_order(given, rows, before, random.Random(seed), wanted=wanted, seed=seed)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), HELD_OUT, HELD_OUT, st.integers(0, 5))
def test_a_source_more_and_its_sizes_move_no_row_of_another(
    n_a: int, n_b: int, others: int, of_a: SplitSizes, of_b: SplitSizes, seed: int
):
    rows = {**singletons(n_a, "a:"), **singletons(others, "c:")}
    alone = splits_of(give(rows, wanted=by_source(a=of_a), seed=seed))
    for wanted in (by_source(a=of_a), by_source(a=of_a, b=of_b)):
        among = splits_of(give({**rows, **singletons(n_b, "b:")}, wanted=wanted, seed=seed))
        assert alone.items() <= among.items()
