"""Lists and a model's I, where real people wrote: what is refused in a candidate is one."""

import csv
import json
import re
from pathlib import Path

import pytest

from pipelines.text.artefacts import kinds

# Two items, counted by marks alone and apart from the lexicon.
_ITEM = re.compile(r"(?<!\d)\d{1,2}\s*[、.．)）:：](?!\d)|[①-⑳]|^\s*[一二三四五]、", re.MULTILINE)


@pytest.fixture(scope="module")
def answers(shared: Path) -> dict[str, list[str]]:
    """What people answered, by data set."""
    psyqa = json.loads((shared / "zh_qa" / "PsyQA_example.json").read_text(encoding="utf-8"))
    failed = json.loads((shared / "en_strategy" / "FailedESConv.json").read_text(encoding="utf-8"))
    with (shared / "zh_qa" / "medical_qa_gb18030.csv").open(encoding="gb18030") as file:
        doctors = [row["answer"] for row in csv.DictReader(file)]
    return {
        "psyqa": [one["answer_text"] for question in psyqa for one in question["answers"]],
        "doctors": doctors,
        "esconv": [turn["content"] for one in failed for turn in one["dialog"] if turn["speaker"] != "seeker"],
    }


def test_nobody_is_taken_for_a_model_and_what_is_a_list_has_items(answers):
    found = {
        name: {kind: [t for t in texts if kind in kinds(t)] for kind in ("ai", "list")}
        for name, texts in answers.items()
    }
    assert {name: len(of["ai"]) for name, of in found.items()} == {"psyqa": 0, "doctors": 0, "esconv": 0}
    assert {name: len(of["list"]) for name, of in found.items()} == {"psyqa": 46, "doctors": 17, "esconv": 0}
    lists = [text for of in found.values() for text in of["list"]]
    assert [text[:2] for text in lists if len(_ITEM.findall(text)) < 2] == ["1、"]  # one whose rest is lost
