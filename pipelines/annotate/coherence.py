"""`coherent_dialogues`: C's quality filter. Out goes what is incoherent, written like a machine, or no dialogue."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.label_sets import prompt
from pipelines.llm.language import Lang, require_language
from pipelines.llm.questions import Question, Reply
from pipelines.llm.replies import Reason, Verdict, read_json
from pipelines.llm.tasks import Plan, planned
from pipelines.text.pii.invented import personal_data
from schemas.dialogues import CoherentDialogues
from schemas.dropped import Lost, Row

STAGE = "coherent_dialogues"


class Coherence(Verdict):
    """What the filter says of a dialogue."""

    verdict: Literal["keep", "incoherent", "artificial", "not_a_dialogue"]
    why: Reason


def plan(dialogues: pl.DataFrame, models: Sequence[str]) -> Plan:
    """One question a dialogue.

    Args:
        dialogues: Rows of `unique_dialogues`.
        models: The alias to ask, one.

    Returns:
        Its drops are in the unit `dialogue`: incoherent, artificial, not_a_dialogue, and the reasons of replies. The
        filter's grounds for a drop are in the ledger; a drop's detail holds nothing that tells of the dialogue.
    """
    [model] = models
    asked = {row["dialogue_id"]: row for row in dialogues.iter_rows(named=True)}

    def keep(reply: Reply[Coherence]) -> Row | Lost:
        assert reply.value is not None
        row_id, value = reply.question.row_id, reply.value
        if value.verdict != "keep":
            return Lost("dialogue", row_id, value.verdict)
        return asked[row_id] | value.model_dump()

    questions = [_question(row, model) for row in asked.values()]
    return planned(CoherentDialogues, STAGE, questions, (), keep, "dialogue", grounds="why", guard=personal_data)


def _question(row: Row, model: str) -> Question[Coherence]:
    lang: Lang = row["lang"]
    return Question(
        task="coherence",
        row_id=row["dialogue_id"],
        prompt=prompt(f"coherence.{lang}", __file__),
        inputs={"lang": lang, "turns": [{"role": turn["role"], "text": turn["text"]} for turn in row["turns"]]},
        parse=partial(parse, lang=lang),
        model=model,
        schema=Coherence,
    )


def parse(text: str, lang: Lang) -> Coherence:
    """The verdict that a reply gives, with grounds in the language of the dialogue. Raises InvalidReply and
    ValidationError.
    """
    read = read_json(text, Coherence)
    require_language(lang, why=read.why)
    return read


@stage(
    "coherent_dialogues",
    group="annotate",
    asks="annotate.coherence",
    units={"coherent_dialogues": {"dialogue": ("unique_dialogues",)}},
    also=("pipelines.annotate.rules.answers",),
)
def plan_coherent_dialogues(unique_dialogues: pl.DataFrame, models: tuple[str, ...]) -> Plan:
    """The questions of `coherent_dialogues`."""
    return plan(unique_dialogues, models)
