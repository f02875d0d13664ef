"""Who is asked about what (C): two people an item, a third where these differ, and items with a known answer.

Everything follows from ids, seed and what was assigned before. What was assigned stays: new items are given to people
beside it. In which order somebody sees the texts of an item is not decided here.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Literal, NamedTuple

from pipelines.errors import RequestError
from schemas.ids import unit_interval

Role = Literal["annotator", "adjudicator", "gold"]
VOTES = 2  # of each item, before anybody adjudicates (C)


class Assigned(NamedTuple):
    """Who is asked about an item, and as what."""

    item_id: str
    annotator: str
    role: Role = "annotator"


def assign(
    item_ids: Iterable[str],
    people: Collection[str],
    *,
    seed: int = 0,
    earlier: Collection[Assigned] = (),
    gold: Collection[str] = (),
    gold_share: float = 0.05,
) -> list[Assigned]:
    """Gives every item to two people, and to every person some gold items.

    Everybody gets as many of the items as anybody else, but for one; so it stays over several calls with the same
    people, where `earlier` holds what came before. Somebody who comes later gets as much of what is new, and no more.

    Args:
        item_ids: The items. One that was assigned before needs only the people who are missing.
        people: Pseudonyms of those who label.
        seed: Of the draws.
        earlier: What was assigned before, and still stands.
        gold: Ids of items with a known answer. Nobody votes on them.
        gold_share: The share of gold items among what a person has, all calls together: rounded up, as far as there
            are gold items. 0: none.

    Returns what is new, a person after another, in the order in which each is to see it: gold items stand anywhere.

    Raises RequestError for fewer than two people, or a share outside [0, 1).
    """
    if not 0 <= gold_share < 1:
        raise RequestError(f"{gold_share} is no share of gold items", hint="a number from 0 on, below 1")
    known = set(gold)
    had = _people_of(earlier)
    votes = Counter(one.item_id for one in earlier if one.role == "annotator")
    load = _Load(people, earlier, "annotator")
    new: list[Assigned] = []
    for item_id in _drawn(set(item_ids) - known, seed, "item"):
        asked = had[item_id]
        for _ in range(VOTES - votes[item_id]):
            person = load.take(item_id, asked, seed)
            if person is None:
                raise RequestError(
                    f"two people are asked about each item, and there are {len(set(people))}",
                    hint="name more people",
                )
            asked.add(person)
            new.append(Assigned(item_id, person))
    new += _of_gold(known, [*earlier, *new], people, seed, gold_share)
    return sorted(new, key=lambda one: (one.annotator, unit_interval(seed, "shown", one.annotator, one.item_id)))


def assign_third(
    voters: Mapping[str, Collection[str]],
    people: Collection[str],
    *,
    seed: int = 0,
    earlier: Collection[Assigned] = (),
) -> list[Assigned]:
    """Gives each item on which two votes differ to a third person, as evenly as that allows.

    Args:
        voters: Who voted on each of these items (`Consensus.waiting` names both).
        people: Pseudonyms of those who may adjudicate.
        seed: Of the draws.
        earlier: What was assigned before, and still stands: an item with an adjudicator gets no other.

    Returns what is new, as `assign` does. An item of which everybody has seen a version is left out: it waits until
    there is somebody else.
    """
    had = _people_of(earlier)
    done = {one.item_id for one in earlier if one.role == "adjudicator"}
    load = _Load(people, earlier, "adjudicator")
    new = []
    for item_id in _drawn(set(voters) - done, seed, "third"):
        person = load.take(item_id, had[item_id] | set(voters[item_id]), seed)
        if person is not None:
            new.append(Assigned(item_id, person, "adjudicator"))
    return sorted(new, key=lambda one: (one.annotator, unit_interval(seed, "shown", one.annotator, one.item_id)))


class _Load:
    """How much each person has to do: in this call, and in all."""

    def __init__(self, people: Collection[str], earlier: Iterable[Assigned], role: Role) -> None:
        self._before = Counter(one.annotator for one in earlier if one.role == role)
        self._now = dict.fromkeys(sorted(set(people)), 0)

    def take(self, item_id: str, without: Collection[str], seed: int) -> str | None:
        """Whoever has least to do, drawn by item where several have; None where nobody is left."""
        able = [person for person in self._now if person not in without]
        if not able:
            return None
        least = min(map(self._of, able))
        ties = [person for person in able if self._of(person) == least]
        person = min(ties, key=lambda person: unit_interval(seed, "who", item_id, person))
        self._now[person] += 1
        return person

    def _of(self, person: str) -> tuple[int, int]:
        return self._now[person], self._before[person] + self._now[person]


def _of_gold(
    gold: Collection[str], assigned: Sequence[Assigned], people: Iterable[str], seed: int, share: float
) -> list[Assigned]:
    votes: Counter[str] = Counter()
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for one in assigned:
        if one.role == "gold":
            seen[one.annotator].add(one.item_id)
        else:
            votes[one.annotator] += 1
    new = []
    for person in sorted(set(people)):
        # Of n votes and g gold items the share g / (n + g) is at least `share`.
        needed = ceil(round(votes[person] * share / (1 - share), 9))
        left = _drawn(set(gold) - seen[person], seed, "gold", person)
        new += [Assigned(item_id, person, "gold") for item_id in left[: max(0, needed - len(seen[person]))]]
    return new


def _people_of(assigned: Iterable[Assigned]) -> defaultdict[str, set[str]]:
    people: defaultdict[str, set[str]] = defaultdict(set)
    for one in assigned:
        people[one.item_id].add(one.annotator)
    return people


def _drawn(item_ids: Iterable[str], *parts: str | int) -> list[str]:
    """In an order that follows from `parts` and the ids."""
    return sorted(item_ids, key=lambda item_id: (unit_interval(*parts, item_id), item_id))
