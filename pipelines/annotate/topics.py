"""`topics`: topic and subtopic where the source gives none, relevance where it is doubted, a second look at risk."""

from collections.abc import Sequence
from typing import Annotated

import polars as pl
from pydantic import model_validator

from pipelines.core.stage import stage
from pipelines.llm.label_sets import prompt
from pipelines.llm.language import require_language
from pipelines.llm.questions import Question, Reply
from pipelines.llm.replies import OneOf, Reason, Verdict, read_json
from pipelines.llm.tasks import Plan, planned
from pipelines.text.pii.invented import personal_data
from schemas.annotations import Topics
from schemas.dropped import Lost, Row
from schemas.labels import RISKS
from schemas.taxonomy import TAXONOMY

STAGE = "topics"

_SUBTOPICS = dict.fromkeys(subtopic for subtopics in TAXONOMY.values() for subtopic in subtopics)


class Topic(Verdict):
    """What a post is about, whether it asks for help, and whether somebody may be in danger."""

    topic: Annotated[str, OneOf(*TAXONOMY)] | None
    subtopic: Annotated[str, OneOf(*_SUBTOPICS)] | None
    relevant: bool
    risk: list[Annotated[str, OneOf(*RISKS)]]
    why: Reason

    @model_validator(mode="after")
    def _fit_together(self) -> "Topic":
        if self.relevant and self.topic is None:
            raise ValueError("a post that is relevant has a topic")
        if self.subtopic is not None and (self.topic is None or self.subtopic not in TAXONOMY[self.topic]):
            raise ValueError("the subtopic must be one of those of the topic")
        return self


def plan(posts: pl.DataFrame, models: Sequence[str]) -> Plan:
    """One question a post whose source gives no topic of the taxonomy, that the rules doubted, or that shows risk.

    Args:
        posts: Rows of `unique_posts`.
        models: The alias to ask, one.

    Returns:
        Kept are judgements, also that a post is not relevant: what is made of posts reads it there. Drops are in the
        unit `post`: topic_given, for the posts that nothing is asked about, and the reasons of replies.
    """
    [model] = models
    asked = [row for row in posts.iter_rows(named=True) if _is_asked(row)]
    answered = {row["post_id"] for row in asked}
    lost = [Lost("post", post_id, "topic_given") for post_id in posts["post_id"] if post_id not in answered]

    def keep(reply: Reply[Topic]) -> Row | Lost:
        assert reply.value is not None
        topic = reply.value.model_dump()
        return {"row_id": reply.question.row_id, **topic, "risk": list(dict.fromkeys(topic["risk"]))}

    return planned(
        Topics, STAGE, [_question(row, model) for row in asked], lost, keep, "post", grounds="why", guard=personal_data
    )


def _is_asked(row: Row) -> bool:
    return row["topic"] not in TAXONOMY or bool(row["doubts"]) or bool(row["risk"])


def _question(row: Row, model: str) -> Question[Topic]:
    return Question(
        task="topics",
        row_id=row["post_id"],
        prompt=prompt("topics", __file__),
        inputs={"title": row["title"], "description": row["description"]},
        parse=parse,
        model=model,
        schema=Topic,
    )


def parse(text: str) -> Topic:
    """The judgement that a reply gives. Raises InvalidReply and ValidationError."""
    read = read_json(text, Topic)
    require_language("zh", why=read.why)
    return read


@stage(
    "topics",
    group="annotate",
    asks="annotate.topics",
    units={"topics": {"post": ("unique_posts",)}},
)
def plan_topics(unique_posts: pl.DataFrame, models: tuple[str, ...]) -> Plan:
    """The questions of `topics`."""
    return plan(unique_posts, models)
