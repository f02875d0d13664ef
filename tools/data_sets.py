"""The page that lists the data sets, made from what the readers state: `python -m tools.data_sets`."""

import sys

from pipelines.ingest.files import MAX_BYTES, MAX_FILE_BYTES
from pipelines.ingest.records import MAX_RECORD_CHARS, DataSet
from pipelines.ingest.registry import READERS

_HEAD = """\
# Data sets

What each reader of `gongqing import NAME PATH` states of its set. Made by `python -m tools.data_sets`; a test
compares. None of the sets is distributed with this project: get them from their authors, under their terms. `consent`
is what is known of the people behind the texts, in the words of `schemas/labels.py`; "synthetic" says who wrote the
words, not that no real person's story is behind them: SMILE and CPsyCoun are made from such stories.

Every reader has the same bounds. A record (a value of a JSON list, a line, a row, a dialogue put together from rows)
of more than {record:,} characters is dropped, `too_long`, and the others are read. Unpacked, a file may have
{file} GiB, all files of an import {all} GiB, whatever packs them; more is refused. So an import takes a few times the
memory of its largest file, less than 10 GiB, and what it keeps. Posts, answers and dialogues of no person's length
fall when they are cleaned, by `max_post_chars` and `max_dialogue_chars` in the settings.
"""


def listing() -> str:
    """The page, as Markdown."""
    head = _HEAD.format(record=MAX_RECORD_CHARS, file=MAX_FILE_BYTES >> 30, all=MAX_BYTES >> 30)
    return head + "".join(_section(stated) for stated in READERS.values())


def _section(stated: DataSet) -> str:
    facts = {
        "fills": f"`{stated.table}`",
        "licence": stated.licence,
        "consent": stated.consent.replace("_", " "),
        "written by": f"seeker {stated.origin.seeker}, supporter {stated.origin.supporter}",
        "made from": " ← ".join(stated.lineage) or "nothing that is known",
        "language": stated.lang,
        **({"noise": stated.noise} if stated.noise else {}),
    }
    lines = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return f"\n## `{stated.name}`: {stated.title}\n\n{stated.about}\n\n{lines}\n"


if __name__ == "__main__":
    sys.stdout.write(listing())
