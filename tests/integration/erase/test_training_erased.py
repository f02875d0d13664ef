"""Runs of training: rollouts and logs say nothing any more, models that have learnt it are named."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from erase_home import HERS, TO_HER
from every_byte import runs, traces

from pipelines.errors import Busy
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request, survey
from pipelines.store import Store
from pipelines.train.page import report
from pipelines.train.processes import at_work

ASKED = Request(rows=("s:a", "s:x"))
OTHERS = "今天天气很好，我去公园走了走。"


def trained(home: Path, name: str, release: str, said: str, row: str = "s:a", **more: object) -> Path:
    """What a run leaves behind: two prompts, two outputs each; the second prompt is s:b's."""
    run = home / "training" / name
    for folder in ("rollouts", "scored", "data"):
        (run / folder).mkdir(parents=True)
    note = {"recipe": "empathy_encoder", "preset": "cpu_smoke", "release": {"name": release, "content": "c"}}
    (run / "run.json").write_text(json.dumps(note | {"overrides": {}} | more))
    prompts = {"g1": f"user\n{said}\nassistant\n", "g2": f"user\n{OTHERS}\nassistant\n"}
    steps, scored = [], []
    for uid, session in (("g1", 0), ("g1", 1), ("g2", 0), ("g2", 1)):
        of = {"output": f"我在听。{session}"}
        steps.append(of | {"input": prompts[uid], "score": 0.4, "step": 1, "uid": f"{uid}_{session}_0"})
        of |= {"uid": uid, "session": session, "split": "train", "row_id": row if uid == "g1" else "s:b"}
        scored.append(of | {"words": None, "terms": {"score": 0.4}})
    for path, lines in (("rollouts/1.jsonl", steps), ("scored/7.jsonl", scored)):
        told = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (run / path).write_text(told + '{"uid": "g', encoding="utf-8")
    (run / "log-0001.txt").write_text(f"[rank 0] prompt: {said}\nstep:1\n", encoding="utf-8")
    return run


@pytest.fixture
def on_it(home: Path) -> Path:
    """A run on a release that held it, told of."""
    run = trained(home, "on-it", "v1", HERS)
    shutil.copy(home / "releases" / "v1" / "rm_triplets" / "train-00000-of-00001.parquet", run / "data/train.parquet")
    report(Store(home / "data"), run)
    return run


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def test_it_leaves_every_file_of_a_run_and_what_was_written_to_others_stays(home: Path, on_it: Path):
    elsewhere = trained(home, "on-another", "v9", OTHERS, row="s:c")
    before = (elsewhere / "rollouts" / "1.jsonl").read_bytes()
    assert traces(on_it, runs([HERS])).keys() == {"log-0001.txt", "report.html", "rollouts/1.jsonl"}
    kept = on_it / "cache" / "parquet" / "default-0" / "0.0.0"
    kept.mkdir(parents=True)
    pl.DataFrame({"prompt": [HERS]}).write_ipc_stream(kept / "parquet-train.arrow")
    for name in ("run.json.part", "data/validation.parquet.part"):  # of killed runs
        (on_it / name).write_text(HERS, encoding="utf-8")
    [receipt] = erase(home, ASKED)
    assert receipt.learnt == ["training/on-it"]
    assert receipt.runs == 5 + 3
    assert traces(on_it, runs([HERS, TO_HER])) == {}
    assert not [name for name in ("report.html", "cache") if (on_it / name).exists()]
    assert {row["uid"] for row in lines(on_it / "rollouts" / "1.jsonl")} == {"g2_0_0", "g2_1_0"}
    assert {row["row_id"] for row in lines(on_it / "scored" / "7.jsonl")} == {"s:b"}
    assert pl.read_parquet(on_it / "data" / "train.parquet")["row_id"].to_list() == ["s:b/generic"]
    assert (elsewhere / "rollouts" / "1.jsonl").read_bytes() == before


def test_what_started_from_a_model_that_has_learnt_it_has_learnt_it_too(home: Path):
    """Also on a release that never held it, and where the run before is gone."""
    trained(home, "policy", "v2", OTHERS, row="s:c", learnt_of=["v1", "v2"])
    trained(home, "another", "v2", OTHERS, row="s:c", learnt_of=["v2"])
    [receipt] = erase(home, ASKED)
    assert receipt.learnt == ["training/policy"]


def test_it_leaves_the_rollouts_in_every_version(home: Path, on_it: Path):
    store = Store(home / "data")
    version = store.version("rollouts", partition="on-it")
    assert version.rows == 4
    unscored = trained(home, "unscored", "v1", HERS)
    shutil.rmtree(unscored / "scored")
    report(store, unscored)
    erase(home, ASKED)
    by_prompt = store.read("rollouts", partition="unscored").collect()
    assert (by_prompt["uid"].to_list(), by_prompt["row_id"].to_list()) == (["g2", "g2"], [None, None])
    left = store.read("rollouts", version.version, "on-it").collect()
    assert left["row_id"].to_list() == ["s:b", "s:b"]
    store.verify(store.version("rollouts", version.version, "on-it"))
    outcome = report(store, on_it)  # the page is made again from what is left
    assert (outcome.rollouts.rows, OTHERS in outcome.page.read_text(encoding="utf-8")) == (2, True)
    assert traces(on_it, runs([HERS])) == {}


def test_nothing_is_erased_while_a_run_trains(home):
    run = trained(home, "at-work", "v1", HERS)
    with at_work(run), pytest.raises(Busy, match="a run is training") as caught:
        erase(home, ASKED)
    assert caught.value.where == run
    assert HERS in (run / "log-0001.txt").read_text(encoding="utf-8")


def test_nothing_is_erased_while_a_run_is_collected(home: Path, on_it: Path, monkeypatch: pytest.MonkeyPatch):
    """Its rollouts are on their way into a table."""
    written = []

    def write(*told):
        with pytest.raises(Busy, match="a run is training"):
            erase(home, ASKED)
        written.append(told)

    monkeypatch.setattr("pipelines.train.page.write_rollouts", write)
    report(Store(home / "data"), on_it)
    assert written


def test_no_run_begins_while_something_is_erased(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Not even before the plan is written: what is looked for would be copied. Nor while it is unfinished."""
    tried = []

    def looked(*told):
        with pytest.raises(Busy, match="an erasure is at work"), at_work(home / "training" / "new"):
            pass
        tried.append(told)
        return survey(*told)

    monkeypatch.setattr("pipelines.operations.erase.erasing.survey", looked)
    erase(home, ASKED)
    assert tried
    with at_work(home / "training" / "new"):
        pass
    monkeypatch.setattr("pipelines.operations.erase.erasing.survey", survey)
    monkeypatch.setattr("pipelines.operations.erase.erasing.scrub_folder", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        erase(home, Request(rows=("s:b",)))
    with pytest.raises(Busy, match="erase --resume"), at_work(home / "training" / "new"):
        pass
