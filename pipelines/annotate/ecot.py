"""`ecot_chains` (M §3.1): situation, motivation, strategy, answer, in the second person, for inspection."""

from collections.abc import Sequence

import polars as pl

from pipelines.annotate.language import require_language
from pipelines.annotate.plan import Plan, Row, planned
from pipelines.annotate.prompting import prompt
from pipelines.annotate.replies import require_length, writable
from pipelines.annotate.training import Training
from pipelines.llm.questions import Question, Reply
from schemas.annotations import EcotChains
from schemas.reasoning import Ecot

STAGE = "ecot_chains"

# Of an answer, in characters; ours. M's model may write 1500 tokens in all.
_ANSWER = range(30, 2001)
_SECTIONS = ("situation", "motivation", "strategy", "answer")


def plan(posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame | None, models: Sequence[str]) -> Plan:
    """One question a post of the train split.

    Args:
        posts: Rows of `unique_posts`.
        splits: The split of every group.
        topics: The judgements of `topics`, or None to go without.
        models: The alias to ask, one.

    Returns:
        Drops are in the unit `post`. Before asking: not_train, under_18, risk, not_relevant. After: the reasons of
        replies, and personal_data.

    Raises RequestError for a post whose group has no split.
    """
    [model] = models
    asked, lost = Training(splits, topics).posts(posts)
    group_of = {row["post_id"]: row["group_id"] for row in asked}

    def keep(reply: Reply[Ecot]) -> Row:
        assert reply.value is not None
        post_id = reply.question.row_id
        return {
            "post_id": post_id,
            "group_id": group_of[post_id],
            **reply.value.model_dump(),
            "reasoning": reply.reasoning,
        }

    questions = [_question(row, model) for row in asked]
    return planned(EcotChains, STAGE, questions, lost, keep, "post", written=_SECTIONS)


def _question(row: Row, model: str) -> Question[Ecot]:
    return Question(
        task="ecot",
        row_id=row["post_id"],
        prompt=prompt("ecot"),
        inputs={"question": row["text"]},
        parse=parse,
        model=model,
    )


def parse(text: str) -> Ecot:
    """The chain and answer that a reply writes. Raises InvalidReply, FormatError, ValidationError."""
    read = Ecot.parse(writable(text))
    require_language("zh", **read.model_dump())
    require_length("answer", read.answer, _ANSWER)
    return read
