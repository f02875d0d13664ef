"""Inputs of the rules' tasks, made of the real sets of the shared data; and a reply to a talk written short."""

import re
from typing import Any

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.store import Store
from schemas.reasoning import Cer

# What the rules quote of a post stands between these, as it is in the post.
QUOTED = re.compile("「([^」]*)」")


def quotations(text: str) -> list[str]:
    return QUOTED.findall(text)


def posts(store: Store) -> list[dict[str, Any]]:
    return store.read("unique_posts").collect().to_dicts()


def histories(store: Store, lang: str) -> list[list[dict[str, str]]]:
    turns = store.read("sampled_turns").collect()
    return [
        [{"role": turn["role"], "text": turn["text"]} for turn in row["history"]]
        for row in turns.iter_rows(named=True)
        if row["lang"] == lang
    ]


def dialogues(store: Store) -> list[dict[str, Any]]:
    rows = store.read("unique_dialogues").collect()
    return [
        {
            "source": row["source"],
            "lang": row["lang"],
            "turns": [{"role": turn["role"], "text": turn["text"]} for turn in row["turns"]],
        }
        for row in rows.iter_rows(named=True)
    ]


def cer(lang: str, *said: str) -> Cer:
    """The reply to a talk in which the seeker begins and both take turns."""
    history = [{"role": ("seeker", "supporter")[n % 2], "text": text} for n, text in enumerate(said)]
    return Cer.parse(ANSWERS["cer"]({"lang": lang, "history": history}))
