"""`rm_triplets` (E eq. 5): a question, an answer to it, and an answer that should score lower, of E's three kinds."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.tasks import rows
from pipelines.settings import Settings
from pipelines.settings import Training as TrainingSettings
from pipelines.split.eligible import Eligibility
from pipelines.split.references import draw_reference, may_teach
from pipelines.trainsets.negatives import Answer, Asked, Missing, Negative, Place, draws
from schemas.dropped import Lost, dropped
from schemas.labels import NEGATIVES, SENTIMENT_OF
from schemas.training import RmTriplets

Result = tuple[pl.DataFrame, pl.DataFrame]


def triplets(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame,
    emotions: pl.DataFrame,
    settings: TrainingSettings | None = None,
    *,
    seed: int = 0,
    human_only: bool = True,
) -> Result:
    """One triplet of each kind a question, in every split.

    The positive is the reference of `grpo_coe`: a professional's answer where one answered, else anybody's, as
    `positive_role` tells. Every text of a triplet is of the split of its question; none is by a minor or of risk.

    Args:
        posts: Rows of `unique_posts`.
        splits: The split of every group.
        topics: The judgements of `topics`.
        emotions: The judgements of `emotions`; those of answers count.
        settings: What makes a sentence generic.
        seed: The draws follow from it and from the ids of questions and answers.
        human_only: Whether the answers of a set count only where the set says that people wrote them.

    Returns:
        `(kept, dropped)`. Drops are in the units `post` (under_18, risk, not_relevant, no_human_answer, no_negative)
        and `triplet`, of a post that has another one (no_emotion, no_mismatch, few_generic, no_other_answer). So posts
        in = posts with a triplet + posts dropped.

    Raises RequestError for a post whose group has no split.
    """
    eligibility = Eligibility(splits, topics)
    felt = {row["row_id"]: row for row in emotions.filter(unit="answer").iter_rows(named=True)}
    asked: list[Asked] = []
    lost: list[Lost] = []
    for post in posts.iter_rows(named=True):
        place = Place(eligibility.split(post["post_id"], post), post["lang"])
        exclusion = eligibility.unfit(post["post_id"], post)
        found = Lost("post", post["post_id"], *exclusion) if exclusion else _asked(post, place, felt, seed, human_only)
        if isinstance(found, Lost):
            lost.append(found)
        else:
            asked.append(found)
    kept: list[dict[str, Any]] = []
    draw_of = draws(asked, settings or TrainingSettings(), seed)
    for question in asked:
        drawn = {kind: draw_of[kind](question) for kind in NEGATIVES}
        kept += [_row(question, kind, one) for kind, one in drawn.items() if isinstance(one, Negative)]
        missing = {kind: one for kind, one in drawn.items() if isinstance(one, Missing)}
        if len(missing) == len(drawn):
            reasons = ", ".join(one.reason for one in missing.values())
            lost.append(Lost("post", question.post_id, "no_negative", reasons))
        else:
            lost += [Lost("triplet", f"{question.post_id}/{kind}", *one) for kind, one in missing.items()]
    return rows(RmTriplets, kept), dropped("rm_triplets", lost)


def _asked(
    post: Mapping[str, Any], place: Place, felt: Mapping[str, Mapping[str, Any]], seed: int, human_only: bool
) -> Asked | Lost:
    post_id, group_id = post["post_id"], post["group_id"]
    if human_only and post["origin"] != "human":
        return Lost("post", post_id, "no_human_answer", f"written by: {post['origin']}")
    teaching = [answer for answer in post["answers"] if may_teach(answer)]
    if not teaching:
        told = "a question without an answer" if not post["answers"] else "no answer without risk, by an adult"
        return Lost("post", post_id, "no_human_answer", told)
    answers = [_answer(answer, group_id, felt.get(answer["answer_id"])) for answer in teaching]
    reference = draw_reference(post_id, teaching, seed)
    positive = next(answer for answer in answers if answer.answer_id == reference.answer_id)
    return Asked(post_id, post["text"], group_id, place, answers, positive)


def _answer(answer: Mapping[str, Any], group_id: str, felt: Mapping[str, Any] | None) -> Answer:
    return Answer(
        answer["answer_id"],
        answer["text"],
        answer["author_role"],
        group_id,
        answer["cluster_id"],
        SENTIMENT_OF[felt["emotion"]] if felt else None,
        felt["provider"] if felt else None,
    )


def _row(question: Asked, kind: str, negative: Negative) -> dict[str, Any]:
    return {
        "row_id": f"{question.post_id}/{kind}",
        "made_from": question.post_id,
        "group_id": question.group_id,
        "split": question.place.split,
        "variant": "none",
        "providers": sorted(negative.judged_by),
        "kind": kind,
        "query": question.text,
        "positive": question.positive.text,
        "positive_id": question.positive.answer_id,
        "positive_role": question.positive.role,
        "negative": negative.text,
        "negative_ids": negative.answer_ids,
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
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`rm_triplets`: what E's encoder learns."""
    return triplets(
        unique_posts,
        splits,
        topics,
        emotions,
        settings.training,
        seed=settings.seed,
        human_only=settings.annotate.human_answers,
    )
