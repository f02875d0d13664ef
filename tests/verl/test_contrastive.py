"""E's reward model: a tiny encoder trained, killed, and served."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from train_env import require_train_env
from triplet_rows import GENERIC, THEMES, rows, write

from pipelines.rewards.contrastive import Said, unquoted
from pipelines.settings import ROOT
from pipelines.train import contrastive
from pipelines.train.launch import PYTHON

training = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triplets as files, and a tiny encoder to start from."""
    require_train_env()
    folder = tmp_path_factory.mktemp("contrastive")
    write(folder / "train.parquet", rows())
    write(folder / "validation.parquet", rows("validation", ("，我很难受，怎么办？", "，谁能帮我，怎么办？")))
    ran = run("pipelines.train.tiny_encoder", folder / "start", folder / "train.parquet", "--hidden", 64)
    assert ran.returncode == 0, ran.stderr
    return folder


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", module, *map(str, arguments)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True)


def command(folder: Path, out: str, **more: object) -> list[object]:
    told = {"train": folder / "train.parquet", "validation": folder / "validation.parquet", "start": folder / "start"}
    told |= {"out": folder / out, "metrics": folder / f"{out}.jsonl", "epochs": 16, "batch": 8, "rate": 1e-2}
    told |= {"save_every": 5} | more
    return [part for name, value in told.items() for part in (f"--{name.replace('_', '-')}", value)]


def steps(path: Path) -> list[dict[str, float]]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


@pytest.fixture(scope="module")
def told(folder: Path) -> dict:
    """What is said of a run from its start to its end."""
    ran = run("pipelines.train.contrastive", *command(folder, "whole"))
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


LOSS = """
import json, sys
import torch
from pipelines.train.contrastive import loss
told = json.load(sys.stdin)
vectors = {name: torch.tensor(told[name], dtype=torch.float64) for name in ("queries", "positives", "negatives")}
total, parts = loss(**vectors, there=torch.tensor(told["there"]), margin=told["margin"])
print(json.dumps([float(total), parts]))
"""

STEP = """
import json, sys
from pathlib import Path
from pipelines.train import contrastive
from pipelines.train.embedding import Encoder
from pipelines.train.triplets import apart, read
folder, rows = Path(sys.argv[1]), read([Path(sys.argv[2])])
asked = contrastive.Asked(epochs=1, batch=8, rate=1e-3, margin=0.2, seed=1, max_length=None, max_rows=None)
training = contrastive.Training(Encoder.load(folder, device="cpu"), rows, asked)
loss, seen = contrastive.loss, []
def watched(queries, positives, negatives, there, margin):
    seen.append(there.tolist())
    return loss(queries, positives, negatives, there, margin)
contrastive.loss = watched
for _ in training.plan:
    training.step()
print(json.dumps([seen, [apart([rows[place] for place in step]).tolist() for step in training.plan]]))
"""


SPOILT = """
import json, sys
from pathlib import Path
from pipelines.train.embedding import Encoder
encoder = Encoder.load(Path(sys.argv[1]), device="cpu")
encoder.model.embeddings.LayerNorm.bias.data[-1] = float("inf")
encoder.save(Path(sys.argv[2]))
print(json.dumps(encoder.dimension))
"""


def in_training(script: str, *arguments: object, given: object = None) -> object:
    """What a script in `.venv-train` says."""
    command = [str(PYTHON), "-c", script, *map(str, arguments)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, input=json.dumps(given))
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def spoilt(folder: Path) -> Path:
    """An encoder named as the one to start from, of which one weight is infinite."""
    in_training(SPOILT, folder / "start", folder / "spoilt" / "start")
    return folder / "spoilt" / "start"


