"""The page of the prompts, each with an input and the rules' reply: `python -m tools.prompts`."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from pipelines import annotate
from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.annotate.rules.answers import ANSWERS
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.ingest.importing import read
from pipelines.llm.interface import Answers
from pipelines.llm.label_sets import names
from pipelines.llm.questions import Question
from pipelines.llm.questions import read as read_reply
from pipelines.settings import ROOT
from pipelines.split.turns import sample_turns
from schemas.training import Splits

_HEAD = """\
# Prompts

Every prompt of `pipelines/annotate/prompts`, as it is sent: the closed sets are filled in. Made by
`python -m tools.prompts`; a test compares. Below each stand an input, made from the samples that we
invented, and what provider `rules` replies to it: no model, so an example of the form and a baseline, not of what a
model writes. The system message is the prompt; the user message is the JSON of the input and nothing else.

The version is a number and a hash of the text: whoever changes a word of a prompt asks all of its questions anew, and
no others.
"""


Asked = tuple[str, Question[Any]]  # a question, and the table that it fills


def listing() -> str:
    """The page, as Markdown."""
    return page(_HEAD, [f"annotate.{name}" for name in names(annotate.__file__)], _questions(), ANSWERS)


def page(head: str, ids: Sequence[str], questions: Iterable[Asked], answers: Answers) -> str:
    """A page of prompts.

    Args:
        head: What stands above them.
        ids: Of the prompts, in their order.
        questions: Of which the last one of each prompt is shown.
        answers: What the rules reply, by task.
    """
    asked = {question.prompt.id: (table, question) for table, question in questions}
    return head + "".join(_section(*asked[name], answers) for name in ids)


def _section(table: str, question: Question[Any], answers: Answers) -> str:
    prompt = question.prompt
    facts = {
        "fills": f"`{table}`",
        "version": f"`{prompt.name}`",
        "language": prompt.language,
        "model that it was written for": prompt.model,
        "reply": "JSON" if question.schema else "text in our tags",
        "temperature": "as the profile says" if prompt.temperature is None else prompt.temperature,
        "longest reply": f"{prompt.max_tokens} tokens",
    }
    reply = answers[question.task](question.inputs)
    read_reply(question, reply)  # the page shows no reply that would be dropped
    parts = (
        "\n".join(f"- {name}: {fact}" for name, fact in facts.items()),
        _fenced("text", prompt.text),
        f"An input (`{question.row_id}`):",
        _fenced("json", json.dumps(question.inputs, ensure_ascii=False, indent=2)),
        "What the rules reply:",
        _fenced("json" if question.schema else "text", reply),
    )
    return f"\n## `{prompt.id}`\n\n" + "\n\n".join(parts) + "\n"


def _fenced(kind: str, text: str) -> str:
    return f"~~~~{kind}\n{text}\n~~~~"


def _questions() -> Iterator[Asked]:
    """The first question of each prompt."""
    posts = clean_posts(_samples("posts"))[0].with_columns(group_id="post_id")
    answered = posts.filter(pl.col("answers").list.len() > 0)
    dialogues = sample_dialogues()
    train = all_train([*posts["group_id"], *dialogues["group_id"]])
    model = ("rules-v1",)
    plans = {
        topics.STAGE: [topics.plan(posts, model)],
        emotions.STAGE: [emotions.plan(answered, model)],
        ecot.STAGE: [ecot.plan(answered, train, None, model)],
        coe.STAGE: [coe.plan(answered, train, None, model, human_only=False)],  # we wrote the samples' answers
        coherence.STAGE: [coherence.plan(some, model) for _, some in dialogues.group_by("lang", maintain_order=True)],
        cer.STAGE: [
            cer.plan(some, train, model) for _, some in sample_turns(dialogues)[0].group_by("lang", maintain_order=True)
        ],
    }
    for table, of_languages in plans.items():
        yield from ((table, plan.questions[0]) for plan in of_languages)


def sample_dialogues() -> pl.DataFrame:
    """The dialogues that we invented, cleaned, each a group of its own."""
    return clean_dialogues(_samples("dialogues"))[0].with_columns(group_id="dialogue_id")


def _samples(kind: str) -> pl.DataFrame:
    path = ROOT / "samples" / f"{kind}.jsonl"
    # No author stands on the page, so any key will do.
    return read("mapped", path, data_set="sample", author_key=bytes(16), mapping=path.with_suffix(".toml")).kept


def all_train(groups: list[str]) -> pl.DataFrame:
    """Splits in which every group trains."""
    rows: list[tuple[str, str, str, list[str]]] = [(group, "train", "", []) for group in dict.fromkeys(groups)]
    return pl.DataFrame(rows, schema=Splits.polars_schema(), orient="row")


if __name__ == "__main__":
    sys.stdout.write(listing())
