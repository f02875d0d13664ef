"""Who is asked about what: two people an item (C), a third where these differ, and items with a known answer.

Everything follows from ids, seed and what was assigned before. What was assigned stays: new items are given to people
beside it. In which order somebody sees the texts of an item is not decided here.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Literal, NamedTuple

from pipelines.errors import RequestError
from schemas.ids import unit_interval

Role = Literal["annotator", "adjudicator", "gold", "calibration"]
COUNTING: tuple[Role, ...] = ("annotator", "adjudicator")  # the others are asked what is known
VOTES = 2  # of each item, before anybody adjudicates (C)
GOLD_SHARE = 0.05  # of what a person has, as far as there are gold items: ours


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
    votes: int = VOTES,
) -> list[Assigned]:
    """Gives every item to `votes` people.

    Who sees two candidates of a round sees which reply they share, and a later round's history tells what followed an
    earlier one. So each candidate goes to whoever has seen least of its round, then of its dialogue, then has least to
    do: of items that share nothing everybody gets as many as anybody else, but for one, also over several calls with
    the same people, where `earlier` holds what came before. Somebody who comes later gets as much of what is new, and
    no more.

    Args:
        item_ids: The items. One that was assigned before needs only the people who are missing.
        people: Pseudonyms of those who label.
        seed: Of the draws.
        earlier: What was assigned before, and still stands.
        votes: How many people are asked about each item.

    Returns what is new, as `in_order` has it. Raises RequestError for fewer than `votes` people.
    """
    had = _people_of(earlier)
    asked_before = Counter(one.item_id for one in earlier if one.role == "annotator")
    load = _Load(people, earlier, "annotator")
    new: list[Assigned] = []
    for item_id in sorted(set(item_ids), key=lambda one: (unit_interval(seed, "item", scene_of(one)[0]), one)):
        for _ in range(votes - asked_before[item_id]):
            person = load.take(item_id, had[item_id], seed)
            if person is None:
                raise RequestError(
                    f"{votes} people are asked about each item, and there are {len(set(people))}",
                    hint="name more people",
                )
            had[item_id].add(person)
            new.append(Assigned(item_id, person))
    return in_order(new, seed)


def assign_all(
    item_ids: Iterable[str], people: Collection[str], *, seed: int = 0, earlier: Collection[Assigned] = ()
) -> list[Assigned]:
    """Gives each item to everybody (M, E: every rater ranks all). Returns what is new, as `in_order` has it."""
    had = _people_of(earlier)
    wanted = set(item_ids)
    return in_order([Assigned(one, person) for person in set(people) for one in wanted if person not in had[one]], seed)


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

    Returns what is new, as `in_order` has it. An item of which everybody has seen a version is left out: it waits until
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
    return in_order(new, seed)


def assign_known(
    calibration: Collection[str],
    gold: Collection[str],
    people: Iterable[str],
    assigned: Collection[Assigned],
    *,
    seed: int = 0,
    share: float = GOLD_SHARE,
) -> list[Assigned]:
    """Gives items with a known answer: those of `calibration` to everybody, and of `gold` so many that they are the
    `share` of what a person has, all calls together: rounded up, as far as there are any.

    `assigned` is all that stands or is new. Returns what is new, as `in_order` has it. Raises RequestError for a share
    outside [0, 1).
    """
    if not 0 <= share < 1:
        raise RequestError(f"{share} is no share of gold items", hint="a number from 0 on, below 1")
    votes = Counter(one.annotator for one in assigned if one.role in COUNTING)
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for one in assigned:
        if one.role not in COUNTING:
            seen[one.annotator].add(one.item_id)
    new = []
    for person in sorted(set(people)):
        new += [Assigned(one, person, "calibration") for one in sorted(set(calibration) - seen[person])]
        # Of n votes and g gold items the share g / (n + g) is at least `share`.
        needed = ceil(round(votes[person] * share / (1 - share), 9))
        left = _drawn(set(gold) - seen[person], seed, "gold", person)
        had = len(seen[person] & set(gold))
        new += [Assigned(item_id, person, "gold") for item_id in left[: max(0, needed - had)]]
    return in_order(new, seed)


def in_order(assigned: Iterable[Assigned], seed: int = 0) -> list[Assigned]:
    """A person after another, in the order in which each is to see it: calibration first, then drawn, but for the
    rounds of a dialogue, of which an earlier one comes before a later one.
    """
    own: defaultdict[str, list[Assigned]] = defaultdict(list)
    for one in assigned:
        own[one.annotator].append(one)
    listed: list[Assigned] = []
    for _, theirs in sorted(own.items()):
        listed += sorted(one for one in theirs if one.role == "calibration")
        rest = sorted(
            (one for one in theirs if one.role != "calibration"),
            key=lambda one: (unit_interval(seed, "shown", one.annotator, one.item_id), one),
        )
        scenes: defaultdict[str, list[Assigned]] = defaultdict(list)
        for one in sorted(rest, key=lambda one: scene_of(one.item_id)[1], reverse=True):
            scenes[scene_of(one.item_id)[0]].append(one)
        listed += [scenes[scene_of(one.item_id)[0]].pop() for one in rest]
    return listed


def in_one_round(new: Collection[Assigned], earlier: Collection[Assigned] = ()) -> int:
    """How many new votes are asked of people who are asked about another candidate of the same round as well."""
    rounds = Counter((one.annotator, scene_of(one.item_id)) for one in (*new, *earlier) if one.role in COUNTING)
    scenes = ((one.annotator, scene_of(one.item_id)) for one in new if one.role in COUNTING)
    return sum(rounds[scene] > 1 and scene[1][1] > 0 for scene in scenes)


def scene_of(item_id: str) -> tuple[str, int]:
    """The dialogue and the round (from 1) of a candidate; any other item is its own, and the round is 0."""
    dialogue_id, mark, rest = item_id.rpartition("#")
    number = rest.partition("/")[0]
    return (dialogue_id, int(number)) if mark and "/" in rest and number.isdecimal() else (item_id, 0)


class _Load:
    """How much each person has to do, in this call and in all, and what they have seen of each dialogue."""

    def __init__(self, people: Collection[str], earlier: Iterable[Assigned], role: Role) -> None:
        earlier = list(earlier)
        self._before = Counter(one.annotator for one in earlier if one.role == role)
        self._now = dict.fromkeys(sorted(set(people)), 0)
        self._dialogues: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._rounds: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        for one in earlier:
            self._note(one.item_id, one.annotator)

    def take(self, item_id: str, without: Collection[str], seed: int) -> str | None:
        """Whoever has seen least of the round and of the dialogue, and of these has least to do, drawn by item where
        several have; None where nobody is left.
        """
        able = [person for person in self._now if person not in without]
        if not able:
            return None
        scene = scene_of(item_id)
        of_round, of_dialogue, now, before = self._rounds[scene], self._dialogues[scene[0]], self._now, self._before
        amounts = {
            person: (of_round[person], of_dialogue[person], now[person], before[person] + now[person])
            for person in able
        }
        least = min(amounts.values())
        ties = [person for person in able if amounts[person] == least]
        person = min(ties, key=lambda person: unit_interval(seed, "who", item_id, person))
        self._now[person] += 1
        self._note(item_id, person)
        return person

    def _note(self, item_id: str, person: str) -> None:
        scene = scene_of(item_id)
        self._rounds[scene][person] += 1
        self._dialogues[scene[0]][person] += 1


def _people_of(assigned: Iterable[Assigned]) -> defaultdict[str, set[str]]:
    people: defaultdict[str, set[str]] = defaultdict(set)
    for one in assigned:
        people[one.item_id].add(one.annotator)
    return people


def _drawn(item_ids: Iterable[str], *parts: str | int) -> Sequence[str]:
    """In an order that follows from `parts` and the ids."""
    return sorted(item_ids, key=lambda item_id: (unit_interval(*parts, item_id), item_id))
