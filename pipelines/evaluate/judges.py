"""What judges are asked about answers (M §4.2, C's consistency study), and what they say.

A judge scores each answer in M's three respects, several times at a temperature above 0; says which of the answer and
one of its references is better, once with each in first place; and, of an output in C's form, whether the response
follows from its own third step.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from pipelines.errors import RequestError
from pipelines.evaluate.answering import STAGE
from pipelines.judge.judging import OUTCOME, Scores, scoring_question
from pipelines.judge.turns import Case, as_preference, outcome_turn, read_choice, system_prompt
from pipelines.llm.interface import LLMClient
from pipelines.llm.profiles import profile, profiles
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Question
from pipelines.llm.replies import Reason, Verdict, read_json
from pipelines.rewards.format import section
from pipelines.settings import Llm
from schemas.ids import unit_interval
from schemas.reasoning import CER_TAGS

SAMPLES = 5  # M §4.2
RESPECTS = ("fluency_comfort", "empathic_understanding", "support_encouragement")
CONSISTENCY = "consistency"

# Null: nothing of the judge can be read.
SCORES = pl.Schema(
    {"row_id": pl.String, "model": pl.String, "judge": pl.String, "sample": pl.Int64}
    | dict.fromkeys(RESPECTS, pl.Float64)
)
COMPARISONS = pl.Schema(
    {"row_id": pl.String, "model": pl.String, "judge": pl.String, "reference_first": pl.Boolean}
    | {"preference": pl.String}
)
FOLLOWS = pl.Schema({"row_id": pl.String, "model": pl.String, "judge": pl.String, "follows": pl.Boolean})


class Follows(Verdict):
    """Whether a response follows from the step before it. The grounds come first."""

    why: Reason
    follows: bool


class Judged(NamedTuple):
    """What judges say: rows of SCORES, COMPARISONS and FOLLOWS."""

    scores: pl.DataFrame
    comparisons: pl.DataFrame
    follows: pl.DataFrame


def require_judges(llm: Llm, judges: Sequence[str], samples: int) -> None:
    """Raises UnknownName for a judge without a profile, RequestError for one whose draws would all be the same."""
    known = profiles(llm.profiles)
    for alias in judges:
        temperature = profile(known, alias).temperature
        if samples > 1 and (temperature is None or temperature == 0):
            raise RequestError(
                f"the judge {alias} is asked {samples} times, and its profile says no temperature above 0",
                where=f"the model profile {alias!r}",
                hint="M samples: write temperature = 0.7 into a profile for judging, or ask once (--samples 1)",
            )


def judge_answers(
    client: LLMClient, answers: pl.DataFrame, judges: Sequence[str], samples: int = SAMPLES, seed: int = 0
) -> Judged:
    """Asks every judge about every answer.

    Args:
        client: Who asks. All is asked in one go, so that the budget is one.
        answers: Rows of `model_answers`; of those without an answer nothing is asked: the figures count them.
        judges: Aliases.
        samples: How often each answer is scored.
        seed: Draws which reference an answer is compared with.

    Raises what `client.ask` raises.
    """
    asked: list[tuple[dict[str, Any], Question[Any]]] = []
    for row in answers.filter(pl.col("answer").is_not_null()).iter_rows(named=True):
        for judge in judges:
            questions = _questions(row, judge, samples, seed)
            asked += ((row | {"judge": judge} | place, question) for place, question in questions)
    replies = client.ask(STAGE, [question for _, question in asked]) if asked else []
    rows: dict[str, list[dict[str, Any]]] = {Scores.__name__: [], OUTCOME: [], CONSISTENCY: []}
    for (about, question), reply in zip(asked, replies, strict=True):
        named = {name: about[name] for name in ("row_id", "model", "judge")}
        value = reply.value
        if question.task == OUTCOME:
            preference = None if value is None else as_preference(value, about["reference_first"])
            rows[OUTCOME].append(named | {"reference_first": about["reference_first"], "preference": preference})
        elif question.task == CONSISTENCY:
            rows[CONSISTENCY].append(named | {"follows": None if value is None else value.follows})
        else:
            scores = {respect: None if value is None else float(getattr(value, respect)) for respect in RESPECTS}
            rows[Scores.__name__].append(named | {"sample": about["sample"]} | scores)
    return Judged(
        pl.DataFrame(rows[Scores.__name__], schema=SCORES),
        pl.DataFrame(rows[OUTCOME], schema=COMPARISONS),
        pl.DataFrame(rows[CONSISTENCY], schema=FOLLOWS),
    )


def _questions(
    row: dict[str, Any], judge: str, samples: int, seed: int
) -> Iterator[tuple[dict[str, Any], Question[Any]]]:
    """What a judge is asked about an answer, each with what tells it from the others."""
    about, lang = row["row_id"], row["lang"]
    scoring = scoring_question(about, lang, row["dialogue"], row["answer"], judge)
    yield from (({"sample": sample}, replace(scoring, sample=sample)) for sample in range(samples))
    if row["references"]:
        drawn = int(unit_interval(seed, "reference", about) * len(row["references"]))
        for first in (True, False):
            case = Case(row["dialogue"], (None, None, None), row["answer"], row["references"][drawn], first)
            inputs = json.loads(outcome_turn(case))
            system = system_prompt(OUTCOME, lang)
            yield {"reference_first": first}, Question(OUTCOME, about, system, inputs, read_choice, judge)
    if (step := section(row["output"], "strategy", CER_TAGS)) is not None:
        inputs = {"strategy": step, "response": row["answer"]}
        read = partial(read_json, record=Follows)
        asks = prompt(f"{CONSISTENCY}.{lang}", __file__)
        yield {}, Question(CONSISTENCY, about, asks, inputs, read, judge, schema=Follows)
