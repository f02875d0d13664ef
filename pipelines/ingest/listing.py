"""The page that lists the data sets, made from what the readers state: `python -m pipelines.ingest.listing`."""

import sys

from pipelines.ingest.data_set import DataSet
from pipelines.ingest.registry import READERS

_HEAD = """\
# Data sets

What each reader of `gongqing import NAME PATH` states of its set. Made by `python -m pipelines.ingest.listing`; a test
compares. None of the sets is distributed with this project: get them from their authors, under their terms. `consent`
is what is known of the people behind the texts, in the words of `schemas/labels.py`; "synthetic" says who wrote the
words, not that no real person's story is behind them: SMILE and CPsyCoun are made from such stories.
"""


def listing() -> str:
    """The page, as Markdown."""
    return _HEAD + "".join(_section(stated) for stated in READERS.values())


def _section(stated: DataSet) -> str:
    facts = {
        "fills": f"`{stated.table}`",
        "licence": stated.licence,
        "consent": stated.consent.replace("_", " "),
        "written by": f"seeker {stated.origin.seeker}, supporter {stated.origin.supporter}",
        "made from": " ← ".join(stated.lineage) or "nothing that is known",
        "language": stated.lang,
    }
    lines = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return f"\n## `{stated.name}`: {stated.title}\n\n{stated.about}\n\n{lines}\n"


if __name__ == "__main__":
    sys.stdout.write(listing())