class TestLoss:
    """E eq. 5, max(0, cos(q, a⁻) − cos(q, a⁺) + m), worked out by hand on vectors of the plane."""

    pytestmark = training
    # cos(q, a⁺) is 1, 0.6, 0; cos(q, a⁻) is 0.6, 0.6, 0.8.
    VECTORS = {  # noqa: RUF012 - nobody changes it
        "queries": [[1, 0], [0, 1], [0, 1]],
        "positives": [[1, 0], [0.8, 0.6], [1, 0]],
        "negatives": [[0.6, 0.8], [0.8, 0.6], [0.6, 0.8]],
    }
    # The second and the third row are of one group, so neither is held against the other.
    THERE = [[False, True, True], [True, False, False], [True, False, False]]  # noqa: RUF012

    def test_what_is_nearer_by_the_margin_costs_nothing_and_nothing_pays_for_another(self):
        require_train_env()
        own = [max(0, 0.6 - 1 + 0.5), max(0, 0.6 - 0.6 + 0.5), max(0, 0.8 - 0 + 0.5)]
        # q₁ with a⁺₂ and a⁺₃, q₂ with a⁺₁, q₃ with a⁺₁
        others = [max(0, 0.8 - 1 + 0.5), max(0, 1 - 1 + 0.5), max(0, 0 - 0.6 + 0.5), max(0, 0 - 0 + 0.5)]
        assert (own[0], others[2]) == (pytest.approx(0.1), 0), "one of the hinges is shut"
        total, parts = in_training(LOSS, given={**self.VECTORS, "there": self.THERE, "margin": 0.5})
        assert total == pytest.approx(sum(own) / 3 + sum(others) / 4)
        assert parts == pytest.approx({"train/similarity": 1.6 / 3, "train/own_negative_nearer": 1 / 3})

    def test_a_shut_hinge_of_its_own_negative_costs_nothing_either(self):
        require_train_env()
        total, _ = in_training(LOSS, given={**self.VECTORS, "there": [[False] * 3] * 3, "margin": 0.25})
        assert total == pytest.approx((0 + 0.25 + 1.05) / 3)

    def test_no_answer_of_a_question_or_of_its_group_is_a_negative_in_a_step(self, folder: Path):
        held, ought = in_training(STEP, folder / "start", folder / "train.parquet")
        assert held == ought
        marks = np.array(held[0])
        assert marks.any()
        assert not marks[~np.eye(len(marks), dtype=bool)].all(), "else no two rows of a group met"


