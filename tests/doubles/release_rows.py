"""Releases made of a few rows, without the checks that a home's rows pass first."""

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.store.parquet import write_shards
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from schemas.tables import TABLES


def triplets(*rows: tuple[str, str], **more: Any) -> pl.DataFrame:
    """Rows of `rm_triplets`: id and split of each, and what else all of them say."""
    told = {"query": "问", "positive": "答", "negative": "否", "kind": "other_answer", "variant": "none"} | more
    return pl.DataFrame(
        [{"row_id": row_id, "split": split, **told} for row_id, split in rows],
        schema=TABLES["rm_triplets"].polars_schema(),
    )


def prompts(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Rows of `grpo_ecot`: id, split, what the seeker says, and the topic."""
    schema = TABLES["grpo_ecot"].polars_schema()
    extra = dict.fromkeys(field.name for field in schema["extra_info"].fields)
    every = {"data_source": "gongqing/ecot", "ability": "empathetic_support"}
    every |= {"reward_model": {"style": "rule", "ground_truth": ""}}
    told = []
    for row_id, split, said, topic in rows:
        prompt = [{"role": "system", "content": "答"}, {"role": "user", "content": said}]
        dialogue = [{"role": "seeker", "text": said}]
        info = extra | {"dialogue": dialogue, "references": [], "topic": topic, "split": split}
        told.append({**every, "row_id": row_id, "split": split, "prompt": prompt, "extra_info": info})
    return pl.DataFrame(told, schema=schema)


def made(home: Path, name: str, configs: dict[str, pl.DataFrame], **more: Any) -> Release:
    """A release of these rows, as `pipelines.release.assemble` writes one."""
    releases = Releases(home)
    with releases.staging() as folder:
        shards = {config: write_shards(folder, config, TABLES[config], rows) for config, rows in configs.items()}
        told: dict[str, Any] = {"made_at": dt.datetime.now(dt.UTC), "pins": dict.fromkeys(configs, "0" * 16)}
        told |= {"code": "", "settings": {}, "prompts": {}, "spend": [], "sources": [], "findings": [], "allowed": []}
        return releases.publish(folder, Release(**(told | more), name=name, configs=shards))
