"""One row of each config of a publication, as a chat, for its card."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pipelines.release.publish.public import WITHHELD
from pipelines.store.release_manifest import Release
from pipelines.text.minors import under_18
from pipelines.text.risk import risk
from schemas.dropped import Row
from schemas.ids import unit_interval

# A card is seen by everybody, also where access to the rows is given by hand: first what nobody wrote of a life, and of
# the others' texts the beginnings.
_OF_NOBODY = ("invented", "synthetic")
_SHOWN = (*_OF_NOBODY, "given", "public_licence")
_CANDIDATES = 50
_LEAST = 60  # characters that are said in a row, if there is such a one
_MOST, _MOST_OF_PEOPLE, _MOST_OF_PROMPT = 1_200, 60, 120  # that are shown of a text
_SENTENCE = re.compile(r"(?s).*(?:(?:[。！？!?]|……)[”’」』）)]*|\.(?=\s))")


class Sample(NamedTuple):
    """A row as a chat, of speakers and what is shown of their texts, and all that is said in it."""

    row_id: str
    chat: list[tuple[str, str]]
    words: str


def samples(release: Release, folder: Path) -> dict[str, Sample]:
    """By config a row as a chat; none where no row may be shown: with all its words, by a source that may
    be published, and without a sign of risk or of somebody under 18. The same rows give the same sample.
    """
    consents = {source.name: source.consent for source in release.sources}
    rank = {name: _SHOWN.index(consent) for name, consent in consents.items() if consent in _SHOWN}

    def most(row_id: str) -> int:
        return _MOST if consents[_source(row_id)] in _OF_NOBODY else _MOST_OF_PEOPLE

    candidates = [
        (config, sample)
        for config, shards in release.configs.items()
        for sample in _candidates([folder / shard.path for shard in shards], rank, most)
    ]
    text = pl.Series("text", [sample.words for _, sample in candidates], dtype=pl.String).to_frame()
    # Of all at once: what rules cost, they cost once a frame.
    harmless = text.select(~under_18(pl.col("text")) & (risk(pl.col("text")).list.len() == 0)).to_series()
    fit: dict[str, list[Sample]] = {}
    for config, sample in compress(candidates, harmless):
        fit.setdefault(config, []).append(sample)
    chosen: dict[str, Sample] = {}
    for config, some in fit.items():
        told = {_story(one.row_id) for one in chosen.values()}
        # The first of those that say something, of the best sources, of what no other config shows.
        chosen[config] = min(
            some, key=lambda one: (len(one.words) < _LEAST, rank[_source(one.row_id)], _story(one.row_id) in told)
        )
    return chosen


def _candidates(shards: list[Path], rank: Mapping[str, int], most: Callable[[str], int]) -> Iterator[Sample]:
    """Rows by sources that may be shown, first those of nobody, then by lot."""
    rows = pl.concat(pl.scan_parquet(shard, hive_partitioning=False) for shard in shards)
    may = ~pl.col(WITHHELD) & pl.col("row_id").str.extract("^([^:]*)").is_in(list(rank))
    ids = rows.filter(may).select("row_id").collect()["row_id"]
    drawn = sorted(ids, key=lambda one: (rank[_source(one)], unit_interval(0, "card", one)))[:_CANDIDATES]
    found = {row["row_id"]: row for row in rows.filter(pl.col("row_id").is_in(drawn)).collect().iter_rows(named=True)}
    for row_id in drawn:
        texts = [(speaker, text) for speaker, text in _said(found[row_id]) if text]
        chat = [
            (speaker, _short(text, _MOST_OF_PROMPT if speaker == "system" else most(row_id))) for speaker, text in texts
        ]
        yield Sample(row_id, chat, "\n".join(text for speaker, text in texts if speaker != "system"))


def _source(row_id: str) -> str:
    return row_id.partition(":")[0]


def _story(row_id: str) -> str:
    """The post or dialogue: two configs should not show the same."""
    return re.split("[/#~]", row_id)[0]


def _said(row: Row) -> Iterator[tuple[str, str]]:
    for message in row.get("messages") or row.get("prompt") or []:
        yield from _unpacked(message["role"], message["content"])
    for name, speaker in (("query", "user"), ("positive", "positive"), ("negative", "negative")):
        if name in row:
            yield speaker, row[name]
    if "reward_model" in row:
        yield "reference", row["reward_model"]["ground_truth"]


def _unpacked(role: str, content: str) -> list[tuple[str, str]]:
    """What a judge is shown (`pipelines.judge.turns`) as a chat: the dialogue, steps, both responses."""
    try:
        shown = json.loads(content) if role == "user" else None
        if not isinstance(shown, dict):
            return [(role, content)]
        steps = [*shown.get("before", []), *([shown] if "step" in shown else [])]
        turns = [
            *((turn["role"], turn["text"]) for turn in shown.get("dialogue", [])),
            *((f"step {step['step']}", step["text"]) for step in steps),
            *((f"response {name}", shown[name]) for name in ("A", "B") if name in shown),
        ]
        return turns or [(role, content)]
    except (ValueError, TypeError, KeyError):  # what only looks like it
        return [(role, content)]


def _short(text: str, most: int) -> str:
    """The text, or its beginning, to the end of a sentence if there is one."""
    if len(text) <= most:
        return text
    sentences = _SENTENCE.match(text[:most])
    return f"{sentences[0] if sentences else text[:most]} …"
