"""ESC-Eval: five rounds with a seeker who is played from a card, then seven dimensions by two judges, their mean.

    inspect eval pipelines/evaluate/tasks/esc_eval.py --model … --model-role seeker=… --model-role judge1=… \\
        --model-role judge2=… -T profiles=FILE

With `-T profiles=LOG.json` the dialogues of a stored log are judged again.
"""

import json
from pathlib import Path
from typing import Annotated

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import Field

from pipelines.errors import UnreadableFile
from pipelines.evaluate.tasks.dialogue import as_text, ask_record, ask_words, card_of, read_seekers, reply_of
from pipelines.llm.replies import Reason, Verdict

ROUNDS = 5
JUDGES = ("judge1", "judge2")
Points = Annotated[int, Field(ge=0, le=4)]


class Dimensions(Verdict):
    """The seven dimensions, 0 … 4. The grounds come first."""

    why: Reason
    fluency: Points
    expression: Points
    empathy: Points
    information: Points
    skillful: Points
    humanoid: Points
    overall: Points


DIMENSIONS = tuple(name for name in Dimensions.model_fields if name != "why")


@task
def esc_eval(profiles: str, form: str = "plain") -> Task:
    """The benchmark over a file of role cards. `form`: `plain`, or `cer` for a model that answers in C's form.

    Of a log of it (`.json`) the judges are asked about its dialogues, and nobody else says anything again.
    """
    dataset = _recorded(profiles) if profiles.endswith(".json") else read_seekers(profiles)
    return Task(dataset=dataset, solver=talk(form), scorer=dimensions(), name="esc_eval")


def _recorded(log: str) -> MemoryDataset:
    """The dialogues of a log. Raises UnreadableFile for another file."""
    try:
        # Not by read_eval_log: within a loop it patches asyncio for the whole process, whose loops then stay open.
        samples = [one for one in json.loads(Path(log).read_bytes())["samples"] if "dialogue" in one["metadata"]]
        recorded = [Sample(input=one["input"], id=one["id"], metadata=one["metadata"]) for one in samples]
    except (OSError, ValueError, LookupError, TypeError) as error:
        hint = "profiles of seekers are JSON lines: name their file .jsonl"
        raise UnreadableFile("no log of ESC-Eval", where=log, hint=hint) from error
    return MemoryDataset(recorded)


@solver
def talk(form: str) -> Solver:
    """Five rounds, where there are not as many yet."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - as inspect calls it
        seeker, tested = get_model(role="seeker"), get_model()
        turns: list[dict[str, str]] = state.metadata.get("dialogue", [])
        while len(turns) < 2 * ROUNDS:
            inputs = {"seeker": card_of(state.metadata), "dialogue": turns}
            turns.append({"role": "seeker", "text": await ask_words(seeker, "seeker_speaks", inputs, state.epoch)})
            turns.append({"role": "supporter", "text": await reply_of(tested, turns, form, state.epoch)})
        state.metadata["dialogue"] = turns
        state.output.completion = as_text(turns)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def dimensions() -> Scorer:
    """Each dimension in the mean of both judges; what each of them says is kept."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - as inspect calls it
        inputs = {"dialogue": state.metadata["dialogue"]}
        given = {
            role: await ask_record(get_model(role=role), "esc_judge", inputs, Dimensions, state.epoch)
            for role in JUDGES
        }
        value = {name: sum(getattr(one, name) for one in given.values()) / len(JUDGES) for name in DIMENSIONS}
        kept = {role: one.model_dump() for role, one in given.items()}
        return Score(value=value, answer=state.output.completion, metadata=kept | {"type": state.metadata["character"]})

    return score
