"""`rm_triplets` (E eq. 5): a question, an answer to it, and an answer that should score lower, of E's three kinds."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from pipelines.core.spill import in_batches, spilled
from pipelines.core.stage import stage
from pipelines.llm.tasks import Result, rows
from pipelines.settings import Settings
from pipelines.settings import Training as TrainingSettings
from pipelines.split.eligible import Eligibility, draw_reference, drawable_answers, with_topics
from pipelines.trainsets.negatives import Answer, Asked, Felt, Missing, Negative, Place, Question, draws
from schemas.dropped import Lost, Row, dropped
from schemas.labels import NEGATIVES
from schemas.training import RmTriplets


def triplets(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame,
    emotions: pl.DataFrame,
    settings: TrainingSettings | None = None,
    *,
    seed: int = 0,
    human_only: bool = True,
    scratch: Path | None = None,
) -> Result:
    """One triplet of each kind a question, in every split.

    The positive is the reference of `grpo_coe`: a professional's answer where one answered, else anybody's (see
    `positive_role`). Every text of a triplet is of the split of its question; none is by a minor or of risk.

    Args:
        posts, splits, topics: Rows of `unique_posts`, `splits` and `topics`.
        emotions: Rows of `emotions`: what seekers feel, and what answers meet.
        settings: What makes a sentence generic.
        seed: The draws follow from it and from the ids of questions and answers.
        human_only: Whether the answers of a set count only where the set says that people wrote them.
        scratch: Where triplets and sentences are kept until all are made (`pipelines.core.spill`).

    Returns:
        `(kept, dropped)`. Drops are in the units `post` (under_18, risk, not_relevant, no_human_answer, no_negative)
        and `triplet`, of a post that has another one (no_emotion, no_mismatch, few_generic, no_other_answer). So posts
        in = posts with a triplet + posts dropped.

    Raises RequestError for a post whose group has no split.
    """
    eligibility = Eligibility(splits, topics)
    emotion_of = {row["row_id"]: row for row in emotions.iter_rows(named=True)}
    questions: list[Question] = []
    lost: list[Lost] = []
    for post in with_topics(posts, topics).select(_OF_A_POST).iter_rows(named=True):
        place = Place(eligibility.split(post["post_id"], post), post["lang"])
        exclusion = eligibility.unfit(post["post_id"], post)
        if exclusion is None:
            question = _question(post, place, emotion_of, seed, human_only)
        else:
            question = Lost("post", post["post_id"], *exclusion)
        if isinstance(question, Lost):
            lost.append(question)
        else:
            questions.append(question)
    draw_of = draws(questions, settings or TrainingSettings(), seed, scratch)

    def made(some: Sequence[Question]) -> pl.DataFrame:
        kept: list[Row] = []
        for question in some:
            drawn = {kind: draw_of[kind](question) for kind in NEGATIVES}
            kept += [_row(question, kind, one) for kind, one in drawn.items() if isinstance(one, Negative)]
            missing = {kind: one for kind, one in drawn.items() if isinstance(one, Missing)}
            if len(missing) == len(drawn):
                reasons = ", ".join(one.reason for one in missing.values())
                lost.append(Lost("post", question.post_id, "no_negative", reasons))
            else:
                lost.extend(Lost("triplet", f"{question.post_id}/{kind}", *one) for kind, one in missing.items())
        return rows(RmTriplets, kept)

    return spilled(map(made, in_batches(questions)), scratch), dropped("rm_triplets", lost)


_OF_A_POST = ("post_id", "group_id", "lang", "text", "topic", "origin", "answers", "risk", "under_18")


def _question(post: Row, place: Place, emotion_of: dict[str, Row], seed: int, human_only: bool) -> Question | Lost:
    post_id, group_id = post["post_id"], post["group_id"]
    teaching = drawable_answers(post, human_only)
    if isinstance(teaching, Lost):
        return teaching
    emotion = emotion_of.get(post_id)
    felt = Felt(emotion["emotion"], emotion["intensity"]) if emotion else None
    asked = Asked(post["text"], post["topic"], felt, emotion["provider"] if emotion else None)
    answers = [_answer(answer, group_id, asked, emotion_of.get(answer["answer_id"])) for answer in teaching]
    reference = draw_reference(post_id, teaching, seed)
    positive = next(answer for answer in answers if answer.answer_id == reference.answer_id)
    return Question(post_id, asked, group_id, place, answers, positive)


def _answer(answer: Row, group_id: str, asked: Asked, emotion: Row | None) -> Answer:
    return Answer(
        answer["answer_id"],
        answer["text"],
        answer["author_role"],
        group_id,
        answer["cluster_id"],
        asked,
        emotion["emotion"] if emotion else None,
        emotion["provider"] if emotion else None,
    )


def _row(question: Question, kind: str, negative: Negative) -> Row:
    return {
        "row_id": f"{question.post_id}/{kind}",
        "made_from": question.post_id,
        "group_id": question.group_id,
        "split": question.place.split,
        "variant": "none",
        "providers": sorted(negative.judged_by),
        "kind": kind,
        "query": question.asked.text,
        "positive": question.positive.text,
        "positive_id": question.positive.answer_id,
        "positive_role": question.positive.role,
        "negative": negative.text,
        "negative_ids": negative.answer_ids,
        "same_topic": negative.same_topic,
    }


@stage(
    "rm_triplets",
    group="training",
    reads=("training", "seed", "annotate.human_answers"),
    units={"rm_triplets": {"post": ("unique_posts",)}},
    optional_parents=("topics", "emotions"),
)
def make_rm_triplets(
    unique_posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame,
    emotions: pl.DataFrame,
    settings: Settings,
    scratch: Path | None,
) -> Result:
    """`rm_triplets`: what E's encoder learns."""
    return triplets(
        unique_posts,
        splits,
        topics,
        emotions,
        settings.training,
        seed=settings.seed,
        human_only=settings.annotate.human_answers,
        scratch=scratch,
    )
