"""SAGE: a seeker who feels, turn by turn (emotion from 40, by ±10, success at 100, failure below 10).

    inspect eval pipelines/evaluate/tasks/sage.py --model openai/… --model-role seeker=openai/… -T profiles=FILE

Two settings that do not belong into one table: `published`, 10 turns of the seeker, as the public code and its recorded
results have it; `compeer`, 20, as C says. The profiles of its authors are not ours to give: `profiles` names a file.
"""

from typing import get_args

from inspect_ai import Task, task
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from pipelines.errors import UnknownName
from pipelines.evaluate.emotions import START, TURNS, Feeling, Setting, end_of, moved
from pipelines.evaluate.tasks.dialogue import as_text, ask_record, ask_words, card_of, read_seekers, reply_of


@task
def sage(profiles: str, setting: Setting = "published", form: str = "plain") -> Task:
    """The benchmark over a file of profiles. `form`: `plain`, or `cer` for a model that answers in C's form."""
    if setting not in TURNS:
        raise UnknownName("setting of SAGE", setting, get_args(Setting))
    return Task(
        dataset=read_seekers(profiles), solver=talk(TURNS[setting], form), scorer=emotion(), name=f"sage_{setting}"
    )


@solver
def talk(turns: int, form: str) -> Solver:
    """A dialogue of at most so many turns of the seeker; the emotion at each of them is kept."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - as inspect calls it
        seeker, tested = get_model(role="seeker"), get_model()
        card, spoken = card_of(state.metadata), list[dict[str, str]]()
        emotions = [START]
        while True:
            inputs = {"seeker": card, "dialogue": spoken, "emotion": emotions[-1]}
            spoken.append({"role": "seeker", "text": await ask_words(seeker, "seeker_speaks", inputs, state.epoch)})
            spoken.append({"role": "supporter", "text": await reply_of(tested, spoken, form, state.epoch)})
            if len(emotions) == turns:
                break
            inputs = {"seeker": card, "dialogue": spoken, "emotion": emotions[-1]}
            feeling = await ask_record(seeker, "seeker_feels", inputs, Feeling, state.epoch)
            emotions.append(moved(emotions[-1], feeling.change))
            if end_of(emotions[-1]) is not None:
                break
        state.metadata |= {"dialogue": spoken, "emotions": emotions}
        state.output.completion = as_text(spoken)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def emotion() -> Scorer:
    """The last emotion, whether it was a success or a failure, and the emotion of every turn."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - as inspect calls it
        emotions = state.metadata["emotions"]
        ended = end_of(emotions[-1])
        value = {"emotion": emotions[-1], "success": int(ended == "success"), "failure": int(ended == "failure")}
        kept = {"emotions": emotions, "type": state.metadata["character"]}
        return Score(value=value, answer=state.output.completion, metadata=kept)

    return score
