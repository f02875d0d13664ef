"""A model as judge of held-out candidates that people labelled, under the prompts of reward models (C Table 1)."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from pipelines.evaluate.answering import STAGE
from pipelines.evaluate.reward_model import STEPS, score_lengths, score_verdicts
from pipelines.judge import turns
from pipelines.judge.judging import MODES, OUTCOME, PROCESS, UNIFIED, Mode
from pipelines.llm.interface import LLMClient
from pipelines.llm.questions import Exchange, Question
from pipelines.trainsets.labelled import Labelled

Row = dict[str, Any]
_VERDICTS: dict[str, pl.DataType] = {**dict.fromkeys(STEPS, pl.Boolean()), "preference": pl.String()}
_LENGTHS: dict[str, pl.DataType] = dict.fromkeys((*STEPS, "response", "reference"), pl.Int64())


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
