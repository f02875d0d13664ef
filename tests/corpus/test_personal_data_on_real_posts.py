"""Personal data on real posts: the strict finder by the labels of readers."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from pipelines.settings import ROOT
from pipelines.text.pii.redaction import find

KINDS = {
    "name": "name",
    "school": "others",
    "employer": "others",
    "hospital": "others",
    "place": "others",
    "address": "others",
}


@pytest.fixture(scope="module")
def judged(shared: Path) -> pl.DataFrame:
    """Of every span that is labelled or found, its group (name, others, contact), whether it is both, and its post."""
    with gzip.open(shared / "real_posts" / "posts.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = {one["id"]: f"{one['title']}\n{one['description']}" for one in map(json.loads, lines)}
    held_back = set((ROOT / "tools" / "labels" / "held_back.txt").read_text(encoding="utf-8").split())
    posts = {post: text for post, text in posts.items() if f"real:{post}" not in held_back}
    wanted: dict[int, list[tuple[str, int, int]]] = {post: [] for post in posts}
    for file in (ROOT / "tools" / "labels" / "personal_data.jsonl", shared / "real_posts" / "personal_data.jsonl"):
        for one in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            spans = [span for span in one["spans"] if span["kind"] not in ("city", "public")]
            if one["id"] in posts:
                wanted[one["id"]] = [(span["kind"], span["start"], span["end"]) for span in spans]
    found: dict[int, list[tuple[str, int, int]]] = {post: [] for post in posts}
    texts, ids = list(posts.values()), list(posts)
    for row, first, last, kind, _ in find(pl.Series(texts)).iter_rows():
        data = texts[row].encode()
        start = len(data[:first].decode())
        found[ids[row]].append((kind, start, start + len(data[first:last].decode())))
    rows = []
    for post in posts:
        for side, ours, theirs in (("found", found, wanted), ("labelled", wanted, found)):
            for kind, start, end in ours[post]:
                parts = {at for _, one, other in theirs[post] for at in range(max(one, start), min(other, end))}
                # What is labelled is found where all of it is; what is found is right where any of it is labelled.
                right = len(parts) == end - start if side == "labelled" else bool(parts)
                rows.append((post, side, KINDS.get(kind, "contact"), right))
    return pl.DataFrame(rows, schema=["post", "side", "group", "right"], orient="row")


def share(judged: pl.DataFrame, side: str, group: str) -> float:
    rows = judged.filter(pl.col("side") == side, pl.col("group") == group)
    assert rows.height > 50
    return rows["right"].mean()


@pytest.mark.parametrize("group", ["name", "others"])
def test_nearly_all_that_is_replaced_is_personal_and_nearly_all_that_is_personal_is_replaced(judged, group):
    assert share(judged, "found", group) >= 0.95
    assert share(judged, "labelled", group) >= 0.9


def test_hardly_any_post_is_changed_wrongly(judged):
    wrong = judged.filter(pl.col("side") == "found", ~pl.col("right"))["post"].n_unique()
    assert wrong <= 0.003 * 4401
