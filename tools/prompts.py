"""The page of the prompts, each with an input and what was written for it: `python -m tools.prompts`."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from pipelines import annotate
from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.clean import clean_dialogues, clean_posts
from pipelines.ingest.importing import read
from pipelines.llm.prompts import Prompt, names, prompt
from pipelines.llm.providers.written import key_of, replies_to
from pipelines.llm.questions import Question
from pipelines.llm.questions import read as read_reply
from pipelines.settings import ROOT, Annotate, Settings
from pipelines.split.turns import sample_turns
from schemas.training import Splits

_HEAD = """\
# Prompts

Every prompt of `pipelines/annotate/prompts`, as it is sent: the closed sets are filled in. Made by
`python -m tools.prompts`; a test compares. Below stand an input, made from the samples that we invented, and the reply
that we wrote to it for the demo, where there is one. The system message is the prompt; the user message is the JSON of
the input and nothing else.

The version is a number and a hash of the text: whoever changes a word of a prompt asks all of its questions anew, and
no others.
"""


Asked = tuple[str, Question[Any]]  # a question, and the table that it fills


def listing() -> str:
    """The page, as Markdown."""
    return page(_HEAD, [prompt(name, annotate.__file__) for name in names(annotate.__file__)], _questions())


def page(head: str, prompts: Sequence[Prompt], questions: Iterable[Asked]) -> str:
    """A page of prompts.

    Args:
        head: What stands above them.
        prompts: In their order.
        questions: Of each prompt the first one that we wrote a reply to is shown, else its first one, if any.
    """
    shown: dict[str, Asked] = {}
    for table, question in questions:
        before = shown.get(question.prompt.id)
        if before is None or (_reply(*before) is None and _reply(table, question) is not None):
            shown[question.prompt.id] = table, question
    return head + "".join(_section(one, shown.get(one.id)) for one in prompts)


def _reply(table: str, question: Question[Any]) -> str | None:
    return replies_to(table).get(key_of(question))


def _section(prompt: Prompt, asked: Asked | None) -> str:
    facts = {
        "version": f"`{prompt.name}`",
        "language": prompt.language,
        "model that it was written for": prompt.model,
        "temperature": "as the profile says" if prompt.temperature is None else prompt.temperature,
        "longest reply": f"{prompt.max_tokens} tokens",
    }
    parts = ["", _fenced("text", prompt.text)]
    if asked is not None:
        table, question = asked
        kind = "json" if question.schema else "text"
        facts |= {"fills": f"`{table}`", "reply": "JSON" if question.schema else "text in our tags"}
        inputs = json.dumps(question.inputs, ensure_ascii=False, indent=2)
        parts += [f"An input (`{question.row_id}`):", _fenced("json", inputs)]
        if (reply := _reply(table, question)) is not None:
            read_reply(question, reply)  # the page shows no reply that would be dropped
            parts += ["What was written to it:", _fenced(kind, reply)]
    parts[0] = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return f"\n## `{prompt.id}`\n\n" + "\n\n".join(parts) + "\n"


def _fenced(kind: str, text: str) -> str:
    return f"~~~~{kind}\n{text}\n~~~~"


def _questions() -> Iterator[Asked]:
    """What is asked about the samples, as the settings have it by default."""
    posts = clean_posts(_samples("posts"))[0].with_columns(group_id="post_id")
    answered = posts.filter(pl.col("answers").list.len() > 0)
    dialogues = sample_dialogues()
    train = all_train([*posts["group_id"], *dialogues["group_id"]])
    models, turns = Annotate(), sample_turns(dialogues)[0]
    plans = {
        topics.STAGE: topics.plan(posts, (models.topics,)),
        emotions.STAGE: emotions.plan(answered, (models.emotions,)),
        ecot.STAGE: ecot.plan(answered, train, None, (models.ecot,)),
        coe.STAGE: coe.plan(answered, train, None, (models.coe,), human_only=False),  # we wrote the samples' answers
        coherence.STAGE: coherence.plan(dialogues, (models.coherence,)),
        cer.STAGE: cer.plan(turns, train, models.cer, Settings()),
    }
    for table, plan in plans.items():
        yield from ((table, question) for question in plan.questions)


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
