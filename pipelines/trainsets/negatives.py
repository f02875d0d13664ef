"""Answers that should score lower than a question's own, of E's three kinds (E eq. 5).

E says "mismatched emotions" and no more. Ours: an answer to a question of the same topic whose seeker feels something
else (`mismatched`): it fits the subject, and not the person. What an answer conveys is no measure: care and calm may
both be right.

A sentence is generic where answers to many questions of the train split hold it: 一切都会好起来的。 E gives no
threshold: ours is a number of questions (groups that hang together count once) and a share: the larger counts.

All are drawn within the split and the language of the question, by consistent hashing (`HashRing`), so that a new
answer moves the few draws that would have met it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import polars as pl

from pipelines.core.spill import in_batches, spilled, spilled_by_slices
from pipelines.settings import Training
from pipelines.text import keys
from pipelines.text.nearness import cosine, wording
from schemas.ids import unit_interval
from schemas.labels import SENTIMENT_OF

Item = TypeVar("Item")
# Of so many answers to questions of other topics the one whose question is nearest is taken; ours.
_COMPARED = 50


class Place(NamedTuple):
    """The split and language of a question: nothing is drawn for it from another place."""

    split: str
    lang: str


class Felt(NamedTuple):
    """What a seeker feels: a label of EMOTIONS, and how strongly, 1–5; None in rows of before that was asked."""

    emotion: str
    intensity: int | None


def mismatched(one: Felt, other: Felt) -> bool:
    """Whether two seekers feel differently: by the label and by the intensity. Where one of the intensities is not
    known, by the label and its sentiment.
    """
    if one.intensity is None or other.intensity is None:
        return SENTIMENT_OF[one.emotion] != SENTIMENT_OF[other.emotion]
    return one.emotion != other.emotion and one.intensity != other.intensity


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a question: its topic, what its seeker feels, and who judged that; None where nobody has."""

    text: str
    topic: str | None
    felt: Felt | None
    judged_by: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that may be drawn, and the question that it answers. `meets` is the emotion that it meets or conveys,
    None where nobody has judged it.
    """

    answer_id: str
    text: str
    role: str
    group_id: str
    cluster_id: str
    asked: Asked
    meets: str | None
    judged_by: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answers, and the one that is the positive."""

    post_id: str
    asked: Asked
    group_id: str
    place: Place
    answers: Sequence[Answer]
    positive: Answer

    def foreign(self, answer: Answer) -> bool:
        """Whether an answer is of another group, and none of the question's answers is nearly the same."""
        return answer.group_id != self.group_id and all(own.cluster_id != answer.cluster_id for own in self.answers)

    def same_topic(self, answer: Answer) -> bool | None:
        """Whether an answer is to a question of this one's topic; None where one of the two has no topic."""
        topics = (self.asked.topic, answer.asked.topic)
        return None if None in topics else topics[0] == topics[1]


@dataclass(frozen=True, slots=True)
class Negative:
    """A negative: its text, the answers that it was taken from, what judged them, and whether it is an answer to a
    question of the same topic; None where that is not known.
    """

    text: str
    answer_ids: list[str]
    judged_by: frozenset[str] = frozenset()
    same_topic: bool | None = None


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

    def onwards(self, start: float) -> Iterator[tuple[float, Item]]:
        """Every item, once, with how far it is from `start` (0 … 1) onwards, the nearest first."""
        for number in self._around(start):
            yield (self._places[number] - start) % 1.0, self._items[number]

    def draw(self, start: float, fits: Callable[[Item], bool]) -> Item | None:
        """The first item from `start` onwards that fits; None where none does."""
        return next((item for item in map(self._items.__getitem__, self._around(start)) if fits(item)), None)

    def _around(self, start: float) -> range:
        first = bisect_left(self._places, start)
        return range(first - len(self._places), first)  # a list counts from its end where a number is negative


Draw = Callable[[Question], Negative | Missing]


def draws(questions: Sequence[Question], settings: Training, seed: int, scratch: Path | None = None) -> dict[str, Draw]:
    """The functions that draw the negative of a question, by kind.

    `mismatched_emotion`: an answer to a question of the same, else of the nearest topic, whose seeker feels something
    else. `generic`: put together from generic sentences. `other_answer`: any. The answers are those of `questions`; a
    negative is never of the question's own group. Missing are no_emotion (what the seeker feels is not known),
    no_mismatch, few_generic and no_other_answer. `scratch`: where the sentences of all answers are kept
    (`pipelines.core.spill`).
    """
    answers: dict[Place, list[Answer]] = defaultdict(list)
    for question in questions:
        answers[question.place] += question.answers
    return {
        "mismatched_emotion": _mismatched(answers, seed),
        "generic": _generic(questions, settings, seed, scratch),
        "other_answer": _other(answers, seed),
    }


Rings = Mapping[Felt, HashRing[Answer]]


