"""A release in the forms that other trainers read: LLaMA-Factory, ShareGPT, OpenAI fine-tuning.

Chats become chats, triplets become preferences. Prompt sets of GRPO have no answer to imitate and are left out, and so
are rows that lack words. Of `sft_cer` the last reply alone is to be learnt: OpenAI's form says so, the others cannot.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.errors import RequestError, UnknownName
from pipelines.release.publish.public import WITHHELD
from pipelines.store.release_manifest import Release
from pipelines.store.releases import rows_of
from schemas.dropped import Row

_SPEAKERS = {"system": "system", "user": "human", "assistant": "gpt"}
# Entries of LLaMA-Factory's `dataset_info.json`.
_CHAT = {
    "formatting": "sharegpt",
    "columns": {"messages": "messages"},
    "tags": {
        **{"role_tag": "role", "content_tag": "content"},
        **{"user_tag": "user", "assistant_tag": "assistant", "system_tag": "system"},
    },
}
_PREFERENCE = {
    "formatting": "sharegpt",
    "ranking": True,
    "columns": {"messages": "conversations", "chosen": "chosen", "rejected": "rejected"},
}

_LACKING = "words are withheld"
_OPENED = "LLaMA-Factory takes no chat that the supporter opens"
_TRIPLETS = "rm_triplets"

Convert = Callable[[Row], dict[str, Any]]


class Exported(NamedTuple):
    """Rows written by file, and rows left out by reason."""

    written: dict[str, int]
    left_out: dict[str, int]


def export_jsonl(release: Release, folder: Path, target: Path, form: str) -> Exported:
    """Write the rows of a release to an empty folder in a form of `FORMS`: `<config>_<split>.jsonl`.

    Raises UnknownName for another form, RequestError for a release of which nothing can be written in it.
    """
    if form not in FORMS:
        raise UnknownName("form", form, FORMS)
    written: dict[str, int] = {}
    left_out: Counter[str] = Counter()
    convert_chat, convert_triplet = FORMS[form]
    for config, shards in release.configs.items():
        if config.startswith("grpo_"):
            left_out[f"{config}: a prompt set has no answer to imitate"] = release.rows(config)
            continue
        for split in dict.fromkeys(shard.split for shard in shards):
            rows = (row for shard in shards if shard.split == split for row in rows_of(folder / shard.path))
            name = f"{config}_{split}.jsonl"
            lost = _write(target / name, rows, convert_triplet if config == _TRIPLETS else convert_chat, form)
            left_out.update({f"{config}: {reason}": count for reason, count in lost.items()})
            if count := release.rows(config, split) - lost.total():
                written[name] = count
    if not written:
        why = "; ".join(left_out) or "it has no rows"
        raise RequestError(
            f"nothing of {release.name} can be written for {form}: {why}",
            hint="--private writes whole rows, for a trainer on machines of yours"
            if any(reason.endswith(_LACKING) for reason in left_out)
            else "chats and triplets come with labels and chains (docs/training-sets.md)",
        )
    if form == "llama-factory":
        entries = {
            name.removesuffix(".jsonl"): {"file_name": name} | (_PREFERENCE if name.startswith(_TRIPLETS) else _CHAT)
            for name in written
        }
        (target / "dataset_info.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    return Exported(written, left_out)


def _write(path: Path, rows: Iterator[Row], convert: Convert, form: str) -> Counter[str]:
    """Writes the rows that the form has a place for; of the others how many, by reason. No loader reads a file without
    rows: there is none then.
    """
    lost: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            if row.get(WITHHELD):
                lost[_LACKING] += 1
            elif form == "llama-factory" and [one["role"] for one in row.get("messages", [])][1:2] == ["assistant"]:
                lost[_OPENED] += 1
            else:
                file.write(json.dumps(convert(row), ensure_ascii=False) + "\n")
    if not path.stat().st_size:
        path.unlink()
    return lost


def _messages(row: Row) -> dict[str, Any]:
    return {"messages": row["messages"]}


def _weighted(row: Row) -> dict[str, Any]:
    """A weight of 0 for what is not to be learnt: a source's replies in the history of a warm start."""
    *history, last = row["messages"]
    if row["row_id"].endswith("/sft_cer"):
        history = [one | {"weight": 0} if one["role"] == "assistant" else one for one in history]
    return {"messages": [*history, last]}


def _conversations(row: Row) -> dict[str, Any]:
    messages = row["messages"]
    return {"conversations": [{"from": _SPEAKERS[one["role"]], "value": one["content"]} for one in messages]}


def _ranked(row: Row) -> dict[str, Any]:
    return {
        "conversations": [{"from": "human", "value": row["query"]}],
        "chosen": {"from": "gpt", "value": row["positive"]},
        "rejected": {"from": "gpt", "value": row["negative"]},
    }


def _preferred(row: Row) -> dict[str, Any]:
    return {
        "input": {"messages": [{"role": "user", "content": row["query"]}]},
        "preferred_output": [{"role": "assistant", "content": row["positive"]}],
        "non_preferred_output": [{"role": "assistant", "content": row["negative"]}],
    }


# What converts a chat, and what a triplet.
FORMS: dict[str, tuple[Convert, Convert]] = {
    "llama-factory": (_messages, _ranked),
    "sharegpt": (_conversations, _ranked),
    "openai": (_weighted, _preferred),
}
