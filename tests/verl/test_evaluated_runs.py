"""What runs have left, evaluated for real: a model that transformers serves, and an encoder, on every suite, with
judges on loopback; then once more from what was recorded of it.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from judge_host import JudgeHost, verdict
from judge_process import profiles
from played import played
from table_rows import frame, row_of
from train_env import SEED, Trained

from pipelines.errors import RequestError
from pipelines.evaluate.benchmarks import ROLES
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.providers.replay import record
from pipelines.operations.evaluate.evaluating import SUITES, EvaluationOptions, evaluate, evaluate_data, evaluate_people
from pipelines.operations.evaluate.report import write_report
from pipelines.settings import ROOT, load
from pipelines.store import Store
from schemas.reviews import Rankings

pytestmark = [pytest.mark.timeout(1500), pytest.mark.xdist_group("training")]

MODEL, ENCODER = "warm", f"real-empathy_encoder-s{SEED}"
JUDGES = ("judge", "second")
BASELINES = {"post_copied", "generic_comfort", "sibling"}


def replied(payload: dict[str, Any]) -> str:
    """Seekers and the judges of ESC-Eval are played; the other judges count characters, and like the first of two."""
    asked = json.loads(payload["messages"][-1]["content"])
    if payload["model"] == "seeker-1" or "七个方面" in payload["messages"][0]["content"]:
        return played(payload)
    if "answer" not in asked:
        return verdict(payload)
    points = min(5, 1 + len(asked["answer"]) // (40 if payload["model"] == "judge-1" else 60))
    respects = dict.fromkeys(("fluency_comfort", "empathic_understanding", "support_encouragement"), points)
    return json.dumps({"why": "看长短。", **respects}, ensure_ascii=False)


def suite_options(suite: str, provider: str) -> EvaluationOptions:
    named: dict[str, Any] = {"suites": (suite,), "size": 12, "budget": Decimal(100), "provider": provider}
    if suite in ("judge", "esc_eval"):
        named["judges"] = JUDGES
    if suite in ROLES:
        named |= {"seekers": ROOT / "samples" / "evaluate" / "seekers.jsonl", "seeker": "seeker"}
    return EvaluationOptions(**named | ({"budget": None} if provider == "replay" else {}))


def evaluated(home: Path, provider: str) -> None:
    for suite in SUITES:
        evaluate(home, load(home), MODEL, suite_options(suite, provider))


@pytest.fixture(scope="module")
def untouched(training_home: Path, warm_start: Path, experiment: Trained, tmp_path_factory) -> Path:
    """A home with the release and both runs, and profiles of a host that is not there yet. Read only."""
    home = tmp_path_factory.mktemp("evaluated") / "untouched"
    for part in ("data", "releases", f"training/{MODEL}", f"training/{ENCODER}"):
        shutil.copytree(training_home / part, home / part, ignore=shutil.ignore_patterns("checkpoints"))
    about = {"kind": "rank", "role": "annotator", "models": ["generic_comfort", "sibling", MODEL]}
    ranked = [
        about | {"task_id": f"t{item}{rater}", "item_id": f"s:{item}", "annotator": f"u_{rater}", "places": places}
        for item, places in enumerate(([2, 1, 3], [2, 1, 3], [1, 2, 3]))
        for rater in "abc"
    ]
    Store(home / "data").write("rankings", frame(Rankings, *(row_of(Rankings, **one) for one in ranked)))
    return home


@pytest.fixture(scope="module")
def home(untouched: Path) -> Iterator[Path]:
    """The same, evaluated on every suite."""
    home = Path(shutil.copytree(untouched, untouched.with_name("home")))
    with JudgeHost(replied) as host:
        profiles(
            home,
            host.base_url,
            names=("seeker", *JUDGES),
            profile='key_variable = ""\n',
            temperature="temperature = 0.7\n",
        )
        evaluated(home, "openai")
    evaluate_people(home)
    evaluate_data(home, "v1")
    return home


def figures(home: Path, name: str) -> pl.DataFrame:
    return Store(home / "data").read("evaluations", partition=name).collect()


def test_the_model_of_a_run_stands_beside_three_baselines_on_every_suite(home: Path):
    kept = figures(home, MODEL)
    assert set(kept["suite"]) == {*SUITES, "bias"}
    for suite in ("automatic", "judge"):
        assert set(kept.filter(suite=suite)["model"]) == {MODEL, *BASELINES}
    answers = Store(home / "data").read("model_answers", partition=MODEL).collect().filter(model=MODEL)
    assert answers["output"].str.len_chars().min() > 0
    assert answers["request_key"].null_count() == 0, "it is asked as any host, through the ledger"
    said = kept.filter(suite="reward_model", model=MODEL, metric="unread")
    assert len(said) == 8, "three steps and the response, in both modes"


def test_what_was_recorded_gives_the_same_figures_without_any_host(home: Path, untouched: Path, tmp_path: Path):
    again = Path(shutil.copytree(untouched, tmp_path / "again"))
    shutil.copy(home / "profiles.toml", again)
    with Ledger(home / "ledger.sqlite") as ledger:
        record(ledger, again / "recordings.jsonl")
    settings = (home / "gongqing.toml").read_text(encoding="utf-8")
    (again / "gongqing.toml").write_text(f'{settings}recordings = "recordings.jsonl"\n', encoding="utf-8")
    evaluated(again, "replay")
    assert figures(again, MODEL).equals(figures(home, MODEL))


def test_an_encoder_is_measured_on_held_out_triplets_by_kind_of_negative(home: Path):
    evaluate(home, load(home), ENCODER, EvaluationOptions(suites=("reward_model",)))
    kept = figures(home, ENCODER)
    triplets = pl.read_parquet(home / "releases" / "v1" / "rm_triplets" / "*.parquet").filter(split="test")
    assert set(triplets["kind"]) <= set(kept["subset"])
    assert set(kept["metric"]) == {"auc"}
    assert kept["value"].is_between(0, 1).all()
    assert (kept["low"] <= kept["value"]).all()
    with pytest.raises(RequestError, match="an encoder writes no answer"):
        evaluate(home, load(home), ENCODER, EvaluationOptions())


def test_the_server_of_a_model_ends_with_an_evaluation_that_is_killed(home: Path):
    script = """if True:
        import sys, time, pathlib
        from pipelines.train.serving import serve_model
        with serve_model(pathlib.Path(sys.argv[1])) as served:
            print(served.base_url, flush=True)
            time.sleep(600)
    """
    command = [sys.executable, "-c", script, str(home / "training" / MODEL)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().removesuffix("/v1").rpartition(":")[2])
        process.kill()
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    pytest.fail("it still listens")


def test_the_report_has_a_table_of_every_suite(home: Path, tmp_path: Path):
    [markdown, html] = write_report(home, [], tmp_path)
    titles = [line for line in markdown.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    for title in ("Automatic", "Judged by", "What is wrong", "Ranked by", "Reward", "SAGE", "ESC-Eval", "Data"):
        assert any(title in line for line in titles), title
    assert html.stat().st_size > 10_000
