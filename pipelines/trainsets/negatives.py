"""Answers that should score lower than a question's own, of E's three kinds (E eq. 5).

A sentence is generic where answers to many questions of the train split hold it: 一切都会好起来的。 E gives no
threshold: ours is a number of questions (groups that hang together count once) and a share: the larger counts.

All are drawn within the split and the language of the question, by consistent hashing (`HashRing`), so that a new
answer moves the few draws that would have met it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import polars as pl

from pipelines.settings import Training
from pipelines.text import keys
from schemas.ids import unit_interval

Item = TypeVar("Item")


class Place(NamedTuple):
    """The split and language of a question: nothing is drawn for it from another place."""

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
class Question:
    """A question with its answers, and the one that is the positive."""

    post_id: str
    text: str
    group_id: str
    place: Place
    answers: Sequence[Answer]
    positive: Answer

    def foreign(self, answer: Answer) -> bool:
        """Whether an answer is of another group, and none of the question's answers is nearly the same."""
        return answer.group_id != self.group_id and all(own.cluster_id != answer.cluster_id for own in self.answers)


@dataclass(frozen=True, slots=True)
class Negative:
    """A negative: its text, the answers that it was taken from, and what judged them."""

    text: str
    answer_ids: list[str]
    judged_by: frozenset[str] = frozenset()


class Missing(NamedTuple):
    """Why a question has no negative of a kind."""

    reason: str
    detail: str


class HashRing(Generic[Item]):
    """Items on a circle, each at a place that follows from its id alone (consistent hashing, Karger et al., STOC 1997).

    A draw starts at some place and takes the first item onwards that fits. A new item is taken only by draws that would
    have passed it, and one that is gone is missed only by those that took it: of n items about 1/n of all draws move.
    Some items are drawn more often than others, as the gaps before them are wider.
    """

    def __init__(self, items: Iterable[tuple[str, Item]], *salt: str | int) -> None:
        """`items` come with their ids; `salt` names the circle, so that the same items lie elsewhere on another one."""
        placed = [(unit_interval(*salt, item_id), item_id, item) for item_id, item in items]
        placed.sort(key=itemgetter(0, 1))
        self._places = [place for place, _, _ in placed]
        self._items = [item for _, _, item in placed]

    def draw(self, start: float, fits: Callable[[Item], bool]) -> tuple[float, Item] | None:
        """How far from `start` (0 … 1) onwards the first item is that fits, and the item; None where none does."""
        first = bisect_left(self._places, start)
        for number in range(first, first + len(self._items)):
            item = self._items[number % len(self._items)]
            if fits(item):
                return (self._places[number % len(self._items)] - start) % 1.0, item
        return None


Draw = Callable[[Question], Negative | Missing]


def draws(questions: Sequence[Question], settings: Training, seed: int) -> dict[str, Draw]:
    """The functions that draw the negative of a question, by kind.

    `mismatched_emotion`: an answer whose sentiment differs from the positive's. `generic`: put together from generic
    sentences. `other_answer`: any. The answers are those of `questions`; a negative is never of the question's own
    group. Missing are no_emotion (the positive's is not known), no_mismatch, few_generic and no_other_answer.
    """
    answers: dict[Place, list[Answer]] = defaultdict(list)
    for question in questions:
        answers[question.place] += question.answers
    return {
        "mismatched_emotion": _mismatched(answers, seed),
        "generic": _generic(questions, settings, seed),
        "other_answer": _other(answers, seed),
    }


def _mismatched(answers: dict[Place, list[Answer]], seed: int) -> Draw:
    """A ring a sentiment: the nearest on the rings of the other ones is what one ring of all of them would give."""
    rings = {
        place: {
            sentiment: _ring([one for one in here if one.sentiment == sentiment], seed, "mismatched_emotion")
            for sentiment in sorted({one.sentiment for one in here if one.sentiment})
        }
        for place, here in answers.items()
    }

    def draw(question: Question) -> Negative | Missing:
        own = question.positive.sentiment
        if own is None:
            return Missing("no_emotion", "nobody has said what the positive conveys")
        start = unit_interval(seed, "mismatched_emotion", question.post_id)
        others = (ring for sentiment, ring in rings[question.place].items() if sentiment != own)
        candidates = [drawn for ring in others if (drawn := ring.draw(start, question.foreign))]
        if not candidates:
            return Missing("no_mismatch", f"every answer of another question is {own} as well")
        _, answer = min(candidates, key=itemgetter(0))
        judges = frozenset(one.judged_by for one in (answer, question.positive) if one.judged_by)
        return Negative(answer.text, [answer.answer_id], judges)

    return draw


