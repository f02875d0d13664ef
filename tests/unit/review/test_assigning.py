"""Who labels what: two people an item, as much for everybody, repeatable, nobody twice; a third; gold items."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import RequestError
from pipelines.review.assigning import Assigned, assign, assign_third

PEOPLE = [f"p{number:02}" for number in range(20)]
ITEMS = [f"s:{number}#1/1" for number in range(2000)]
GOLD = [f"g:{number}#1/1" for number in range(30)]


def by_item(assigned: list[Assigned], role: str = "annotator") -> dict[str, list[str]]:
    people: defaultdict[str, list[str]] = defaultdict(list)
    for one in assigned:
        if one.role == role:
            people[one.item_id].append(one.annotator)
    return people


def loads(assigned: list[Assigned], people: list[str], role: str = "annotator") -> list[int]:
    count = Counter(one.annotator for one in assigned if one.role == role)
    return [count[person] for person in people]


def spread(numbers: list[int]) -> int:
    return max(numbers) - min(numbers)


@given(st.lists(st.integers(0, 25), min_size=1, max_size=5), st.integers(2, 20), st.integers(0, 3))
def test_two_different_people_an_item_and_as_much_for_everybody_over_all_calls(batches, n_people, seed):
    people, assigned, items = PEOPLE[:n_people], [], []
    for size in batches:
        items += ITEMS[len(items) : len(items) + size]
        new = assign(items, people, seed=seed, earlier=assigned)
        assert new == assign(reversed(items), list(reversed(people)), seed=seed, earlier=assigned[::-1])
        assigned += new
        assert {item: len(set(asked)) for item, asked in by_item(assigned).items()} == dict.fromkeys(items, 2)
        assert len(assigned) == 2 * len(items)
        assert spread(loads(assigned, people)) <= 1


def test_new_items_move_nothing_and_another_seed_everything():
    first = assign(ITEMS[:500], PEOPLE)
    assert assign(ITEMS[:500], PEOPLE, earlier=first) == []
    later = assign(ITEMS, PEOPLE, earlier=first)
    assert {one.item_id for one in later} == set(ITEMS[500:])
    one, other = by_item(first), by_item(assign(ITEMS[:500], PEOPLE, seed=1))
    assert sum(set(one[item]) == set(other[item]) for item in ITEMS[:500]) < 20, "of 190 pairs one is the same"


def test_everybody_meets_everybody():
    """Of 190 pairs over 2,000 items none labels much more together than another: 10.5 in the mean."""
    pairs = Counter(tuple(sorted(asked)) for asked in by_item(assign(ITEMS, PEOPLE)).values())
    assert len(pairs) == 190
    assert max(pairs.values()) < 26


def test_somebody_who_comes_later_gets_as_much_of_what_is_new():
    first = assign(ITEMS[:100], PEOPLE[:4])
    later = assign(ITEMS[:150], PEOPLE[:5], earlier=first)
    assert loads(later, PEOPLE[:5]) == [20] * 5


def test_who_leaves_is_replaced_and_nobody_is_asked_twice():
    first = assign(ITEMS[:100], PEOPLE[:4])
    standing = [one for one in first if one.annotator != "p00"]
    again = assign(ITEMS[:100], PEOPLE[1:4], earlier=standing)
    assert len(again) == 50
    asked = by_item(standing + again)
    assert {len(set(people)) for people in asked.values()} == {2}
    # Somebody who saw an item in another role is not asked about it, and does not count as one of the two.
    seen = [Assigned("s:0#1/1", "p01", "gold")]
    assert by_item(assign(["s:0#1/1"], PEOPLE[:4], earlier=seen))["s:0#1/1"] != []
    assert all("p01" not in by_item(assign(["s:0#1/1"], PEOPLE[:4], seed=n, earlier=seen))["s:0#1/1"] for n in range(9))


def test_gold_items_stand_among_what_everybody_gets():
    assigned = assign([*ITEMS[:190], *GOLD], PEOPLE[:2], gold=GOLD, gold_share=0.05)
    assert loads(assigned, PEOPLE[:2]) == [190, 190], "nobody votes on a gold item"
    assert loads(assigned, PEOPLE[:2], "gold") == [10, 10], "10 of 200 are one of twenty"
    for person in PEOPLE[:2]:
        places = [place for place, one in enumerate(own(assigned, person)) if one.role == "gold"]
        assert 40 < sum(places) / len(places) < 160, "not all first, nor last"
    assert {role for _, _, role in own(assigned, "p00")[:100]} == {"annotator", "gold"}
    # More items need more gold ones, none of them twice; as far as there are any.
    later = assign(ITEMS[:380], PEOPLE[:2], earlier=assigned, gold=GOLD, gold_share=0.05)
    assert loads(later, PEOPLE[:2], "gold") == [10, 10]
    assert {len(set(people)) for people in by_item(assigned + later, "gold").values()} <= {1, 2}
    assert len(set(assigned + later)) == len(assigned) + len(later)
    much = assign(ITEMS[:380], PEOPLE[:2], gold=GOLD, gold_share=0.5)
    assert loads(much, PEOPLE[:2], "gold") == [30, 30]
    assert loads(assign(ITEMS[:10], PEOPLE[:3], gold=GOLD), PEOPLE[:3], "gold") == [1, 1, 1], "some, at the least"
    assert loads(assign(ITEMS[:10], PEOPLE[:3], gold=GOLD, gold_share=0), PEOPLE[:3], "gold") == [0, 0, 0]


def own(assigned: list[Assigned], person: str) -> list[Assigned]:
    """What a person sees, in that order."""
    return [one for one in assigned if one.annotator == person]


def test_a_third_is_none_of_the_two_and_thirds_are_as_many_for_everybody():
    first = assign(ITEMS[:400], PEOPLE)
    voters = {item: people for item, people in by_item(first).items() if item.endswith(("1#1/1", "7#1/1"))}
    thirds = assign_third(voters, PEOPLE, earlier=first)
    assert thirds == assign_third(dict(reversed(voters.items())), PEOPLE[::-1], earlier=first[::-1])
    assert {one.item_id for one in thirds} == set(voters)
    assert {one.role for one in thirds} == {"adjudicator"}
    assert [one for one in thirds if one.annotator in voters[one.item_id]] == []
    assert spread(loads(thirds, PEOPLE, "adjudicator")) <= 1
    assert assign_third(voters, PEOPLE, earlier=[*first, *thirds]) == []


def test_where_there_is_no_third_the_item_waits():
    voters = {"s:0#1/1": ["p00", "p01"], "s:1#1/1": ["p00", "p02"]}
    assert assign_third(voters, PEOPLE[:2]) == [Assigned("s:1#1/1", "p01", "adjudicator")]


def test_what_cannot_be_done_is_refused():
    with pytest.raises(RequestError, match="two people are asked about each item, and there are 1"):
        assign(ITEMS[:1], ["p00", "p00"])
    for share in (-0.1, 1):
        with pytest.raises(RequestError, match="no share of gold items"):
            assign(ITEMS[:1], PEOPLE, gold_share=share)
    assert assign([], []) == []
