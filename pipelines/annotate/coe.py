"""`coe_chains` (E §3.2): the chain L1–L4 that leads from a question to the human answer, which stands as it was."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from pipelines.annotate.hindsight import leaks
from pipelines.annotate.wording import require_quotations
from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import writable
from pipelines.llm.tasks import Plan, planned
from pipelines.settings import Settings
from pipelines.split.eligible import Eligibility, draw_reference, drawable_answers
from pipelines.text.pii.invented import personal_data
from schemas.annotations import CoeChains
from schemas.dropped import Lost, Row
from schemas.reasoning import COE_TAGS, Coe, Grammar, tags

STAGE = "coe_chains"

# What is asked for: CoE's grammar without the answer, which is the human one.
_STEPS = ("L1", "L2", "L3", "L4")
CHAIN = Grammar(("empathy_think", _STEPS))


def plan(
    posts: pl.DataFrame,
    splits: pl.DataFrame,
    topics: pl.DataFrame | None,
    models: Sequence[str],
    *,
    seed: int = 0,
    human_only: bool = True,
) -> Plan:
    """One question a post of `unique_posts` and the train split that has an answer to lead to, to one model.

    Args:
        posts, splits, topics: The parents; `topics` may be missing.
        models: The alias to ask.
        seed: The draw of the answer follows from it and from the post's id: the one of the prompt set `grpo_coe`.
        human_only: Whether the answers of a set count only where the set says that people wrote them.

    Drops of posts, before asking: not_train, under_18, risk, not_relevant, no_human_answer, and unreadable_answer (it
    holds a tag of CoE's format). After: the reasons of replies, hindsight (with the kinds of what the first three steps
    know from the answer alone) and personal_data. Raises RequestError for a post whose group has no split.
    """
    [model] = models
    teaching, lost = Eligibility(splits, topics).posts(posts)
    pairs: dict[str, tuple[Row, Mapping[str, Any], float | None]] = {}  # a post, the drawn answer, and how likely
    for row in teaching:
        answers = drawable_answers(row, human_only)
        if isinstance(answers, Lost):
            lost.append(answers)
            continue
        reference = draw_reference(row["post_id"], answers, seed)
        answer = next(answer for answer in answers if answer["answer_id"] == reference.answer_id)
        if not answer["text"].strip() or tags(answer["text"], COE_TAGS):
            lost.append(Lost("post", row["post_id"], "unreadable_answer", answer["answer_id"]))
        else:
            pairs[row["post_id"]] = row, answer, reference.probability

    def keep(post_id: str, steps: Coe) -> Row | Lost:
        post, answer, probability = pairs[post_id]
        if known := leaks(post["text"], answer["text"], (steps.L1, steps.L2, steps.L3)):
            return Lost("post", post_id, "hindsight", ", ".join(known))
        return {
            "post_id": post_id,
            "group_id": post["group_id"],
            "answer_id": answer["answer_id"],
            "author_role": answer["author_role"],
            "draw_probability": probability,
            **steps.model_dump(include=set(_STEPS)),
            "answer": answer["text"],
        }

    questions = [
        Question(
            task="coe",
            row_id=post_id,
            prompt=prompt("coe", __file__),
            inputs={"question": post["text"], "answer": answer["text"]},
            parse=partial(parse, question=post["text"], answer=answer["text"]),
            model=model,
        )
        for post_id, (post, answer, _) in pairs.items()
    ]
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
    unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame, models: tuple[str, ...], settings: Settings
) -> Plan:
    """The questions of `coe_chains`."""
    return plan(unique_posts, splits, topics, models, seed=settings.seed, human_only=settings.annotate.human_answers)