def _mismatched(answers: dict[Place, list[Answer]], seed: int) -> Draw:
    """An answer to a question of the same topic whose seeker feels something else (`mismatched`), and that does not
    meet the emotion of this one all the same. Where the topic has none, or is not known: of the first `_COMPARED` such
    answers to any question, the one whose question is nearest by its wording (`nearness.cosine`).

    A ring for every feeling, of each topic and of all: their items in order are those of one ring.
    """
    rings: dict[Place, dict[str | None, Rings]] = {}
    for place, here in answers.items():
        by_topic: dict[str | None, list[Answer]] = defaultdict(list)
        for answer in here:
            for topic in {answer.asked.topic, None}:  # None: of all
                by_topic[topic].append(answer)
        rings[place] = {topic: _by_feeling(some, seed) for topic, some in by_topic.items()}

    def draw(question: Question) -> Negative | Missing:
        felt, topic = question.asked.felt, question.asked.topic
        if felt is None:
            return Missing("no_emotion", "nobody has said what the seeker feels")

        def others(rings: Rings) -> Iterator[Answer]:
            start = unit_interval(seed, "mismatched_emotion", question.post_id)
            differing = (ring.onwards(start) for other, ring in rings.items() if mismatched(felt, other))
            for _, answer in merge(*differing, key=itemgetter(0)):
                if answer.meets != felt.emotion and question.foreign(answer):
                    yield answer

        here = rings[question.place]
        answer = next(others(here[topic]), None) if topic else None
        if answer is None:
            own = wording(question.asked.text)
            compared = islice(others(here[None]), _COMPARED)
            answer = max(compared, key=lambda one: cosine(own, wording(one.asked.text)), default=None)
        if answer is None:
            return Missing("no_mismatch", f"no answer to another question meets another emotion than {felt.emotion}")
        judges = frozenset(filter(None, (question.asked.judged_by, answer.asked.judged_by, answer.judged_by)))
        return Negative(answer.text, [answer.answer_id], judges, question.same_topic(answer))

    return draw


def _by_feeling(answers: Iterable[Answer], seed: int) -> Rings:
    by_felt: dict[Felt, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.asked.felt:
            by_felt[answer.asked.felt].append(answer)
    return {felt: _ring(some, seed, "mismatched_emotion") for felt, some in by_felt.items()}


def _generic(questions: Sequence[Question], settings: Training, seed: int, scratch: Path | None) -> Draw:
    """Each sentence of a negative is a separate draw, among those that none of the question's answers contains."""
    answers = spilled(map(_answers, in_batches(questions)), scratch)
    sentences: dict[Place, list[dict[str, str]]] = defaultdict(list)
    for row in generic_sentences(answers, settings, scratch).iter_rows(named=True):
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
            taken.append(drawn)
        return Negative("".join(row["text"] for row in taken), [row["answer_id"] for row in taken])

    return draw


def _answers(questions: Iterable[Question]) -> pl.DataFrame:
    rows = [
        (*question.place, question.group_id, answer.answer_id, answer.text)
        for question in questions
        for answer in question.answers
    ]
    columns = dict.fromkeys(("split", "lang", "group_id", "answer_id", "text"), pl.String)
    return pl.DataFrame(rows, schema=columns, orient="row")


def _other(answers: dict[Place, list[Answer]], seed: int) -> Draw:
    rings = {place: _ring(here, seed, "other_answer") for place, here in answers.items()}

    def draw(question: Question) -> Negative | Missing:
        start = unit_interval(seed, "other_answer", question.post_id)
        drawn = rings[question.place].draw(start, question.foreign)
        if drawn is None:
            return Missing("no_other_answer", "no other question of its split and language has one")
        return Negative(drawn.text, [drawn.answer_id], same_topic=question.same_topic(drawn))

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


def generic_sentences(answers: pl.DataFrame, settings: Training, scratch: Path | None = None) -> pl.DataFrame:
    """The generic sentences of each split and language, as they stand in answers of that split.

    Takes `answer_id`, `group_id`, `split`, `lang`, `text`.

    Returns:
        `split`, `lang`, `sentence` (its key), and `group_id`, `answer_id`, `text` as it was written in one of the
        answers that hold it, the first by id; sorted. What is frequent in the train split and stands in no answer of
        another one is not generic there.
    """
    answers = answers.select("answer_id", "group_id", "split", "lang", "text").sort("answer_id")
    n_groups = pl.col("group_id").n_unique()
    least = pl.max_horizontal((settings.generic_share * n_groups).ceil(), pl.lit(settings.generic_questions))
    train = answers.filter(split="train").group_by("lang").agg(least=least)
    written = _repeated(spilled_by_slices(sentences, answers, scratch), train["least"].min())
    counted = written.filter(split="train").group_by("lang", "sentence").agg(met=n_groups).join(train, on="lang")
    frequent = counted.filter(pl.col("met") >= pl.col("least")).select("lang", "sentence")
    generic = written.join(frequent, on=["lang", "sentence"]).sort("answer_id")
    once = generic.unique(["split", "lang", "sentence"], keep="first", maintain_order=True)
    return once.select("split", "lang", "group_id", "sentence", "text", "answer_id").sort("split", "lang", "sentence")


def _repeated(written: pl.DataFrame, least: Any) -> pl.DataFrame:
    """Those of some sentences that are there so many times, and a few others; none where `least` is None."""
    names = written.select(name=pl.col("sentence").hash())
    often = names.group_by("name").len().filter(pl.col("len") >= pl.lit(least, pl.Float64))
    return written.filter(names["name"].is_in(often["name"].implode()))
