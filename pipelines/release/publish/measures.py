"""What a card tells of the rows of a release: how long they are, in which languages, about what, by a model or not."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.release.publish.public import Row, rows_of
from pipelines.store.release_manifest import Release
from schemas.table import NO_MODEL
from schemas.taxonomy import CATEGORY_OF

_OTHER = "not of the taxonomy"


@dataclass
class Measures:
    """Of whole rows: `lengths` by config in characters of what is said in a row, `topics` (M's categories) by rows of
    the prompt sets, `languages` by rows, `by_nobody` by config the rows that name what is no model among their
    `providers`.
    """

    lengths: dict[str, list[int]] = field(default_factory=dict)
    topics: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    by_nobody: Counter[str] = field(default_factory=Counter)


def measure(release: Release, folder: Path, public: Path | None = None) -> Measures:
    """Measures the rows of a release that lies in `folder`; of these the ones that stand in `public` as well, where a
    publication is named: they have all their words here.
    """
    found = Measures()
    for config, shards in release.configs.items():
        lengths = found.lengths.setdefault(config, [])
        for shard in shards:
            there = (
                None if public is None else set(pq.read_table(public / shard.path, columns=["row_id"])[0].to_pylist())
            )
            for row in rows_of(folder / shard.path):
                if there is not None and row["row_id"] not in there:
                    continue
                said = list(_said(row))
                lengths.append(sum(map(len, said)))
                found.languages[_language(row, said)] += 1
                found.by_nobody[config] += not {*NO_MODEL}.isdisjoint(row.get("providers") or ())
                topic = (row.get("extra_info") or {}).get("topic")
                if topic is not None:
                    found.topics[CATEGORY_OF.get(topic, _OTHER)] += 1
    return found


def _said(row: Row) -> Iterator[str]:
    """What is said in a row, once: a prompt set has the dialogue a second time, for the reward."""
    for message in row.get("messages") or row.get("prompt") or []:
        yield message["content"]
    for name in ("query", "positive", "negative"):
        if name in row:
            yield row[name]


def _language(row: Row, said: list[str]) -> str:
    told: Any = (row.get("extra_info") or {}).get("lang")
    if told:
        return str(told)
    return "zh" if any("一" <= character <= "鿿" for character in "".join(said)) else "en"
