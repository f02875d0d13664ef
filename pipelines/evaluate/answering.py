"""Answers to held-out prompts: asked of a model, read from a file, or the baselines that no model wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.errors import UnreadableFile
from pipelines.evaluate.metrics import BASELINES, baselines
from pipelines.evaluate.metrics import Question as Post
from pipelines.llm.interface import LLMClient
from pipelines.llm.prompts import Prompt
from pipelines.llm.questions import Message, Question
from pipelines.rewards import format as form
from schemas.evaluations import ModelAnswers
from schemas.ids import unit_interval
from schemas.reasoning import CER_TAGS, COE_TAGS, ECOT_TAGS, tags
from schemas.tables import TABLES

STAGE = "evaluation"  # in the ledger
TASK = "evaluated_answer"


class Form(NamedTuple):
    """The form that a prompt set asks for: its tags, and whether an output has it, by the reward of its paper."""

    tags: tuple[str, ...]
    holds: Callable[[str], bool]


# The sets with prompts to answer.
SETS = {
    "grpo_ecot": Form(ECOT_TAGS, lambda output: form.ecot(output).strict),
    "grpo_coe": Form(COE_TAGS, lambda output: form.coe(output) == 1),
    "grpo_cer": Form(CER_TAGS, lambda output: form.cer(output) == 1),
}


class AnswerLine(BaseModel):
    """A line of a file of answers."""

    model_config = ConfigDict(strict=True, extra="forbid")

    row_id: str
    output: str
    model: str | None = None


def draw_prompts(prompts: pl.DataFrame, size: int | None, seed: int = 0) -> pl.DataFrame:
    """At most `size` rows of a prompt set, drawn by the seed and each row's id, so that a greater size keeps what a
    smaller one has drawn; by id.
    """
    rows = sorted(prompts["row_id"], key=lambda row_id: unit_interval(seed, "evaluate", row_id))
    return prompts.filter(pl.col("row_id").is_in(rows[:size])).sort("row_id")


def ask_model(client: LLMClient, alias: str, prompts: pl.DataFrame, name: str) -> tuple[pl.DataFrame, dict[str, int]]:
    """What a model answers to rows of a prompt set, each asked word for word as a policy is.

    Returns rows of `model_answers`, and how many rows have no answer, by reason. Raises what `client.ask` raises.
    """
    replies = client.ask(STAGE, questions_of(prompts, alias))
    outputs: dict[str, tuple[str, str | None]] = {}
    lost: dict[str, int] = {}
    for reply in replies:
        if reply.value is None:
            lost[str(reply.reason)] = lost.get(str(reply.reason), 0) + 1
        else:
            outputs[reply.question.row_id] = reply.value, reply.provenance.request_key
    return answer_rows(prompts, name, outputs), lost


def questions_of(prompts: pl.DataFrame, alias: str) -> list[Question[str]]:
    """The questions that ask a model for its answers to rows of a prompt set."""
    questions = []
    for row in prompts.iter_rows(named=True):
        info = row["extra_info"]
        identity, _, version = info["prompt_version"].partition("@")
        questions.append(
            Question(
                task=TASK,
                row_id=row["row_id"],
                prompt=Prompt(identity, version, row["prompt"][0]["content"], info["lang"]),
                inputs={},
                parse=str,
                model=alias,
                messages=[Message(one["role"], one["content"]) for one in row["prompt"]],
            )
        )
    return questions


def read_answers(path: Path, prompts: pl.DataFrame) -> pl.DataFrame:
    """Rows of `model_answers` of a file of JSON lines: `row_id`, `output`, and `model` where there are several (else
    the file's name).

    Raises UnreadableFile for a line that is none, one about a row that the prompt set does not hold out, a second
    answer of a model to a row, and a model that is called as a baseline; nothing is taken then.
    """
    found: dict[str, dict[str, tuple[str, str | None]]] = {}
    known = set(prompts["row_id"])
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"no answers: {error}", where=path, hint="name a file of JSON lines in UTF-8") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            one = AnswerLine.model_validate(json.loads(line))
            f"{one.output}{one.model}".encode()  # half a character is held by no table
        except (ValueError, ValidationError, RecursionError) as error:
            hint = '{"row_id": …, "output": …, "model": …}; model may be left out'
            raise UnreadableFile(f"no answer: {type(error).__name__}", where=where, hint=hint) from error
        if one.row_id not in known:
            hint = "gongqing show grpo_coe --json (or another set) prints the rows; those of split test are answered"
            raise UnreadableFile("it answers no held-out row of the set", where=where, hint=hint)
        if (model := one.model or path.stem) in BASELINES:
            raise UnreadableFile(f"a model is called as a baseline: {model}", where=where, hint="give it another name")
        answers = found.setdefault(model, {})
        if one.row_id in answers:
            raise UnreadableFile("the same model has answered this row above", where=where, hint="leave one of them")
        answers[one.row_id] = one.output, None
    if not found:
        raise UnreadableFile("there is no answer in it", where=path, hint="a line an answer")
    return pl.concat([answer_rows(prompts, model, outputs) for model, outputs in sorted(found.items())])


def baseline_rows(prompts: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Rows of `model_answers` of the three baselines of `pipelines.evaluate.metrics.baselines`."""
    info = {row["row_id"]: row["extra_info"] for row in prompts.iter_rows(named=True)}
    posts = [Post(row_id, one["dialogue"][-1]["text"], one["references"]) for row_id, one in info.items()]
    frames = []
    for name, answers in baselines(posts, seed=seed).items():
        outputs: dict[str, tuple[str, str | None]] = {one.question_id: (one.text, None) for one in answers}
        references = {one.question_id: list(one.references) for one in answers}
        frames.append(answer_rows(prompts, name, outputs, references))
    return pl.concat(frames)


def answer_rows(
    prompts: pl.DataFrame,
    model: str,
    outputs: dict[str, tuple[str, str | None]],
    references: dict[str, list[str]] | None = None,
) -> pl.DataFrame:
    """Rows of `model_answers`: `outputs` are texts, each with the key of its request, by row. With `references` it is a
    baseline: the text is the answer, and those are what it is held against.
    """
    rows: list[dict[str, Any]] = []
    for row in prompts.iter_rows(named=True):
        if row["row_id"] not in outputs:
            continue
        info, (output, key) = row["extra_info"], outputs[row["row_id"]]
        rows.append(
            {
                **{"row_id": row["row_id"], "model": model, "baseline": references is not None, "lang": info["lang"]},
                "output": output,
                "answer": answer_of(output, form_of(row["data_source"]).tags) if references is None else output,
                "dialogue": [{"role": turn["role"], "text": turn["text"]} for turn in info["dialogue"]],
                "references": info["references"] if references is None else references[row["row_id"]],
                "request_key": key,
            }
        )
    return ModelAnswers.validate(pl.DataFrame(rows, schema=TABLES["model_answers"].polars_schema()))


def form_of(data_source: str) -> Form:
    """The form that prompts of a `data_source` ask for."""
    return SETS[f"grpo_{data_source.rpartition('/')[2]}"]


def answer_of(output: str, names: tuple[str, ...]) -> str | None:
    """What the seeker is to read: what stands in ``<answer>``; all of a text without any tag of its form, for a model
    may answer in plain words; else None, since there is no telling.
    """
    if not tags(output, names):
        return output.strip() or None
    return form.section(output, "answer", names)
