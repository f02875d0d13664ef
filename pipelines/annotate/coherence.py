"""`coherent_dialogues`: C's quality filter. Out goes what is incoherent, written like a machine, or no dialogue.

Without a model the filter is structural: it sees what is no dialogue by its form, and judges no meaning.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

import polars as pl

from pipelines.core.stage import stage
from pipelines.llm.language import Lang, require_language
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Provenance, Question
from pipelines.llm.replies import Reason, Verdict, read_json
from pipelines.llm.tasks import Plan, Result, planned
from pipelines.text.pii.invented import personal_data
from schemas.dialogues import CoherentDialogues
from schemas.dropped import Lost, Row, drops, gather

STAGE = "coherent_dialogues"
# The provenance of a row that no model was asked about.
_NOBODY = Provenance("structural", "none", None, "none", "none")
_WHY: dict[Lang, str] = {"zh": "只看了形式，没有模型评判。", "en": "By its form alone: no model has judged it."}
# Why the filter removes a dialogue: by a model's verdict, or by its form (`keep_structured`).
REMOVED = (
    *("incoherent", "artificial", "not_a_dialogue"),
    *("not_alternating", "no_round", "same_turn", "repeated_turn", "half_empty"),
)
_SHORT = 20  # characters: may be repeated, as a greeting is


class Coherence(Verdict):
    """The verdict of the filter on a dialogue."""

    verdict: Literal["keep", "incoherent", "artificial", "not_a_dialogue"]
    why: Reason


def plan(dialogues: pl.DataFrame, models: Sequence[str]) -> Plan:
    """One question a dialogue of `unique_dialogues`, to one model.

    Drops of dialogues: incoherent, artificial, not_a_dialogue, and the reasons of replies; none holds a word of one.
    """
    [model] = models
    asked = {row["dialogue_id"]: row for row in dialogues.iter_rows(named=True)}

    def keep(row_id: str, value: Coherence) -> Row | Lost:
        if value.verdict != "keep":
            return Lost("dialogue", row_id, value.verdict)
        return asked[row_id] | value.model_dump()

    questions = [
        Question(
            task="coherence",
            row_id=row_id,
            prompt=prompt(f"coherence.{row['lang']}", __file__),
            inputs={"lang": row["lang"], "turns": [{"role": one["role"], "text": one["text"]} for one in row["turns"]]},
            parse=partial(parse, lang=row["lang"]),
            model=model,
            schema=Coherence,
        )
        for row_id, row in asked.items()
    ]
    return planned(CoherentDialogues, STAGE, questions, (), keep, "dialogue", grounds="why", guard=personal_data)


def parse(text: str, lang: Lang) -> Coherence:
    """The verdict of a reply, with grounds in the dialogue's language. Raises InvalidReply, ValidationError."""
    read = read_json(text, Coherence)
    require_language(lang, why=read.why)
    return read


def keep_structured(dialogues: pl.DataFrame) -> Result:
    """Those of `unique_dialogues` that have the form of a dialogue, each marked as judged by no model.

    Drops of dialogues: not_alternating, no_round, same_turn (two adjacent turns are equal), repeated_turn (a turn of
    more than 20 characters twice by one speaker), half_empty (half of the turns hold no letter and no figure).
    """
    turn = pl.element().struct
    spoken = dialogues.select("n_rounds", *(pl.col("turns").list.eval(turn.field(one)).alias(one) for one in _SPOKEN))
    flaws = pl.Series("flaw", [_flaw(*row) for row in spoken.iter_rows()], dtype=pl.String)
    marked, flaw = dialogues.with_columns(flaws), pl.col("flaw")
    made = {name: pl.lit(value) for name, value in _NOBODY.columns().items()}
    why = pl.col("lang").replace_strict(_WHY, return_dtype=pl.String)
    kept = marked.filter(flaw.is_null()).with_columns(verdict=pl.lit("keep"), why=why, **made)
    lost = drops(marked.filter(flaw.is_not_null()), STAGE, "dialogue", "dialogue_id", flaw, pl.lit(None))
    return CoherentDialogues.cast(kept.select(CoherentDialogues.column_names())), gather(lost)


_SPOKEN = ("role", "text")


def _flaw(n_rounds: int, roles: list[str], texts: list[str]) -> str | None:
    """What a dialogue lacks in form; None where it lacks nothing."""
    turns = [(role, text.strip()) for role, text in zip(roles, texts, strict=True)]
    neighbours = list(pairwise(turns))
    if any(role == other for (role, _), (other, _) in neighbours):
        return "not_alternating"
    if not n_rounds:
        return "no_round"
    if any(text == other for (_, text), (_, other) in neighbours):
        return "same_turn"
    long = [turn for turn in turns if len(turn[1]) > _SHORT]
    if len(set(long)) < len(long):
        return "repeated_turn"
    empty = sum(not any(map(str.isalnum, text)) for _, text in turns)
    return "half_empty" if 2 * empty >= len(turns) else None


@stage(
    "coherent_dialogues",
    group="annotate",
    asks="annotate.coherence",
    units={"coherent_dialogues": {"dialogue": ("unique_dialogues",)}},
    structural=True,
)
def plan_coherent_dialogues(unique_dialogues: pl.DataFrame, models: tuple[str, ...]) -> Plan | Result:
    """The questions of `coherent_dialogues`; without a model its rows, by their form."""
    return plan(unique_dialogues, models) if models else keep_structured(unique_dialogues)
