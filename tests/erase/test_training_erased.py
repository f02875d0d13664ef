"""Runs of training: rollouts and logs say nothing any more, models that have learnt it are named."""

import json
from pathlib import Path

import pytest
from erase_home import HERS
from every_byte import runs

from pipelines.erase.erasing import erase
from pipelines.erase.request import Request
from pipelines.errors import Busy
from pipelines.locks import held
from pipelines.train.runs import FOLDER, LOCK

ASKED = Request(rows=("s:a", "s:x"))


def trained(home: Path, name: str, release: str, said: str) -> Path:
    """What a run leaves behind."""
    run = home / FOLDER / name
    (run / "rollouts").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"release": {"name": release}}))
    row = {"input": f"user\n{said}\nassistant\n", "output": "我在听。", "score": 0.4}
    (run / "rollouts" / "1.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    (run / "scored").mkdir()
    line = {"session": 0, "output": f"您说，{said}", "words": "好", "terms": {"score": 0.4}}
    (run / "scored" / "7.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    (run / "log-0001.txt").write_text(f"[rank 0] prompt: {said}\nstep:1\n", encoding="utf-8")
    return run


def test_rollouts_and_logs_are_rid_of_it_and_what_has_learnt_it_is_named(home):
    on_it = trained(home, "on-it", "v1", HERS)
    trained(home, "on-another", "v9", "今天天气很好，我去公园走了走。")
    before = (home / FOLDER / "on-another" / "rollouts" / "1.jsonl").read_bytes()
    [receipt] = erase(home, ASKED)
    assert receipt.learnt == [f"{FOLDER}/on-it"]
    assert receipt.runs == 3
    written = (*on_it.glob("rollouts/*"), *on_it.glob("scored/*"), on_it / "log-0001.txt")
    told = "".join(path.read_text(encoding="utf-8") for path in written)
    assert not [run for run in runs([HERS]) if run in told]
    row = json.loads((on_it / "rollouts" / "1.jsonl").read_text(encoding="utf-8"))
    assert (row["output"], row["score"]) == ("我在听。", 0.4)
    assert (home / FOLDER / "on-another" / "rollouts" / "1.jsonl").read_bytes() == before


def test_nothing_is_erased_while_a_run_trains(home):
    run = trained(home, "at-work", "v1", HERS)
    with held(run / LOCK), pytest.raises(Busy, match="a run is training"):
        erase(home, ASKED)
    assert HERS in (run / "log-0001.txt").read_text(encoding="utf-8")
