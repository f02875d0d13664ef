"""Answers that should score lower than a question's own, of E's three kinds (E eq. 5).

All are drawn within the split and the language of the question, on rings (`release.rings`), so that a new answer moves
the few draws that would have met it. What a new row can move besides is which sentences are frequent in train answers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from pipelines.settings import Training
from pipelines.trainsets.generic import generic_sentences
from pipelines.trainsets.rings import Ring
from schemas.ids import unit_interval


class Place(NamedTuple):
    """Where a question stands: nothing is drawn for it from elsewhere."""

    split: str
    lang: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that may be drawn. `sentiment`, and who judged it, is None where its emotion is not known."""

    answer_id: str
    text: str
    role: str
    group_id: str
    cluster_id: str
    sentiment: str | None
    judged_by: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its answers, and the one that is the positive."""

    post_id: str
    text: str
    group_id: str
    place: Place
    answers: Sequence[Answer]
    positive: Answer

    def foreign(self, answer: Answer) -> bool:
        """Whether an answer is of another group, and none of its own answers is nearly the same."""
        return answer.group_id != self.group_id and all(own.cluster_id != answer.cluster_id for own in self.answers)


@dataclass(frozen=True, slots=True)
class Negative:
    """A negative: its text, the answers whose words it is, and what judged them."""

    text: str
    answer_ids: list[str]
    judged_by: frozenset[str] = frozenset()


class Missing(NamedTuple):
    """Why a question has no negative of a kind."""

    reason: str
    detail: str


Draw = Callable[[Asked], Negative | Missing]


def draws(asked: Sequence[Asked], settings: Training, seed: int) -> dict[str, Draw]:
    """What draws the negative of a question, by kind.

    `mismatched_emotion`: an answer whose sentiment is another than the positive's. `generic`: put together from generic
    sentences. `other_answer`: any. The answers are those of `asked`; a negative is never of the question's own group.
    Missing are no_emotion (the positive's is not known), no_mismatch, few_generic and no_other_answer.
    """
    pool: dict[Place, list[Answer]] = defaultdict(list)
    for question in asked:
        pool[question.place] += question.answers
    return {
        "mismatched_emotion": _mismatched(pool, seed),
        "generic": _generic(asked, settings, seed),
        "other_answer": _other(pool, seed),
    }


def _mismatched(pool: Mapping[Place, Sequence[Answer]], seed: int) -> Draw:
    """A ring a sentiment: the nearest on the rings of the other ones is what one ring of all of them would give."""
    rings = {
        place: {
            sentiment: _ring([one for one in answers if one.sentiment == sentiment], seed, "mismatched_emotion")
            for sentiment in sorted({one.sentiment for one in answers if one.sentiment})
        }
        for place, answers in pool.items()
    }

    def draw(question: Asked) -> Negative | Missing:
        fits = question.positive.sentiment
        if fits is None:
            return Missing("no_emotion", "nobody has said what the positive conveys")
        start = unit_interval(seed, "mismatched_emotion", question.post_id)
        others = (ring for sentiment, ring in rings[question.place].items() if sentiment != fits)
        found = [drawn for ring in others if (drawn := ring.draw(start, question.foreign))]
        if not found:
            return Missing("no_mismatch", f"every answer of another question is {fits} as well")
        answer = min(found, key=lambda drawn: drawn.distance).item
        judges = frozenset(one.judged_by for one in (answer, question.positive) if one.judged_by)
        return Negative(answer.text, [answer.answer_id], judges)

    return draw


def _generic(asked: Iterable[Asked], settings: Training, seed: int) -> Draw:
    """Every sentence of a negative is a draw of its own, among those that none of the question's own answers says."""
    said = [
        (*question.place, question.group_id, answer.answer_id, answer.text)
        for question in asked
        for answer in question.answers
    ]
    columns = dict.fromkeys(("split", "lang", "group_id", "answer_id", "text"), pl.String)
    found: dict[Place, list[dict[str, str]]] = defaultdict(list)
    for row in generic_sentences(pl.DataFrame(said, schema=columns, orient="row"), settings).iter_rows(named=True):
        found[Place(row["split"], row["lang"])].append(row)
    rings = {
        place: Ring(((row["sentence"], row) for row in rows), seed, "place", "generic") for place, rows in found.items()
    }

    def draw(question: Asked) -> Negative | Missing:
        taken: list[dict[str, str]] = []

        def fits(row: dict[str, str]) -> bool:
            own = row["group_id"] == question.group_id or any(row["text"] in one.text for one in question.answers)
            return not own and row not in taken

        for number in range(settings.generic_sentences):
            start = unit_interval(seed, "generic", question.post_id, number)
            drawn = rings[question.place].draw(start, fits) if question.place in rings else None
            if drawn is None:
                return Missing("few_generic", f"{number} sentences; {settings.generic_sentences} make an answer")
            taken.append(drawn.item)
        return Negative("".join(row["text"] for row in taken), [row["answer_id"] for row in taken])

    return draw


def _other(pool: Mapping[Place, Sequence[Answer]], seed: int) -> Draw:
    rings = {place: _ring(answers, seed, "other_answer") for place, answers in pool.items()}

    def draw(question: Asked) -> Negative | Missing:
        start = unit_interval(seed, "other_answer", question.post_id)
        drawn = rings[question.place].draw(start, question.foreign)
        if drawn is None:
            return Missing("no_other_answer", "no other question of its split and language has one")
        return Negative(drawn.item.text, [drawn.item.answer_id])

    return draw


def _ring(answers: Iterable[Answer], seed: int, kind: str) -> Ring[Answer]:
    return Ring(((answer.answer_id, answer) for answer in answers), seed, "place", kind)