class TestTrained:
    pytestmark = training

    def test_the_loss_falls_and_answers_to_unseen_questions_pass(self, folder: Path, told: dict):
        found = [one["data"]["train/loss"] for one in steps(folder / "whole.jsonl") if "train/loss" in one["data"]]
        assert len(found) == told["figures"]["steps"] == 96
        assert np.mean(found[-6:]) < 0.7 * np.mean(found[:6])
        passes = told["figures"]["passes"]
        assert passes["positive"] >= 0.75
        assert min(told["figures"]["auc"].values()) >= 0.95
        assert max(passes["generic"], passes["other_answer"], passes["in_batch"]) <= 0.05

    def test_the_folder_says_what_it_was_made_of(self, folder: Path, told: dict):
        assert json.loads((folder / "whole" / "encoder.json").read_text()) == told
        assert told["figures"]["questions"] == {"train": 24, "validation": 12}
        assert told["figures"]["rows"]["train"] == {"generic": 24, "other_answer": 24}
        assert (told["margin"], told["base"]) == (0.2, "start")
        assert told["figures"]["cut"] == {"query": 0, "answer": 0}
        assert str(folder) not in json.dumps(told)
        assert not (folder / "whole.checkpoints").exists()

    def test_a_killed_run_goes_on_and_ends_where_it_would_have(self, folder: Path, told: dict):
        arguments = [str(PYTHON), "-m", "pipelines.train.contrastive", *map(str, command(folder, "killed"))]
        process = subprocess.Popen(arguments, env=environment(), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while len(steps(folder / "killed.jsonl")) < 12 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = len(steps(folder / "killed.jsonl"))
        assert 12 <= before < 96, "it was killed in the middle"
        assert not (folder / "killed").exists()
        other = run("pipelines.train.contrastive", *command(folder, "killed", rate=1e-3))
        assert other.returncode == 2
        assert "asked for something else" in other.stderr
        # What a kill in the middle of a checkpoint leaves behind is no checkpoint.
        (folder / "killed.checkpoints" / ".90.part").mkdir()
        ran = run("pipelines.train.contrastive", *command(folder, "killed", metrics=folder / "second.jsonl"))
        assert ran.returncode == 0, ran.stderr
        resumed = steps(folder / "second.jsonl")
        assert resumed[0]["step"] > 1
        assert resumed[0]["step"] % 5 == 1
        again = json.loads(ran.stdout)
        assert again["threshold"] == pytest.approx(told["threshold"], abs=1e-3)
        assert again["figures"]["auc"] == pytest.approx(told["figures"]["auc"], abs=1e-2)

    def test_a_run_that_is_over_is_not_made_again(self, folder: Path, told: dict):
        before = (folder / "whole" / "encoder.json").stat().st_mtime_ns
        ran = run("pipelines.train.contrastive", *command(folder, "whole"))
        assert (ran.returncode, json.loads(ran.stdout)) == (0, told)
        assert (folder / "whole" / "encoder.json").stat().st_mtime_ns == before

    def test_a_run_over_other_rows_or_from_another_base_is_another_run_whatever_they_are_named(
        self, folder: Path, told: dict, spoilt: Path
    ):
        (folder / "other").mkdir()
        changed = [{**one, "positive": f"{one['positive']}慢慢来。"} for one in rows()]
        other = write(folder / "other" / "train.parquet", changed)
        for given in ({"train": other}, {"start": spoilt}):
            ran = run("pipelines.train.contrastive", *command(folder, "whole", **given))
            assert ran.returncode == 2, given
            assert "asked for something else" in ran.stderr
        # The same rows and the same base elsewhere, written in another way, are the same run.
        same = folder / "same" / "train.parquet"
        same.parent.mkdir()
        pq.write_table(pq.read_table(folder / "train.parquet"), same, compression="gzip")
        shutil.copytree(folder / "start", folder / "same" / "start")
        ran = run("pipelines.train.contrastive", *command(folder, "whole", train=same, start=folder / "same" / "start"))
        assert (ran.returncode, json.loads(ran.stdout)) == (0, told)

    def test_a_loss_that_is_no_number_stops_the_run(self, folder: Path):
        ran = run("pipelines.train.contrastive", *command(folder, "lost", rate=1e30))
        assert ran.returncode == 1
        assert re.search(r"the (loss|norm of the gradient) of step \d+ is (nan|inf)", ran.stderr)
        assert "Traceback" not in ran.stderr
        assert not (folder / "lost").exists()

    def test_weights_that_the_last_step_broke_are_told_of_and_no_encoder_is_left(self, folder: Path):
        ran = run("pipelines.train.contrastive", *command(folder, "broken", epochs=1, batch=99, rate=1e30))
        assert ran.returncode == 1
        assert "the weights are broken: on validation, of" in ran.stderr
        assert f"where: {folder / 'broken.checkpoints'}" in ran.stderr
        assert "hint: so is the last checkpoint: train anew under another name, with a lower rate" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert not (folder / "broken").exists()

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"validation": "one.parquet"}, "too few to learn from"),
            ({"train": "none.parquet"}, "too few to learn from"),
            ({"train": "no.parquet"}, "no rows of rm_triplets"),
            ({"start": "."}, "no encoder"),
            ({"margin": "nan"}, "argument --margin: a number from 0 to 2 is asked for, and not 'nan'"),
            ({"epochs": "0"}, "argument --epochs: a whole number of 1 or more is asked for, and not '0'"),
        ],
    )
    def test_what_cannot_be_learnt_from_is_refused(self, folder: Path, given: dict, said: str):
        write(folder / "one.parquet", rows()[:2])
        write(folder / "none.parquet", [])
        ran = run(
            "pipelines.train.contrastive",
            *command(
                folder,
                "refused",
                **{name: value if name in ("margin", "epochs") else folder / value for name, value in given.items()},
            ),
        )
        assert ran.returncode == 2, ran.stderr
        assert said in ran.stderr
        assert "Traceback" not in ran.stderr
        assert not (folder / "refused").exists()

    def test_a_tiny_encoder_learns_words_of_train_rows_alone(self, folder: Path):
        write(folder / "held-out.parquet", rows("validation"))
        ran = run("pipelines.train.tiny_encoder", folder / "never", folder / "held-out.parquet")
        assert ran.returncode == 2
        assert "no triplets to learn words from" in ran.stderr
        assert not (folder / "never").exists()


