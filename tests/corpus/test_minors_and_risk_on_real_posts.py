"""Minors and risk on real posts: the rules by the labels of readers (tools/labels)."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.settings import ROOT
from pipelines.text.minors import minors
from pipelines.text.risk import risk
from pipelines.text.script import as_simplified
from tools.train_emotional_context import READERS

FILES = ("development", "held_back", "age_and_risk")
KINDS = {
    **dict.fromkeys(("suicide", "passive", "self_injury"), "self_harm"),
    **dict.fromkeys(("violence", "sexual"), "abuse"),
    "harm_to_others": "harm_to_others",
}


@pytest.fixture(scope="module")
def posts(shared: Path) -> list[dict[str, Any]]:
    """Each labelled post, with its `young` (struct of under_14, under_18) and the kinds of risk that were `found`."""
    texts = {
        f"{source}:{number}": f"{title}\n{body}"
        for source in ("real", "smile", "psyqa")
        for number, title, body in READERS[source](shared)
    }
    files = [ROOT / "tools" / "labels" / f"{name}.jsonl" for name in FILES]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    labelled = [one for one in map(json.loads, lines) if one["id"] in texts]
    frame = pl.DataFrame({"text": [texts[one["id"]] for one in labelled]}).with_columns(as_simplified(pl.col("text")))
    read = frame.select(young=minors(pl.col("text")), risk=risk(pl.col("text"), simplified=True)).rows()
    return [
        one | {"young": young, "found": {sign["kind"] for sign in signs}}
        for one, (young, signs) in zip(labelled, read, strict=True)
    ]


def test_there_are_enough(posts):
    assert len(posts) > 2_900


@pytest.mark.parametrize(("limit", "ages"), [("under_14", ["under_14"]), ("under_18", ["under_14", "under_18"])])
def test_a_minor_is_the_writer_and_nearly_every_one_is_found(posts, limit, ages):
    flagged = [one["age"] in ages for one in posts if one["young"][limit]]
    told = [one["young"][limit] for one in posts if one["age"] in ages]
    assert sum(flagged) / len(flagged) >= 0.96
    assert sum(told) / len(told) >= 0.93


@pytest.mark.parametrize(
    ("kind", "recall"), [("suicide", 0.95), ("passive", 0.9), ("self_injury", 0.9), ("violence", 0.8)]
)
def test_risk_of_a_kind_is_found(posts, kind, recall):
    found = [KINDS[kind] in one["found"] for one in posts if any(risk["kind"] == kind for risk in one["risk"])]
    assert sum(found) / len(found) >= recall


def test_who_tells_of_no_risk_is_hardly_ever_flagged(posts):
    flagged = [bool(one["found"]) for one in posts if not one["risk"]]
    assert sum(flagged) / len(flagged) <= 0.05
