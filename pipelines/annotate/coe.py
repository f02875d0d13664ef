"""`coe_chains` (E §3.2): the chain L1–L4 that leads from a question to the human answer, which stands as it was."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.annotate.hindsight import leaks
from pipelines.annotate.wording import require_quotations
from pipelines.core.spill import spilled_by_slices
from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import writable
from pipelines.llm.tasks import Plan, Questions, planned
from pipelines.settings import Settings
from pipelines.split.eligible import Eligibility, answers_with, draw_reference, drawable_answers
from pipelines.text.pii.invented import personal_data
from schemas.annotations import CoeChains
from schemas.dropped import Lost, Row
from schemas.reasoning import COE_TAGS, Coe, Grammar, tags

STAGE = "coe_chains"

# What is asked for: CoE's grammar without the answer, which is the human one.
_STEPS = ("L1", "L2", "L3", "L4")
# A post, the answer that was drawn, and how likely that was.
_PAIR = dict.fromkeys(("post_id", "group_id", "text", "answer_id", "author_role", "answer"), pl.String) | {
    "draw_probability": pl.Float64
}
CHAIN = Grammar(("empathy_think", _STEPS))


def plan(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame | None,
    models: Sequence[str],
    *,
    seed: int = 0,
    human_only: bool = True,
    scratch: Path | None = None,
) -> Plan:
    """One question a post of `unique_posts` and the train split that has an answer to lead to, to one model.

    Args:
        posts, splits, topics: The parents; `topics` may be missing.
        models: The alias to ask.
        seed: The draw of the answer follows from it and from the post's id: the one of the prompt set `grpo_coe`.
        human_only: Whether the answers of a set count only where the set says that people wrote them.
        scratch: Where the drawn answers are kept (`pipelines.core.spill`).

    Drops of posts, before asking: not_train, under_18, risk, not_relevant, no_human_answer, and unreadable_answer (it
    holds a tag of CoE's format). After: the reasons of replies, hindsight (with the kinds of what the first three steps
    know from the answer alone) and personal_data. Raises RequestError for a post whose group has no split.
    """
    [model] = models
    teaching, lost = Eligibility(splits, topics).posts(posts)

    def draw(posts: pl.DataFrame) -> pl.DataFrame:
        drawn: list[tuple[Any, ...]] = []
        fields = answers_with("answer_id", "author_role", "text", "under_18", "risk")
        for row in posts.with_columns(fields).iter_rows(named=True):
            answers = drawable_answers(row, human_only)
            if isinstance(answers, Lost):
                lost.append(answers)
                continue
            reference = draw_reference(row["post_id"], answers, seed)
            answer = next(answer for answer in answers if answer["answer_id"] == reference.answer_id)
            if not answer["text"].strip() or tags(answer["text"], COE_TAGS):
                lost.append(Lost("post", row["post_id"], "unreadable_answer", answer["answer_id"]))
            else:
                of_post = row["post_id"], row["group_id"], row["text"]
                drawn.append(
                    (*of_post, answer["answer_id"], answer["author_role"], answer["text"], reference.probability)
                )
        return pl.DataFrame(drawn, _PAIR, orient="row")

    parts = teaching.select("post_id", "group_id", "text", "origin", "answers")
    pairs = spilled_by_slices(draw, parts, scratch)
    place_of = {post_id: place for place, post_id in enumerate(pairs["post_id"])}

    def keep(post_id: str, steps: Coe) -> Row | Lost:
        pair = pairs.row(place_of[post_id], named=True)
        if known := leaks(pair.pop("text"), pair["answer"], (steps.L1, steps.L2, steps.L3)):
            return Lost("post", post_id, "hindsight", ", ".join(known))
        return pair | steps.model_dump(include=set(_STEPS))

    def question(row: Row) -> Question[Coe]:
        return Question(
            task="coe",
            row_id=row["post_id"],
            prompt=prompt("coe", __file__),
            inputs={"question": row["text"], "answer": row["answer"]},
            parse=partial(parse, question=row["text"], answer=row["answer"]),
            model=model,
        )

    questions = Questions(pairs, question)
    return planned(CoeChains, STAGE, questions, lost, keep, "post", written=_STEPS, guard=personal_data)


def parse(text: str, question: str, answer: str) -> Coe:
    """The chain of a reply, with the human answer behind it; what it quotes in 「」 has to stand in the question.

    Raises InvalidReply, FormatError, ValidationError.
    """
    read = CHAIN.read(writable(text))
    steps = {name: read[name] for name in _STEPS}
    require_language("zh", **steps)
    require_quotations(question, ("L1", "L2"), **steps)
    return Coe(**steps, answer=answer)


@stage(
    "coe_chains",
    group="annotate",
    asks="annotate.coe",
    reads=("seed", "annotate.human_answers"),
    units={"coe_chains": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
)
def plan_coe_chains(
    unique_posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame,
    models: tuple[str, ...],
    settings: Settings,
    scratch: Path | None,
) -> Plan:
    """The questions of `coe_chains`."""
    human_only = settings.annotate.human_answers
    return plan(unique_posts, splits, topics, models, seed=settings.seed, human_only=human_only, scratch=scratch)
