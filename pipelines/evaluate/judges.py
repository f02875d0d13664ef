"""What judges are asked about answers (M §4.2, C's consistency study) and about candidates that people labelled (C
Table 1), and what they say.

A judge scores each answer in M's three respects, several times at a temperature above 0; says which of the answer and
one of its references is better, once with each in first place; and, of an output in C's form, whether the response
follows from its own third step.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from pipelines.errors import RequestError
from pipelines.evaluate.answering import STAGE
from pipelines.evaluate.reward_model import STEPS, score_lengths, score_verdicts
from pipelines.judge import turns
from pipelines.judge.judging import MODES, OUTCOME, PROCESS, UNIFIED, Mode, Scores, scoring_question
from pipelines.llm.interface import LLMClient
from pipelines.llm.profiles import profile, profiles
from pipelines.llm.prompts import prompt
from pipelines.llm.questions import Exchange, Question
from pipelines.llm.replies import Reason, Verdict, read_json
from pipelines.rewards.format import section
from pipelines.settings import Llm
from pipelines.trainsets.labelled import Labelled
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
Row = dict[str, Any]
_VERDICTS: dict[str, pl.DataType] = {**dict.fromkeys(STEPS, pl.Boolean()), "preference": pl.String()}
_LENGTHS: dict[str, pl.DataType] = dict.fromkeys((*STEPS, "response", "reference"), pl.Int64())


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
            preference = None if value is None else turns.as_preference(value, about["reference_first"])
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
            case = turns.Case(row["dialogue"], (None, None, None), row["answer"], row["references"][drawn], first)
            inputs = json.loads(turns.outcome_turn(case))
            system = turns.system_prompt(OUTCOME, lang)
            yield {"reference_first": first}, Question(OUTCOME, about, system, inputs, turns.read_choice, judge)
    if (step := section(row["output"], "strategy", CER_TAGS)) is not None:
        inputs = {"strategy": step, "response": row["answer"]}
        read = partial(read_json, record=Follows)
        asks = prompt(f"{CONSISTENCY}.{lang}", __file__)
        yield {}, Question(CONSISTENCY, about, asks, inputs, read, judge, schema=Follows)


def judge_labels(client: LLMClient, labels: Sequence[Labelled], judge: str, mode: Mode, seed: int = 0) -> list[Row]:
    """What a model says of candidates: of each, in their order, `step1` … `step3` and `preference`, None where it
    cannot be read.

    In the mode `unified` each verdict is asked for in the conversation with those before it; behind one that cannot be
    read nothing is asked, as in training. Raises what `client.ask` raises.
    """
    cases = [_case(one, seed) for one in labels]
    verdicts: list[Row] = [dict.fromkeys((*STEPS, "preference")) for _ in labels]
    before: list[list[Exchange]] = [[] for _ in labels]
    unified = mode == "unified"

    def ask(
        places: Sequence[int], task: str, turn: Callable[[turns.Case], str], read: Callable[[str], Any]
    ) -> list[Any]:
        questions = [
            Question(
                task=task,
                row_id=labels[place].row_id,
                prompt=turns.system_prompt(task, labels[place].candidate.lang),
                inputs=json.loads(turn(cases[place])),
                parse=read,
                model=judge,
                before=tuple(before[place]),
            )
            for place in places
        ]
        return [reply.value for reply in client.ask(STAGE, questions)] if questions else []

    places = list(range(len(labels)))
    turn: Callable[[turns.Case], str]
    for step, name in zip(turns.STEPS, STEPS, strict=True):
        turn = partial(_unified_turn, number=step - 1) if unified else partial(turns.process_turn, step=step)
        values = ask(places, UNIFIED if unified else PROCESS, turn, partial(turns.read_step, step=step))
        for place, value in zip(places, values, strict=True):
            verdicts[place][name] = value
            if unified and value is not None:
                words = turns.write_step(step, value, labels[place].candidate.lang)
                before[place].append(Exchange(json.loads(turn(cases[place])), words))
        if unified:
            places = [place for place in places if verdicts[place][name] is not None]
    turn = partial(_unified_turn, number=-1) if unified else turns.outcome_turn
    for place, choice in zip(
        places, ask(places, UNIFIED if unified else OUTCOME, turn, turns.read_choice), strict=True
    ):
        if choice is not None:
            verdicts[place]["preference"] = turns.as_preference(choice, cases[place].reference_first)
    return verdicts


def reward_model_rows(client: LLMClient, labels: Sequence[Labelled], judge: str, name: str, seed: int = 0) -> list[Row]:
    """Rows of `evaluations`, suite `reward_model`: C Table 1 of a model in both modes, and what length alone tells. The
    subset is the question; intervals are by group of dialogues.
    """
    people = [dict(zip(STEPS, one.right, strict=True)) | {"preference": one.preference} for one in labels]
    truth = _frame(labels, people, _VERDICTS)
    rows: list[Row] = []

    def add(model: str, mode: str, figure: Row) -> None:
        about = {"suite": "reward_model", "model": model, "judge": "", "mode": mode, "subset": figure["question"]}
        rows.append(about | {key: figure[key] for key in ("n", "value", "low", "high")} | {"metric": figure["figure"]})

    for mode in MODES:
        verdicts = _frame(labels, judge_labels(client, labels, judge, mode, seed), _VERDICTS)
        for one in score_verdicts(truth, verdicts, seed=seed).iter_rows(named=True):
            add(name, mode, one)
            if one["figure"] == "weighted_f1":
                share = one["unread"] / one["n"] if one["n"] else None
                add(name, mode, one | {"figure": "unread", "value": share, "low": None, "high": None})
    lengths = []
    for label in labels:
        steps = dict(zip(STEPS, map(len, _case(label, seed).texts), strict=True))
        lengths.append(steps | {"response": len(label.candidate.response), "reference": len(label.reference)})
    for one in score_lengths(truth, _frame(labels, lengths, _LENGTHS), seed=seed).iter_rows(named=True):
        add("length alone", "", one)
    return rows


def _case(one: Labelled, seed: int) -> turns.Case:
    return turns.Case.of(one.history, one.candidate, one.reference, turns.reference_first(one.row_id, seed))


def _unified_turn(case: turns.Case, number: int) -> str:
    return turns.unified_turns(case)[number]


def _frame(labels: Sequence[Labelled], values: Sequence[Row], columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Values beside what names a candidate: its group, by which intervals are drawn, and its id."""
    schema = {"dialogue_id": pl.String(), "round": pl.Int64(), "candidate": pl.String(), **columns}
    keys = ({"dialogue_id": one.group_id, "round": 0, "candidate": one.row_id} for one in labels)
    return pl.DataFrame([key | value for key, value in zip(keys, values, strict=True)], schema=schema)
