"""`topics`: topic and subtopic where the source gives none, relevance where it is doubted, a second look at risk."""

from collections.abc import Sequence
from typing import Annotated

import polars as pl
from pydantic import model_validator

from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import Reason, Verdict, one_of, read_json
from pipelines.llm.tasks import Plan, Questions, planned
from pipelines.text.pii.invented import personal_data
from schemas.annotations import Topics
from schemas.dropped import Lost, Row
from schemas.labels import RISKS
from schemas.taxonomy import TAXONOMY

STAGE = "topics"

_SUBTOPICS = dict.fromkeys(subtopic for subtopics in TAXONOMY.values() for subtopic in subtopics)


class Topic(Verdict):
    """What a post is about, whether it asks for help, and whether somebody may be in danger."""

    topic: Annotated[str, one_of(*TAXONOMY)] | None
    subtopic: Annotated[str, one_of(*_SUBTOPICS)] | None
    relevant: bool
    risk: list[Annotated[str, one_of(*RISKS)]]
    why: Reason

    @model_validator(mode="after")
    def _fit_together(self) -> "Topic":
        if self.relevant and self.topic is None:
            raise ValueError("a post that is relevant has a topic")
        if self.subtopic is not None and (self.topic is None or self.subtopic not in TAXONOMY[self.topic]):
            raise ValueError("the subtopic must be one of those of the topic")
        return self


@stage("topics", group="annotate", asks="annotate.topics", units={"topics": {"post": ("unique_posts",)}})
def plan(unique_posts: pl.DataFrame, models: Sequence[str]) -> Plan:
    """One question to one model about a post whose source gives no topic of the taxonomy, that the rules doubted, or
    that shows risk.

    A post that is not relevant is kept, with that judgement. Drops of posts: topic_given, and the reasons of replies.
    """
    [model] = models
    given = pl.col("topic").is_in(list(TAXONOMY)).fill_null(value=False)
    clear = given & (pl.col("doubts").list.len() == 0) & (pl.col("risk").list.len() == 0)
    asked = unique_posts.filter(~clear).select("post_id", "title", "description")
    lost = [Lost("post", post_id, "topic_given") for post_id in unique_posts.filter(clear)["post_id"]]

    def question(row: Row) -> Question[Topic]:
        inputs = {"title": row["title"], "description": row["description"]}
        return Question("topics", row["post_id"], prompt("topics", __file__), inputs, parse, model, schema=Topic)

    def keep(row_id: str, topic: Topic) -> Row:
        return {"row_id": row_id, **topic.model_dump(), "risk": list(dict.fromkeys(topic.risk))}

    questions = Questions(asked, question)
    return planned(Topics, STAGE, questions, lost, keep, "post", grounds="why", guard=personal_data)


def parse(text: str) -> Topic:
    """The judgement that a reply gives. Raises InvalidReply and ValidationError."""
    read = read_json(text, Topic)
    require_language("zh", why=read.why)
    return read
