"""`coe_chains` (E §3.2): the chain L1–L4 that leads from a question to the human answer, which stands as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from pipelines.annotate.hindsight import leaks
from pipelines.core.stage import stage
from pipelines.llm.label_sets import prompt
from pipelines.llm.language import require_language
from pipelines.llm.questions import Question, Reply
from pipelines.llm.replies import writable
from pipelines.llm.tasks import Plan, planned
from pipelines.settings import Settings
from pipelines.split.eligible import Eligibility, Reference, draw_reference, drawable_answers
from pipelines.text.pii.invented import personal_data
from schemas.annotations import CoeChains
from schemas.dropped import Lost, Row
from schemas.reasoning import COE_TAGS, Coe, Grammar, tags

STAGE = "coe_chains"

# What is asked for: CoE's grammar without the answer, which is the human one.
CHAIN = Grammar(("empathy_think", ("L1", "L2", "L3", "L4")))


@dataclass(frozen=True, slots=True)
class _Pair:
    """A question and the answer that was drawn for it."""

    post: Row
    answer: Mapping[str, Any]
    reference: Reference


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
    pairs: dict[str, _Pair] = {}
    for row in teaching:
        pair = _pair(row, seed, human_only)
        if isinstance(pair, Lost):
            lost.append(pair)
        else:
            pairs[row["post_id"]] = pair

    def keep(reply: Reply[Coe]) -> Row | Lost:
        assert reply.value is not None
        post_id, steps = reply.question.row_id, reply.value
        pair = pairs[post_id]
        known = leaks(pair.post["text"], pair.answer["text"], (steps.L1, steps.L2, steps.L3))
        if known:
            return Lost("post", post_id, "hindsight", ", ".join(known))
        return {
            "post_id": post_id,
            "group_id": pair.post["group_id"],
            "answer_id": pair.answer["answer_id"],
            "author_role": pair.answer["author_role"],
            "draw_probability": pair.reference.probability,
            **steps.model_dump(include={"L1", "L2", "L3", "L4"}),
            "answer": pair.answer["text"],
            "reasoning": reply.reasoning,
        }

    questions = [_question(pair, model) for pair in pairs.values()]
    return planned(
        CoeChains, STAGE, questions, lost, keep, "post", written=("L1", "L2", "L3", "L4"), guard=personal_data
    )


def _pair(row: Row, seed: int, human_only: bool) -> _Pair | Lost:
    post_id = row["post_id"]
    answers = drawable_answers(row, human_only)
    if isinstance(answers, Lost):
        return answers
    reference = draw_reference(post_id, answers, seed)
    answer = next(answer for answer in answers if answer["answer_id"] == reference.answer_id)
    if not answer["text"].strip() or tags(answer["text"], COE_TAGS):
        return Lost("post", post_id, "unreadable_answer", answer["answer_id"])
    return _Pair(row, answer, reference)


def _question(pair: _Pair, model: str) -> Question[Coe]:
    answer = pair.answer["text"]
    return Question(
        task="coe",
        row_id=pair.post["post_id"],
        prompt=prompt("coe", __file__),
        inputs={"question": pair.post["text"], "answer": answer},
        parse=partial(parse, answer=answer),
        model=model,
    )


def parse(text: str, answer: str) -> Coe:
    """The chain of a reply, with the human answer behind it. Raises InvalidReply, FormatError, ValidationError."""
    steps = CHAIN.read(writable(text))
    require_language("zh", **{name: steps[name] for name in ("L1", "L2", "L3", "L4")})
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
