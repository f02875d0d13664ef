"""`coherent_dialogues`: C's quality filter. Out goes what is incoherent, written like a machine, or no dialogue."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import polars as pl

from pipelines.annotate.language import Lang, require_language
from pipelines.annotate.plan import Lost, Plan, Row, planned
from pipelines.annotate.prompting import prompt
from pipelines.annotate.replies import Reason, Verdict, read_json
from pipelines.llm.questions import Question, Reply
from schemas.dialogues import CoherentDialogues

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
    return planned(CoherentDialogues, STAGE, questions, (), keep, "dialogue", grounds="why")


def _question(row: Row, model: str) -> Question[Coherence]:
    lang: Lang = row["lang"]
    return Question(
        task="coherence",
        row_id=row["dialogue_id"],
        prompt=prompt(f"coherence.{lang}"),
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
