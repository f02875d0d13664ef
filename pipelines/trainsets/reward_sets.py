"""What C's reward models learn: `rm_process`, `rm_outcome` and `rm_unified`, verdicts of people in words.

All three hold the same verdicts on the same candidates, right and wrong ones: step by step, on the responses alone, and
in one conversation in which every verdict sees those before it (UnifiReward). Rewritten candidates stand beside their
sources, by `variant`: its recipe says which of them a model learns from. Only training rounds have labels.
"""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from pipelines.core.stage import stage
from pipelines.judge.turns import (
    STEPS,
    Case,
    as_choice,
    outcome_turn,
    process_turn,
    reference_first,
    system_prompt,
    unified_turns,
    write_choice,
    write_step,
)
from pipelines.llm.tasks import Result, rows
from pipelines.settings import Settings
from pipelines.trainsets.labelled import Labelled, labelled
from schemas.dropped import Lost, dropped
from schemas.table import Table
from schemas.training import RmOutcome, RmProcess, RmUnified

Samples = list[tuple[str, list[dict[str, str]]]]  # the end of the row id of a sample, and its messages


def process_samples(labels: Sequence[Labelled], lost: Sequence[Lost], seed: int = 0) -> Result:
    """One sample a step: the dialogue and the steps so far with their verdicts, and the verdict on this step.

    Args:
        labels: What was labelled (`labelled`).
        lost: What `labelled` lost.
        seed: The place of the reference follows from it and from the candidate's id.

    Returns:
        `(kept, dropped)`; drops are those of `labelled`, in the unit `candidate`.
    """
    return _samples(RmProcess, "rm_process", _process, labels, lost, seed)


def outcome_samples(labels: Sequence[Labelled], lost: Sequence[Lost], seed: int = 0) -> Result:
    """One sample a candidate: the dialogue and two responses, and which is better. As `process_samples` else."""
    return _samples(RmOutcome, "rm_outcome", _outcome, labels, lost, seed)


def unified_samples(labels: Sequence[Labelled], lost: Sequence[Lost], seed: int = 0) -> Result:
    """One conversation a candidate: three steps and the responses, each with its verdict. As `process_samples` else."""
    return _samples(RmUnified, "rm_unified", _unified, labels, lost, seed)


def _samples(
    table: type[Table],
    name: str,
    write: Callable[[Labelled, Case], Samples],
    labels: Sequence[Labelled],
    lost: Sequence[Lost],
    seed: int,
) -> Result:
    kept: list[dict[str, Any]] = []
    for one in labels:
        case = Case.of(one.history, one.candidate, one.reference, reference_first(one.row_id, seed))
        system = {"role": "system", "content": system_prompt(name, one.candidate.lang).text}
        for part, messages in write(one, case):
            kept.append({"row_id": one.row_id + part, "messages": [system, *messages], **one.columns()})
    return rows(table, kept), dropped(name, lost)


def _process(one: Labelled, case: Case) -> Samples:
    verdicts = _verdicts(one)
    return [
        (f"/step{step}", _exchange(process_turn(case, step, verdicts[: step - 1]), verdicts[step - 1]))
        for step in STEPS
    ]


def _outcome(one: Labelled, case: Case) -> Samples:
    return [("/outcome", _exchange(outcome_turn(case), _preferred(one, case)))]


def _unified(one: Labelled, case: Case) -> Samples:
    turns = zip(unified_turns(case), [*_verdicts(one), _preferred(one, case)], strict=True)
    return [("/unified", [message for turn, verdict in turns for message in _exchange(turn, verdict)])]


def _verdicts(one: Labelled) -> list[str]:
    return [write_step(step, right, one.candidate.lang) for step, right in zip(STEPS, one.right, strict=True)]


def _preferred(one: Labelled, case: Case) -> str:
    return write_choice(as_choice(one.preference, case.reference_first), one.candidate.lang)


def _exchange(turn: str, verdict: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": turn}, {"role": "assistant", "content": verdict}]


def _stage_of(table: str, samples: Callable[..., Result]) -> Callable[..., Result]:
    """The stage of a set that one of C's reward models learns, from people's labels."""

    @stage(
        table,
        group="training",
        reads=("seed",),
        units={table: {"candidate": ("cer_labels", "rewritten_rounds")}},
        optional_parents=("cer_labels", "rewritten_rounds"),
    )
    def make(
        sampled_turns: pl.DataFrame,
        splits: pl.DataFrame,
        cer_candidates: pl.DataFrame,
        cer_labels: pl.DataFrame,
        rewritten_rounds: pl.DataFrame,
        settings: Settings,
    ) -> Result:
        labels, lost = labelled(sampled_turns, splits, cer_candidates, cer_labels, rewritten_rounds)
        return samples(labels, lost, settings.seed)

    return make


make_rm_process = _stage_of("rm_process", process_samples)
make_rm_outcome = _stage_of("rm_outcome", outcome_samples)
make_rm_unified = _stage_of("rm_unified", unified_samples)
