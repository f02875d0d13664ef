"""The page of the judges' prompts, as `annotate.listing` makes its own: `python -m pipelines.judging.listing`."""

import sys
from collections.abc import Iterator

from pipelines.annotate.listing import Asked, page, sample_dialogues
from pipelines.judging import mindchat
from pipelines.judging.prompting import names
from pipelines.judging.rules.answers import ANSWERS

_HEAD = """\
# Prompts of the judges

Every prompt of `pipelines/judging/prompts`, as it is sent. Made by `python -m pipelines.judging.listing`; a test
compares. Below each stand an input, made from the samples that we invented, and what provider `rules` replies to it: no
model, so an example of the form, and no judgement. See [prompts.md](prompts.md) for how to read it. C's judge is asked
with the prompts that its models learn from, `rm_*.md` in `pipelines/release/prompts`
([training-sets.md](training-sets.md)).
"""


def listing() -> str:
    """The page, as Markdown."""
    return page(_HEAD, [f"judging.{name}" for name in names()], _questions(), ANSWERS)


def _questions() -> Iterator[Asked]:
    """A question of each prompt: the supporter's last words of a dialogue, judged."""
    for _, some in sample_dialogues().group_by("lang", maintain_order=True):
        row = some.row(0, named=True)
        last = max(place for place, turn in enumerate(row["turns"]) if turn["role"] == "supporter")
        history, answer = row["turns"][:last], row["turns"][last]["text"]
        yield "r_answer", mindchat.question(row["dialogue_id"], row["lang"], history, answer, "rules-v1")


if __name__ == "__main__":
    sys.stdout.write(listing())
