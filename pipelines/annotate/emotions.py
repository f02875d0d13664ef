"""`emotions`: the emotion that prevails in a post, or that an answer meets or conveys, and how strong it is (E's
negatives of mismatched emotion).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from pipelines.core.spill import spilled_by_slices
from pipelines.core.stage import stage
from pipelines.llm.language import require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import Reason, Verdict, one_of, read_json
from pipelines.llm.tasks import Plan, Questions, planned
from pipelines.split.eligible import answers_with, exclusion
from pipelines.text.pii.invented import personal_data
from schemas.annotations import Emotions
from schemas.dropped import Lost, Row
from schemas.labels import EMOTIONS

STAGE = "emotions"

_EN = {label.zh: label.en for label in EMOTIONS.labels}


class Emotion(Verdict):
    """The emotion of a text, by its Chinese name, and its intensity."""

    emotion: Annotated[str, one_of(*EMOTIONS.zh)]
    intensity: Annotated[int, Field(ge=1, le=5)]
    why: Reason


@stage(
    "emotions",
    group="annotate",
    asks="annotate.emotions",
    units={"emotions": dict.fromkeys(("post", "answer"), ("unique_posts",))},
)
def plan(unique_posts: pl.DataFrame, models: Sequence[str], scratch: Path | None = None) -> Plan:
    """One question a post, and one an answer, to one model.

    Drops of posts and answers: under_18, risk, and the reasons of replies. The answers of a post that is out are out
    with it, for the same reason.
    """
    [model] = models
    unit_of: dict[str, str] = {}
    lost: list[Lost] = []

    def fit(posts: pl.DataFrame) -> pl.DataFrame:
        texts: list[tuple[str, str, str]] = []

        def ask(unit: str, row_id: str, text: str, reason: tuple[str, str | None] | None) -> None:
            if reason:
                lost.append(Lost(unit, row_id, *reason))
            else:
                texts.append((unit, row_id, text))
                unit_of[row_id] = unit

        fields = answers_with("answer_id", "text", "under_18", "risk")
        for row in posts.with_columns(fields).iter_rows(named=True):
            out = exclusion(row)
            ask("post", row["post_id"], row["text"], out)
            for one in row["answers"]:
                ask("answer", one["answer_id"], one["text"], (out[0], "of its post") if out else exclusion(one))
        return pl.DataFrame(texts, dict.fromkeys(("unit", "row_id", "text"), pl.String), orient="row")

    def question(row: Row) -> Question[Emotion]:
        inputs = {"unit": row["unit"], "text": row["text"]}
        return Question("emotions", row["row_id"], prompt("emotions", __file__), inputs, parse, model, schema=Emotion)

    def keep(row_id: str, value: Emotion) -> Row:
        return value.model_dump() | {"row_id": row_id, "unit": unit_of[row_id], "emotion": _EN[value.emotion]}

    texts = unique_posts.select("post_id", "text", "under_18", "risk", "answers")
    questions = Questions(spilled_by_slices(fit, texts, scratch), question)
    return planned(Emotions, STAGE, questions, lost, keep, unit_of, grounds="why", guard=personal_data)


def parse(text: str) -> Emotion:
    """The emotion that a reply names. Raises InvalidReply and ValidationError."""
    read = read_json(text, Emotion)
    require_language("zh", why=read.why)
    return read
