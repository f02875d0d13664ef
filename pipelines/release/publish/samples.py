"""One row of each config of a publication, as a chat, for its card."""

from collections.abc import Iterator
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
_MOST, _MOST_OF_PEOPLE, _MOST_OF_PROMPT = 400, 60, 120  # that are shown of a text


class Sample(NamedTuple):
    """A row as a chat, and how many characters are said in it."""

    row_id: str
    chat: str
    said: int


def samples(release: Release, folder: Path) -> dict[str, Sample]:
    """By config a row as a chat; none where no row may be shown: with all its words, by a source that may
    be published, and without a sign of risk or of somebody under 18. The same rows give the same sample.
    """
    consents = {source.name: source.consent for source in release.sources}
    rank = {name: _SHOWN.index(consent) for name, consent in consents.items() if consent in _SHOWN}

    def most(row_id: str) -> int:
        return _MOST if consents[row_id.partition(":")[0]] in _OF_NOBODY else _MOST_OF_PEOPLE

    shown = {}
    for config, shards in release.configs.items():
        rows = pl.concat(
            pl.read_parquet(folder / shard.path, columns=["row_id", WITHHELD], hive_partitioning=False).with_columns(
                path=pl.lit(shard.path)
            )
            for shard in shards
        )
        rows = rows.filter(~pl.col(WITHHELD), pl.col("row_id").str.extract("^([^:]*)").is_in(list(rank)))
        order = sorted(
            rows.select("row_id", "path").iter_rows(),
            key=lambda row: (rank[row[0].partition(":")[0]], unit_interval(0, "card", row[0])),
        )
        fit = [
            sample for row_id, path in order[:_CANDIDATES] if (sample := _sample(folder / path, row_id, most(row_id)))
        ]
        if fit:
            shown[config] = next((one for one in fit if one.said >= _LEAST), fit[0])
    return shown


def _sample(shard: Path, row_id: str, most: int) -> Sample | None:
    """The row as a chat, of each text `most` characters; None where it may not be shown."""
    (row,) = pl.scan_parquet(shard, hive_partitioning=False).filter(row_id=row_id).collect().to_dicts()
    chat = [(speaker, text) for speaker, text in _said(row) if text]
    words = "\n".join(text for speaker, text in chat if speaker != "system")
    text = pl.Series("text", [words]).to_frame()
    if text.select(under_18(pl.col("text")) | (risk(pl.col("text")).list.len() > 0)).item():
        return None
    lines = (f"[{who}] {_short(text, _MOST_OF_PROMPT if who == 'system' else most)}" for who, text in chat)
    return Sample(row_id, "\n\n".join(lines).replace("```", "'''"), len(words))


def _said(row: Row) -> Iterator[tuple[str, str]]:
    for message in row.get("messages") or row.get("prompt") or []:
        yield message["role"], message["content"]
    for name, speaker in (("query", "user"), ("positive", "positive"), ("negative", "negative")):
        if name in row:
            yield speaker, row[name]
    if "reward_model" in row:
        yield "reference", row["reward_model"]["ground_truth"]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} …"
