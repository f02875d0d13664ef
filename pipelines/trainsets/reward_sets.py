"""What C's reward models learn: `rm_process`, `rm_outcome` and `rm_unified`, verdicts of people in words.

All three hold the same verdicts on the same candidates, right and wrong ones: step by step and on the responses alone,
where no sample shows another verdict, and in one conversation where each sees those before it (UnifiReward). Rewritten
candidates stand beside their sources, by `variant`: its recipe says which of them a model learns from. Held-out rounds
are there as they were written: C measures its judges on those of 574 samples (Table 1).
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


def _process(one: Labelled, case: Case) -> Samples:
    verdicts = _verdicts(one)
    return [(f"/step{step}", _exchange(process_turn(case, step), verdicts[step - 1])) for step in STEPS]


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


# The schema of each set, and what writes its samples: one a step, one a candidate on the responses alone, and one
# conversation a candidate.
_SETS: dict[str, tuple[type[Table], Callable[[Labelled, Case], Samples]]] = {
    "rm_process": (RmProcess, _process),
    "rm_outcome": (RmOutcome, _outcome),
    "rm_unified": (RmUnified, _unified),
}


def reward_samples(name: str, labels: Sequence[Labelled], lost: Sequence[Lost], seed: int = 0) -> Result:
    """The samples of one of the three sets.

    Takes what `labelled` gives; the place of the reference follows from the seed and from the candidate's id.

    Returns:
        `(kept, dropped)`; drops are those of `labelled`, in the unit `candidate`.
    """
    table, write = _SETS[name]
    kept: list[dict[str, Any]] = []
    for one in labels:
        case = Case.of(one.history, one.candidate, one.reference, reference_first(one.row_id, seed))
        system = {"role": "system", "content": system_prompt(name, one.candidate.lang).text}
        for part, messages in write(one, case):
            kept.append({"row_id": one.row_id + part, "messages": [system, *messages], **one.columns()})
    return rows(table, kept), dropped(name, lost)


def _stage_of(table: str) -> Callable[..., Result]:
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
        return reward_samples(table, labels, lost, settings.seed)

    return make


make_rm_process = _stage_of("rm_process")
make_rm_outcome = _stage_of("rm_outcome")
make_rm_unified = _stage_of("rm_unified")
