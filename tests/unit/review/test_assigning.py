"""Who labels what: two people an item, as much for everybody, repeatable, nobody twice; a third; gold items."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import RequestError
from pipelines.review.assigning import Assigned, assign, assign_known, assign_third, in_one_round, in_order, scene_of

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


def known(gold: list[str], people: list[str], assigned: list[Assigned], share: float = 0.05) -> list[Assigned]:
    return assign_known([], gold, people, assigned, share=share)


def test_gold_items_stand_among_what_everybody_gets():
    votes = assign(ITEMS[:190], PEOPLE[:2])
    gold = known(GOLD, PEOPLE[:2], votes)
    assert loads(votes, PEOPLE[:2]) == [190, 190]
    assert loads(gold, PEOPLE[:2], "gold") == [10, 10], "10 of 200 are one of twenty"
    for person in PEOPLE[:2]:
        places = [at for at, one in enumerate(own(in_order([*votes, *gold]), person)) if one.role == "gold"]
        assert 40 < sum(places) / len(places) < 160, "not all first, nor last"
    # More items need more gold ones, none of them twice; as far as there are any.
    more = assign(ITEMS[:380], PEOPLE[:2], earlier=votes)
    later = known(GOLD, PEOPLE[:2], [*votes, *gold, *more])
    assert loads(later, PEOPLE[:2], "gold") == [10, 10]
    assert len({*gold, *later}) == len(gold) + len(later)
    every = assign(ITEMS[:380], PEOPLE[:2])
    assert loads(known(GOLD, PEOPLE[:2], every, 0.5), PEOPLE[:2], "gold") == [30, 30]
    few = assign(ITEMS[:10], PEOPLE[:3])
    assert loads(known(GOLD, PEOPLE[:3], few), PEOPLE[:3], "gold") == [1, 1, 1], "some, at the least"
    assert known(GOLD, PEOPLE[:3], few, 0) == []


def test_items_to_practise_on_go_to_everybody_first_and_once():
    votes = assign(ITEMS[:20], PEOPLE[:4])
    first = assign_known(GOLD[:2], [], PEOPLE[:4], votes)
    assert loads(first, PEOPLE[:4], "calibration") == [2] * 4
    for person in PEOPLE[:4]:
        assert [one.role for one in own(in_order([*votes, *first]), person)][:3] == ["calibration"] * 2 + ["annotator"]
    assert assign_known(GOLD[:2], [], PEOPLE[:4], [*votes, *first]) == []


DIALOGUES = [f"s:{n}#{number}/{candidate}" for n in range(60) for number in (2, 5) for candidate in (1, 2)]


@given(st.integers(2, 20), st.integers(0, 5))
def test_nobody_sees_two_candidates_of_a_round_where_there_are_people_enough(n_people, seed):
    """They share a reply, which is the source's. Of later rounds, whose history tells what followed, each person sees
    as few as may be, and no earlier one after a later one."""
    people = PEOPLE[:n_people]
    assigned = assign(DIALOGUES, people, seed=seed)
    assert {item: len(set(asked)) for item, asked in by_item(assigned).items()} == dict.fromkeys(DIALOGUES, 2)
    assert spread(loads(assigned, people)) <= 2
    per_round = Counter((one.annotator, scene_of(one.item_id)) for one in assigned)
    per_dialogue = Counter((one.annotator, scene_of(one.item_id)[0]) for one in assigned)
    assert (max(per_round.values()) == 1) == (in_one_round(assigned) == 0) == (n_people >= 4)
    assert in_one_round([], assigned) == 0, "what was asked before is said no more"
    assert max(per_dialogue.values()) <= -(-8 // n_people) + (n_people < 4)
    for person in people:
        seen: dict[str, int] = {}
        for one in own(assigned, person):
            dialogue, number = scene_of(one.item_id)
            assert seen.get(dialogue, 0) <= number
            seen[dialogue] = number


def test_who_adjudicates_has_seen_as_little_of_the_dialogue_as_may_be():
    first = assign(DIALOGUES, PEOPLE)
    voters = {item: people for item, people in by_item(first).items() if item.startswith(("s:1#", "s:2#"))}
    thirds = assign_third(voters, PEOPLE, earlier=first)
    seen = {(one.annotator, scene_of(one.item_id)[0]) for one in first}
    assert not seen & {(one.annotator, scene_of(one.item_id)[0]) for one in thirds}


def test_only_a_candidate_has_a_dialogue():
    assert scene_of("smile:10#3/2") == ("smile:10", 3)
    for item_id in ("psyqa:12", "q#1", "x#y/1", "#"):
        assert scene_of(item_id) == (item_id, 0)


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
    with pytest.raises(RequestError, match="2 people are asked about each item, and there are 1"):
        assign(ITEMS[:1], ["p00", "p00"])
    for share in (-0.1, 1):
        with pytest.raises(RequestError, match="no share of gold items"):
            assign_known([], GOLD, PEOPLE, [], share=share)
    assert assign([], []) == []
