"""How well the rules tell minors from others: the sentences of ages.toml, which were written before the rules."""

import tomllib
from pathlib import Path

import polars as pl
import pytest

from pipelines.text.minors import minors

_SENTENCES = tomllib.loads(Path(__file__).with_name("ages.toml").read_text(encoding="utf-8"))


def judged(name: str) -> pl.DataFrame:
    """`text`, `limit` as written in ages.toml, and what the rules say: `under_14`, `under_18`."""
    frame = pl.DataFrame(_SENTENCES[name])
    return frame.with_columns(minors(pl.col("text")).struct.unnest())


def figures(frame: pl.DataFrame, limit: str) -> tuple[float, float]:
    """Precision and recall of what the rules take for younger than `limit`; who is under 14 is under 18 as well."""
    true = pl.col("limit").is_in(["under_14", limit])
    both, flagged, written = frame.select(
        (pl.col(limit) & true).sum(), pl.col(limit).sum().alias("n"), true.sum().alias("m")
    ).row(0)
    return both / flagged if flagged else 1.0, both / written


def test_half_of_the_sixty_are_by_minors():
    frame = judged("sentences")
    assert (frame.height, frame.filter(pl.col("limit") != "neither").height) == (60, 30)
    assert frame["text"].is_unique().all()
    assert set(frame["limit"]) == {"under_14", "under_18", "neither"}


@pytest.mark.parametrize(
    ("name", "limit", "precision", "recall"),
    [
        ("sentences", "under_18", 0.95, 0.90),
        ("sentences", "under_14", 0.95, 0.90),
        ("apart", "under_18", 0.95, 0.80),
        ("apart", "under_14", 0.95, 0.75),
        ("beside", "under_18", 0.90, 0.95),
        ("beside", "under_14", 0.95, 0.95),
    ],
)
def test_the_rules_reach_their_figures(name: str, limit: str, precision: float, recall: float):
    frame = judged(name)
    wrong = frame.filter(pl.col(limit) != pl.col("limit").is_in(["under_14", limit]))["text"].to_list()
    reached = figures(frame, limit)
    assert reached[0] >= precision, wrong
    assert reached[1] >= recall, wrong