def _generic(questions: Iterable[Question], settings: Training, seed: int) -> Draw:
    """Each sentence of a negative is a separate draw, among those that none of the question's answers contains."""
    answers = [
        (*question.place, question.group_id, answer.answer_id, answer.text)
        for question in questions
        for answer in question.answers
    ]
    columns = dict.fromkeys(("split", "lang", "group_id", "answer_id", "text"), pl.String)
    sentences: dict[Place, list[dict[str, str]]] = defaultdict(list)
    for row in generic_sentences(pl.DataFrame(answers, schema=columns, orient="row"), settings).iter_rows(named=True):
        sentences[Place(row["split"], row["lang"])].append(row)
    rings = {
        place: HashRing(((row["sentence"], row) for row in rows), seed, "place", "generic")
        for place, rows in sentences.items()
    }

    def draw(question: Question) -> Negative | Missing:
        taken: list[dict[str, str]] = []

        def fits(row: dict[str, str]) -> bool:
            own = row["group_id"] == question.group_id or any(row["text"] in one.text for one in question.answers)
            return not own and row not in taken

        for number in range(settings.generic_sentences):
            start = unit_interval(seed, "generic", question.post_id, number)
            drawn = rings[question.place].draw(start, fits) if question.place in rings else None
            if drawn is None:
                return Missing("few_generic", f"{number} sentences; {settings.generic_sentences} make an answer")
            taken.append(drawn[1])
        return Negative("".join(row["text"] for row in taken), [row["answer_id"] for row in taken])

    return draw


def _other(answers: dict[Place, list[Answer]], seed: int) -> Draw:
    rings = {place: _ring(here, seed, "other_answer") for place, here in answers.items()}

    def draw(question: Question) -> Negative | Missing:
        start = unit_interval(seed, "other_answer", question.post_id)
        drawn = rings[question.place].draw(start, question.foreign)
        if drawn is None:
            return Missing("no_other_answer", "no other question of its split and language has one")
        return Negative(drawn[1].text, [drawn[1].answer_id])

    return draw


def _ring(answers: Iterable[Answer], seed: int, kind: str) -> HashRing[Answer]:
    return HashRing(((answer.answer_id, answer) for answer in answers), seed, "place", kind)


# A sentence ends with its mark, and what closes a quotation behind it, or with its line. The full stop of English is no
# mark here: E's questions are Chinese.
_SENTENCE = r"[^。！？!?；;…\n]+[。！？!?；;…]*[”’」』）)]*"
_ENDS = r"[。！？!?；;…”’」』）)]$"
# Of fewer characters a sentence says nothing: 嗯嗯。 是的。 ours.
_LEAST_CHARS = 4
_MARKS = r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$"


def sentences(answers: pl.DataFrame) -> pl.DataFrame:
    """The sentences of answers, each once an answer.

    Takes `answer_id`, `text`, and any other columns.

    Returns:
        The same columns, `text` being a sentence, ended where it was not, and `sentence`, its key: without white space,
        case and outer marks.
    """
    split = answers.with_columns(pl.col("text").str.extract_all(_SENTENCE)).explode("text", empty_as_null=False)
    text = pl.col("text").str.strip_chars()
    keyed = split.with_columns(
        text=pl.when(text.str.contains(_ENDS)).then(text).otherwise(text + "。"),
        sentence=keys.key(pl.col("text")).str.replace_all(_MARKS, ""),
    )
    telling = keyed.filter(pl.col("sentence").str.len_chars() >= _LEAST_CHARS)
    return telling.unique(["answer_id", "sentence"], keep="first", maintain_order=True)


def generic_sentences(answers: pl.DataFrame, settings: Training) -> pl.DataFrame:
    """The generic sentences of each split and language, as they stand in answers of that split.

    Takes `answer_id`, `group_id`, `split`, `lang`, `text`.

    Returns:
        `split`, `lang`, `sentence` (its key), and `group_id`, `answer_id`, `text` as it was written in one of the
        answers that hold it, the first by id; sorted. What is frequent in the train split and stands in no answer of
        another one is not generic there.
    """
    written = sentences(answers.select("answer_id", "group_id", "split", "lang", "text").sort("answer_id"))
    n_groups = pl.col("group_id").n_unique()
    train = answers.filter(split="train").group_by("lang").agg(least=(settings.generic_share * n_groups).ceil())
    counted = written.filter(split="train").group_by("lang", "sentence").agg(met=n_groups).join(train, on="lang")
    least = pl.max_horizontal("least", pl.lit(settings.generic_questions))
    frequent = counted.filter(pl.col("met") >= least).select("lang", "sentence")
    generic = written.join(frequent, on=["lang", "sentence"]).sort("answer_id")
    once = generic.unique(["split", "lang", "sentence"], keep="first", maintain_order=True)
    return once.select("split", "lang", "group_id", "sentence", "text", "answer_id").sort("split", "lang", "sentence")