class Letters:
    """An encoder of how often each of some letters stands in a text."""

    LETTERS = "失眠睡不着凌晨三点还醒着怎么办"

    def vectors(self, texts: list[str], kind: str) -> np.ndarray:
        counts = np.array([[1 + text.count(one) for one in self.LETTERS] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_every_answer_is_held_against_every_question_and_each_is_read_once(monkeypatch):
    drawn = random.Random(1)
    words = [chr(0x4E00 + place) for place in range(600)]
    questions = ["".join(drawn.choices(words, k=300)) for _ in range(50)]
    answers = [f"{one[:20]}，{''.join(drawn.choices(words, k=280))}" for one in questions]
    pairs = [(question, answer) for question in questions for answer in answers]
    read = []
    monkeypatch.setattr(contrastive, "Said", lambda text: read.append(text) or Said(text))
    found = contrastive._similarities(Letters(), pairs)
    assert Counter(read) == Counter([*questions, *answers])
    for place in (0, 1, 51, 52, 2499):
        query, answer = pairs[place]
        left = [Letters().vectors([text], "answer")[0] for text in (query, unquoted(query, answer))]
        assert found[place] == pytest.approx(left[0] @ left[1], abs=1e-6)
    assert unquoted(*pairs[0]) == answers[0][20:]


@pytest.fixture(scope="module")
def service(folder: Path, told: dict) -> Iterator[str]:
    """The address of the service of the trained encoder."""
    yield from served(folder / "whole")


def served(encoder: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [str(PYTHON), "-m", "pipelines.train.encoder", str(encoder)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    yield json.loads(process.stdout.readline())["address"]
    process.stdin.close()
    assert process.wait(timeout=30) == 0, "it ends with whoever started it"
    process.stdout.close()


def post(address: str, body: object) -> tuple[int, dict]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}/embed", data)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


class TestServed:
    pytestmark = training

    def test_it_says_what_it_serves(self, service: str, told: dict):
        with urllib.request.urlopen(f"{service}/about") as answer:
            about = json.load(answer)
        assert about == {
            "folder": "whole",
            "dimension": 64,
            "threshold": told["threshold"],
            "figures": told["figures"],
        }

    def test_whoever_does_not_know_its_address_is_told_nothing(self, service: str):
        host, _, token = service.rpartition("/")
        assert len(token) >= 40
        for address in (host, f"{host}/{token}x", f"{host}/{token[::-1]}"):
            for asked in (f"{address}/about", urllib.request.Request(f"{address}/embed", b"{}")):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(asked)
                with caught.value:
                    assert caught.value.code == 404

    def test_vectors_are_those_of_each_text_alone_and_of_unit_length(self, service: str):
        said, answer = THEMES["睡眠"]
        texts = [said, "", GENERIC, answer * 200]
        status, told = post(service, {"texts": texts, "kind": "answer"})
        assert status == 200
        together = np.array(told["vectors"])
        assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
        alone = np.array([post(service, {"texts": [one], "kind": "answer"})[1]["vectors"][0] for one in texts])
        assert together == pytest.approx(alone, abs=1e-5)
        as_query = post(service, {"texts": [answer], "kind": "query"})[1]["vectors"][0]
        assert np.array(as_query) != pytest.approx(alone[3], abs=1e-3)

    def test_of_a_megabyte_only_the_beginning_is_read(self, service: str):
        status, told = post(service, {"texts": ["难过" * 500_000, "难过" * 5_000], "kind": "query"})
        assert status == 200
        assert told["vectors"][0] == pytest.approx(told["vectors"][1], abs=1e-6)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"{", "Expecting"),
            (b"\xff\xfe", "decode"),
            ([], "must be a list of strings"),
            ({"texts": "x", "kind": "query"}, "must be a list of strings"),
            ({"texts": ["x", None], "kind": "query"}, "number 1 is none"),
            ({"texts": ["x"], "kind": "question"}, "must be one of query, answer"),
        ],
    )
    def test_a_wrong_request_is_told_what_is_wrong(self, service: str, body: object, said: str):
        status, told = post(service, body)
        assert status == 400
        assert said in told["problem"]

    def test_no_text_and_half_a_character_are_texts(self, service: str):
        assert post(service, {"texts": [], "kind": "query"}) == (200, {"vectors": []})
        assert post(service, b'{"texts": ["\\ud83d"], "kind": "query"}')[0] == 200

    def test_a_vector_with_one_place_that_is_no_number_is_told_of_and_not_sent(self, spoilt: Path):
        for address in served(spoilt):
            status, told = post(address, {"texts": ["难过", "睡不着"], "kind": "query"})
        assert status == 500
        assert "its weights are broken; train it anew" in told["problem"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_it_ends_in_order_by_a_signal_while_its_standard_input_is_open(self, folder: Path, number: int):
        command = [str(PYTHON), "-m", "pipelines.train.encoder", str(folder / "start")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment(), text=True, **pipes) as process:
            address = json.loads(process.stdout.readline())["address"]
            assert post(address, {"texts": ["难过"], "kind": "query"})[0] == 200
            process.send_signal(number)
            assert process.wait(timeout=30) == 0
            assert "Error" not in process.stderr.read()

    def test_an_encoder_that_we_did_not_train_has_no_threshold(self, folder: Path):
        for address in served(folder / "start"):
            with urllib.request.urlopen(f"{address}/about") as answer:
                about = json.load(answer)
            status, _ = post(address, {"texts": ["难过"], "kind": "query"})
        assert (about["threshold"], about["figures"]) == (None, {})
        assert status == 200

    def test_what_is_no_encoder_is_not_served(self, tmp_path: Path, folder: Path):
        ran = run("pipelines.train.encoder", tmp_path)
        assert ran.returncode == 2
        assert "no encoder is served from" in ran.stderr
        assert "Traceback" not in ran.stderr
