"""A release in the forms that other trainers read: LLaMA-Factory, ShareGPT, OpenAI fine-tuning.

Chats become chats, triplets become preferences. Prompt sets of GRPO have no answer to imitate and are left out, and so
are rows that lack words.
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
            count = _write(target / name, rows, convert_triplet if config == _TRIPLETS else convert_chat)
            if count:
                written[name] = count
            if lacking := release.rows(config, split) - count:
                left_out[f"{config}: {_LACKING}"] += lacking
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


def _write(path: Path, rows: Iterator[Row], convert: Convert) -> int:
    """Writes the rows that have all their words; how many. No loader reads a file without rows: there is none then."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in (row for row in rows if not row.get(WITHHELD)):
            file.write(json.dumps(convert(row), ensure_ascii=False) + "\n")
            count += 1
    if not count:
        path.unlink()
    return count


def _messages(row: Row) -> dict[str, Any]:
    return {"messages": row["messages"]}


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
    "openai": (_messages, _preferred),
}
