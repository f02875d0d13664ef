"""`ecot_chains` (M §3.1): situation, motivation, strategy, answer, in the second person, for inspection."""

from collections.abc import Sequence
from functools import partial

import polars as pl

from pipelines.annotate.wording import require_polite, require_quotations
from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import require_length, writable
from pipelines.llm.tasks import Plan, Questions, planned
from pipelines.split.eligible import Eligibility
from pipelines.text.pii.invented import personal_data
from schemas.annotations import EcotChains
from schemas.dropped import Row
from schemas.reasoning import Ecot

STAGE = "ecot_chains"

# Of an answer, in characters; ours. M's model may write 1500 tokens in all.
_ANSWER = range(30, 2001)
_SECTIONS = ("situation", "motivation", "strategy", "answer")


@stage(
    "ecot_chains",
    group="annotate",
    asks="annotate.ecot",
    units={"ecot_chains": {"post": ("unique_posts",)}},
    optional_parents=("topics",),
)
def plan(unique_posts: pl.DataFrame, splits: pl.DataFrame, topics: pl.DataFrame | None, models: Sequence[str]) -> Plan:
    """One question a post of the train split, to one model.

    Drops of posts, before asking: not_train, under_18, risk, not_relevant (by `topics`, where there is one); after: the
    reasons of replies, and personal_data. Raises RequestError for a post whose group has no split.
    """
    [model] = models
    asked, lost = Eligibility(splits, topics).posts(unique_posts)
    group_of = dict(asked.select("post_id", "group_id").iter_rows())

    def keep(post_id: str, value: Ecot) -> Row:
        return {"post_id": post_id, "group_id": group_of[post_id], **value.model_dump()}

    def question(row: Row) -> Question[Ecot]:
        return Question(
            task="ecot",
            row_id=row["post_id"],
            prompt=prompt("ecot", __file__),
            inputs={"question": row["text"]},
            parse=partial(parse, question=row["text"]),
            model=model,
        )

    questions = Questions(asked.select("post_id", "text"), question)
    return planned(EcotChains, STAGE, questions, lost, keep, "post", written=_SECTIONS, guard=personal_data)


def parse(text: str, question: str) -> Ecot:
    """The chain and answer that a reply writes to a question; what the chain quotes in 「」 has to stand there.

    Raises InvalidReply, FormatError, ValidationError.
    """
    read = Ecot.parse(writable(text))
    require_language("zh", **read.model_dump())
    require_length("answer", read.answer, _ANSWER)
    require_polite(**read.model_dump())
    require_quotations(question, ("situation",), **read.model_dump(exclude={"answer"}))
    return read
