"""The page of the judges' prompts, as `tools.prompts` makes its own: `python -m tools.judge_prompts`."""

import sys
from collections.abc import Iterator

from pipelines import judge
from pipelines.judge.judging import scoring_question
from pipelines.llm.prompts import names, prompt
from pipelines.settings import Rewards
from tools.prompts import Asked, page, sample_dialogues

_HEAD = """\
# Prompts of the judges

Every prompt of `pipelines/judge/prompts`, as it is sent. Made by `python -m tools.judge_prompts`; a test
compares. Below each stands an input, made from the samples that we invented. See [prompts.md](prompts.md) for how to
read it. C's judge is asked with the prompts that its models learn from, `rm_*.md` in the same folder
([training-sets.md](training-sets.md)).
"""


def listing() -> str:
    """The page, as Markdown."""
    prompts = [prompt(name, judge.__file__) for name in names(judge.__file__) if name.startswith("mindchat")]
    return page(_HEAD, prompts, _questions())


def _questions() -> Iterator[Asked]:
    """A question of each prompt: the supporter's last words of a dialogue, judged."""
    for _, some in sample_dialogues().group_by("lang", maintain_order=True):
        row = some.row(0, named=True)
        last = max(place for place, turn in enumerate(row["turns"]) if turn["role"] == "supporter")
        history, answer = row["turns"][:last], row["turns"][last]["text"]
        yield "r_answer", scoring_question(row["dialogue_id"], row["lang"], history, answer, Rewards().mindchat)


if __name__ == "__main__":
    sys.stdout.write(listing())
