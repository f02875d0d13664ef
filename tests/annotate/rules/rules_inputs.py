"""Inputs of the rules' tasks, made of the real sets of the shared data."""

import re
from typing import Any

from pipelines.store import Store

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
