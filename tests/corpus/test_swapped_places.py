"""Places of a public list that no rule was tuned on, in the place of cities and places that real posts name."""

import gzip
import json
import random
from pathlib import Path

import polars as pl
import pytest

from pipelines.settings import ROOT
from pipelines.text.pii.redaction import find

LIST = ROOT / "tools" / "labels" / "places.json"


@pytest.fixture(scope="module")
def contexts(shared: Path) -> list[tuple[str, str]]:
    """What stands before and behind each city or place that readers found."""
    with gzip.open(shared / "real_posts" / "posts.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = {one["id"]: f"{one['title']}\n{one['description']}" for one in map(json.loads, lines)}
    found = []
    for file in (ROOT / "tools" / "labels" / "personal_data.jsonl", shared / "real_posts" / "personal_data.jsonl"):
        for one in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            text = posts.get(one["id"], "")
            spans = [span for span in one["spans"] if span["kind"] in ("city", "place", "address")]
            found += [(text[: span["start"]], text[span["end"] :]) for span in spans if text]
    return found


@pytest.mark.parametrize("kind", ["towns", "street offices", "counties", "districts"])
def test_nearly_all_of_them_are_replaced(contexts, kind):
    names = json.loads(LIST.read_text(encoding="utf-8"))[kind].split()
    assert len(names) >= 200
    assert len(contexts) > 50
    draw = random.Random(7)
    around = [draw.choice(contexts) for _ in names]
    texts = [f"{before}{name}{behind}" for name, (before, behind) in zip(names, around, strict=True)]
    covered: dict[int, set[int]] = {}
    for row, first, last, *_ in find(pl.Series(texts)).iter_rows():
        data = texts[row].encode()
        start = len(data[:first].decode())
        covered.setdefault(row, set()).update(range(start, start + len(data[first:last].decode())))
    whole = [
        set(range(len(before), len(before) + len(name))) <= covered.get(row, set())
        for row, (name, (before, _)) in enumerate(zip(names, around, strict=True))
    ]
    assert sum(whole) / len(whole) >= 0.9
