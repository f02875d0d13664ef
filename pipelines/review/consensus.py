"""What people agree on (C): of the votes on a candidate its label, or why there is none.

Two equal votes decide. Where they differ in anything a third person decides: each step by the majority, the preference
where two of three are equal.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import polars as pl

from pipelines.review.assigning import COUNTING, VOTES
from schemas.annotations import CerLabels
from schemas.dropped import Lost, Row
from schemas.ids import candidate_id

STEPS = ("step1", "step2", "step3")
QUESTIONS = (*STEPS, "preference")
KEY = ("dialogue_id", "round", "candidate")


class Waiting(NamedTuple):
    """A candidate that lacks the vote of a second or a third person, and who voted on it."""

    item_id: str
    vote: Literal["second", "third"]
    voters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consensus:
    """Each candidate with votes stands in one of the three.

    `labels` are rows of `cer_labels`; `lost` has the unit `label` and the reasons no_two_agree, no_candidate and
    candidate_changed, as `rewrite.scripts` calls the latter.
    """

    labels: pl.DataFrame
    lost: list[Lost]
    waiting: list[Waiting]


def consensus(votes: pl.DataFrame, current: Mapping[str, str] | None = None) -> Consensus:
    """The consensus of each candidate.

    Args:
        votes: Rows of `cer_votes`. Those on items with a known answer do not count.
        current: The hash of each candidate (`schemas.ids.candidate_id`) as it stands: votes on another version do not
            count. By default there is one version of each.

    Raises ValueError where one person voted twice on a version, where more people voted than `assigning` asks, and,
    without `current`, where there are two versions of a candidate: an import lets none of this in.
    """
    of_candidate: defaultdict[tuple[str, int, int], list[Row]] = defaultdict(list)
    counting = votes.filter(pl.col("role").is_in(COUNTING))
    for vote in counting.sort(*KEY, "annotator").iter_rows(named=True):
        of_candidate[vote["dialogue_id"], vote["round"], vote["candidate"]].append(vote)
    labels: list[Row] = []
    lost: list[Lost] = []
    waiting: list[Waiting] = []
    for key, given in of_candidate.items():
        item_id = candidate_id(*key)
        current_votes = [vote for vote in given if current is None or vote["labelled"] == current.get(item_id)]
        if current is not None and not current_votes:
            lost.append(Lost("label", item_id, "candidate_changed" if item_id in current else "no_candidate"))
            continue
        result = _decide(item_id, current_votes)
        if isinstance(result, Waiting):
            waiting.append(result)
        elif isinstance(result, Lost):
            lost.append(result)
        else:
            labels.append(dict(zip(KEY, key, strict=True)) | result)
    frame = pl.DataFrame(labels, schema=CerLabels.polars_schema())
    return Consensus(CerLabels.validate(frame), lost, waiting)


def _decide(item_id: str, votes: Sequence[Row]) -> Row | Lost | Waiting:
    """The label that the votes on one version of a candidate give, or what hinders it."""
    of_role = {role: [vote for vote in votes if vote["role"] == role] for role in COUNTING}
    two, thirds = of_role["annotator"], of_role["adjudicator"]
    voters = tuple(vote["annotator"] for vote in (*two, *thirds))
    if len(set(voters)) < len(voters) or len(two) > VOTES or len(thirds) > 1:
        raise ValueError(
            f"{item_id} has {len(two)} votes and {len(thirds)} of adjudicators, of {len(set(voters))} people"
        )
    if len({vote["labelled"] for vote in votes}) > 1:
        raise ValueError(f"two versions of {item_id} were labelled")
    if len(two) < VOTES:
        return Waiting(item_id, "second", voters)
    if all(two[0][question] == two[1][question] for question in QUESTIONS):
        return _label(two, "agreed")
    if not thirds:
        return Waiting(item_id, "third", voters)
    label = _label([*two, *thirds], "adjudicated")
    if label["preference"] is None:
        return Lost("label", item_id, "no_two_agree", "preference")
    return label


def _label(votes: Sequence[Row], by: Literal["agreed", "adjudicated"]) -> Row:
    """Each answer that two votes or more give; of the preference None where no two agree."""
    answers: dict[str, Any] = {}
    for question in QUESTIONS:
        [(answer, count)] = Counter(vote[question] for vote in votes).most_common(1)
        answers[question] = answer if count > 1 else None
    who = [vote["annotator"] for vote in votes]
    return {"labelled": votes[0]["labelled"], **answers, "annotators": who, "consensus": by}
