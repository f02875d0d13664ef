"""The prompts behind a release: of the models that wrote its tables, and of those that will learn from it."""

from collections.abc import Iterator
from functools import cache
from typing import get_args

import polars as pl

from pipelines.judge.turns import system_prompt
from pipelines.llm.prompts import Prompt
from pipelines.release.checks.released import Released
from pipelines.trainsets.prompt_sets import cer_system_prompt, coe_system_prompt
from schemas.ids import digest
from schemas.reasoning import Lang
from schemas.tables import TABLES

_NO_PROMPT = "none"  # of a row that is as it was written: nothing was asked
_JUDGES = ("rm_process", "rm_outcome", "rm_unified")


def used_prompts(released: Released) -> dict[str, str]:
    """Every prompt by which something was made, and under which something is taught, by its id.

    Returns:
        id → `id@version`; several versions of one stand side by side.
    """
    used: set[str] = set()
    for table in {version.table for version in released.pins.values()}:
        columns = TABLES[table].column_names()
        if "prompt_version" in columns:
            used |= set(released.table(table)["prompt_version"])
        elif "extra_info" in columns:
            used |= set(released.table(table)["extra_info"].struct.field("prompt_version"))
        elif "messages" in columns:
            used |= set(_systems(table, released.table(table)["messages"]))
    versions: dict[str, list[str]] = {}
    for name in sorted(used - {_NO_PROMPT}):
        versions.setdefault(name.partition("@")[0], []).append(name)
    return {prompt: ", ".join(names) for prompt, names in versions.items()}


def _systems(table: str, chats: pl.Series) -> Iterator[str]:
    """The system prompts of chats. A chat holds the text alone, and a version follows its text."""
    messages = chats.explode(empty_as_null=False).struct.unnest()
    for text in messages.filter(pl.col("role") == "system")["content"].unique():
        yield _names().get(text, f"{table}@{digest(text, 8)}")


@cache
def _names() -> dict[str, str]:
    langs: tuple[Lang, ...] = get_args(Lang)
    prompts: list[Prompt] = [coe_system_prompt(), *map(cer_system_prompt, langs)]
    prompts += [system_prompt(judge, lang) for judge in _JUDGES for lang in langs]
    return {prompt.text: prompt.name for prompt in prompts}
