"""Minors and risk on real posts: the rules by the labels of readers (tools/labels)."""

import json
import re
import tarfile
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
    """Each post whose age and risk are labelled, as `judged` has it."""
    return judged(shared, *FILES)


@pytest.fixture(scope="module")
def ages(shared: Path, posts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those and the posts whose age alone is labelled."""
    return [*posts, *judged(shared, "age")]


def judged(shared: Path, *names: str) -> list[dict[str, Any]]:
    """The posts of files of labels, with their `young` (struct of under_14, under_18) and the kinds of risk that were
    `found`.
    """
    texts = {
        f"{source}:{number}": f"{title}\n{body}"
        for source in ("real", "smile", "psyqa")
        for number, title, body in READERS[source](shared)
    }
    files = [ROOT / "tools" / "labels" / f"{name}.jsonl" for name in names]
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


@pytest.mark.parametrize(("limit", "named"), [("under_14", ["under_14"]), ("under_18", ["under_14", "under_18"])])
def test_a_minor_is_the_writer_and_nearly_every_one_is_found(ages, limit, named):
    flagged = [one["age"] in named for one in ages if one["young"][limit]]
    told = [one["young"][limit] for one in ages if one["age"] in named]
    assert sum(flagged) / len(flagged) >= 0.95
    assert sum(told) / len(told) >= 0.93


def test_a_minor_is_found_in_dialogues_as_well(shared: Path):
    """What clients say in CPsyCounD; those of whom a reader could not tell count neither way."""
    told: dict[str, str] = {}
    with tarfile.open(shared / "zh_multiturn" / "cpsycound_raw.tar.gz") as archive:
        for member in archive.getmembers():
            if (file := archive.extractfile(member)) is not None:
                parts = re.split("(来访者|心理咨询师)：", file.read().decode())
                words = [said for who, said in zip(parts[1::2], parts[2::2], strict=True) if who == "来访者"]
                told[f"cpsycoun:{Path(member.name).stem.removeprefix('case_')}"] = "\n".join(words)
    right, found = right_and_found("age_in_dialogues", told)
    assert right >= 0.85
    assert found >= 0.9


def test_a_minor_is_found_in_texts_that_no_word_had_drawn(shared: Path):
    """SMILE's openings and what its clients say, labelled by two readers, opened once."""
    told = {f"smile:{number}": f"{title}\n{body}" for number, title, body in READERS["smile"](shared)}
    with tarfile.open(shared / "zh_multiturn" / "smile_raw.tar.gz") as archive:
        for member in archive.getmembers():
            if member.name.endswith(".json") and (file := archive.extractfile(member)) is not None:
                words = [turn["content"] for turn in json.load(file) if turn["role"] == "client"]
                told[f"smile_dialogue:{Path(member.name).stem}"] = "\n".join(words)
    right, found = right_and_found("age_unseen", told)
    assert right >= 0.95
    assert found >= 0.9


def right_and_found(labels: str, told: dict[str, str]) -> tuple[float, float]:
    """Of those taken for minors how many are, and of minors how many are taken for them; who is unclear counts not."""
    lines = (ROOT / "tools" / "labels" / f"{labels}.jsonl").read_text(encoding="utf-8").splitlines()
    ages = {one["id"]: one["age"] for one in map(json.loads, lines)}
    frame = pl.DataFrame({"age": list(ages.values()), "text": [told[name] for name in ages]})
    frame = frame.with_columns(as_simplified(pl.col("text"))).with_columns(minors(pl.col("text")).alias("young"))
    flagged = frame.filter(pl.col("young").struct.field("under_18"), pl.col("age") != "unclear")["age"]
    minor = frame.filter(pl.col("age").is_in(["under_14", "under_18"]))["young"].struct.field("under_18")
    return float((flagged != "not").mean()), float(minor.mean())


@pytest.mark.parametrize(
    ("kind", "recall"), [("suicide", 0.95), ("passive", 0.9), ("self_injury", 0.9), ("violence", 0.8)]
)
def test_risk_of_a_kind_is_found(posts, kind, recall):
    found = [KINDS[kind] in one["found"] for one in posts if any(risk["kind"] == kind for risk in one["risk"])]
    assert sum(found) / len(found) >= recall


def test_who_tells_of_no_risk_is_hardly_ever_flagged(posts):
    flagged = [bool(one["found"]) for one in posts if not one["risk"]]
    assert sum(flagged) / len(flagged) <= 0.05
