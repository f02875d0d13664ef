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
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from release_rows import triplets
from train_env import QUIET, in_train_env, script_result

from pipelines.rewards.contrastive import Quotable, unquoted
from pipelines.train import contrastive
from pipelines.train.services import PYTHON

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("training")]

THEMES = {
    "晚上总是失眠睡不着，凌晨三点还醒着": "睡前把手机放远一点，失眠的时候不要看钟，先让身体放松",
    "父母总拿我和表哥比较，我做什么妈妈都不满意": "父母的比较让人受伤，您可以告诉妈妈您的感受",
    "领导把所有加班都给我，同事却早早下班": "和领导约时间谈一谈加班的安排，把手上的工作列出来",
    "男朋友突然提出分手，三年的感情就这样没了": "分手之后难过是自然的，三年的感情需要时间告别",
    "考研第二次失败，书一页也看不进去": "考研失败不等于您失败，先把书放下休息几天",
    "在人多的聚会上我紧张得说不出话，手心出汗": "聚会之前先和一个熟人说话，紧张的时候慢慢呼吸",
}
GENERIC = "一切都会好起来的，要相信自己。慢慢来，加油。"
ENDS = ("，怎么办？", "，我很难受。", "，谁能帮帮我？", "，这样下去不行。")


def rows(split: str = "train", ends: tuple[str, ...] = ENDS) -> pl.DataFrame:
    """Two triplets a question; the questions of a theme are a group, for an answer to one fits the others."""
    answers, made = list(THEMES.values()), []
    for (place, text), (number, end) in product(enumerate(THEMES), enumerate(ends)):
        post = f"{split}:{place}-{number}"
        of = {"made_from": post, "group_id": f"g-{split}-{place}", "query": text + end}
        for kind, negative in (("generic", GENERIC), ("other_answer", answers[(place + 1) % len(answers)])):
            row = of | {"kind": kind, "positive": f"{answers[place]}。", "negative": negative}
            made.append(triplets((f"{post}/{kind}", split), **row))
    return pl.concat(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triplets as files, and a tiny encoder to start from."""
    folder = tmp_path_factory.mktemp("contrastive")
    rows().write_parquet(folder / "train.parquet")
    rows("validation", ("，我很难受，怎么办？", "，谁能帮我，怎么办？")).write_parquet(folder / "validation.parquet")
    in_train_env("-m", "pipelines.train.tiny_encoder", folder / "start", folder / "train.parquet", "--hidden", 64)
    return folder


def popen(*words: object, **pipes: object) -> "subprocess.Popen[str]":
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | pipes
    return subprocess.Popen([str(PYTHON), *map(str, words)], env=os.environ | QUIET, text=True, **pipes)


def command(folder: Path, out: str, metrics: str = "", **options: object) -> list[object]:
    """The contrastive training with its options in a file."""
    config = {"train": [str(folder / "train.parquet")], "validation": [str(folder / "validation.parquet")]}
    config |= {"start": str(folder / "start"), "out": str(folder / out), "epochs": 16, "batch": 8, "rate": 1e-2}
    config |= {"save_every": 5} | {name: str(one) if isinstance(one, Path) else one for name, one in options.items()}
    (folder / f"{out}.config.json").write_text(json.dumps(config), encoding="utf-8")
    return ["-m", "pipelines.train.contrastive", folder / f"{out}.config.json", folder / f"{metrics or out}.jsonl"]


def run(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = popen(*words)
    stdout, stderr = process.communicate()
    assert "Traceback" not in stderr
    return process.returncode, stdout, stderr


def steps(path: Path) -> list[dict[str, float]]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


@pytest.fixture(scope="module")
def note(folder: Path) -> dict:
    """What a run prints that went from its start to its end."""
    return json.loads(in_train_env(*command(folder, "whole")))


LOSS = """
import json, sys
from pathlib import Path
import torch
from pipelines.train import contrastive
from pipelines.train.embedding import Encoder
from pipelines.train.options import check_options

folder, losses = Path(sys.argv[1]), []
for case in json.load(sys.stdin):
    vectors = {name: torch.tensor(case[name], dtype=torch.float64) for name in ("queries", "positives", "negatives")}
    total, parts = contrastive.loss(**vectors, mask=torch.tensor(case["mask"]), margin=case["margin"])
    losses.append([float(total), parts])

rows = contrastive.read_triplets([folder / "train.parquet"])
options = {"start": "s", "train": "t", "validation": "v", "out": "o", "epochs": 1, "batch": 8, "rate": 1e-3, "seed": 1}
training = contrastive.Training(Encoder.load(folder / "start", device="cpu"), rows, check_options(options))
loss, masks = contrastive.loss, []
def watched(queries, positives, negatives, mask, margin):
    masks.append(mask.tolist())
    return loss(queries, positives, negatives, mask, margin)
contrastive.loss = watched
for _ in training.plan:
    training.step()
expected = [contrastive.apart([rows[place] for place in step]).tolist() for step in training.plan]

spoilt = Encoder.load(folder / "start", device="cpu")
spoilt.model.embeddings.LayerNorm.bias.data[-1] = float("inf")
spoilt.save(folder / "spoilt" / "start")
print(json.dumps({"losses": losses, "masks": masks, "expected": expected}))
"""
# Vectors of the plane: cos(q, a⁺) is 1, 0.6, 0; cos(q, a⁻) is 0.6, 0.6, 0.8.
PLANE = {
    "queries": [[1, 0], [0, 1], [0, 1]],
    "positives": [[1, 0], [0.8, 0.6], [1, 0]],
    "negatives": [[0.6, 0.8], [0.8, 0.6], [0.6, 0.8]],
}
# The second and the third row are of one group, so neither is a negative of the other.
MASK = [[False, True, True], [True, False, False], [True, False, False]]


# What a step of the training has for texts, once it is over.
VECTORS = """
import json, sys
from pathlib import Path
import torch
from pipelines.train import contrastive
from pipelines.train.embedding import Encoder
from pipelines.train.options import check_options

options = check_options({"start": "s", "train": "t", "validation": "v", "out": "o"})
encoder = Encoder.load(Path(sys.argv[1]) / "whole", windows=options.windows, device="cpu")
training = contrastive.Training(encoder, contrastive.read_triplets([Path(sys.argv[1]) / "train.parquet"]), options)
with torch.no_grad():
    print(json.dumps(training._vectors(json.load(sys.stdin), "answer").tolist()))
"""


@pytest.fixture(scope="module")
def losses(folder: Path) -> dict:
    """Of the plane, and what masks the steps of a training had."""
    cases = [{**PLANE, "mask": MASK, "margin": 0.5}, {**PLANE, "mask": [[False] * 3] * 3, "margin": 0.25}]
    return script_result(LOSS, folder, stdin=cases)


@pytest.fixture(scope="module")
def spoilt(folder: Path, losses: dict) -> Path:
    """An encoder named as the one to start from, of which one weight is infinite."""
    return folder / "spoilt" / "start"


class TestLoss:
    """E eq. 5, max(0, cos(q, a⁻) − cos(q, a⁺) + m), worked out by hand."""

    def test_it_is_the_equation_over_own_negatives_and_those_of_the_mask(self, losses: dict):
        own = [max(0, 0.6 - 1 + 0.5), max(0, 0.6 - 0.6 + 0.5), max(0, 0.8 - 0 + 0.5)]
        # q₁ with a⁺₂ and a⁺₃, q₂ with a⁺₁, q₃ with a⁺₁
        others = [max(0, 0.8 - 1 + 0.5), max(0, 1 - 1 + 0.5), max(0, 0 - 0.6 + 0.5), max(0, 0 - 0 + 0.5)]
        assert (own[0], others[2]) == (pytest.approx(0.1), 0), "one of the hinges is shut"
        (total, parts), (without_others, _) = losses["losses"]
        assert total == pytest.approx(sum(own) / 3 + sum(others) / 4)
        assert parts == pytest.approx({"train/similarity": 1.6 / 3, "train/own_negative_nearer": 1 / 3})
        assert without_others == pytest.approx((0 + 0.25 + 1.05) / 3), "a shut hinge of an own negative costs nothing"

    def test_no_answer_of_a_question_or_of_its_group_is_a_negative_in_a_step(self, losses: dict):
        assert losses["masks"] == losses["expected"] != []


class TestTraining:
    def test_the_loss_falls_and_t_parts_the_kinds(self, folder: Path, note: dict):
        losses = [one["data"]["train/loss"] for one in steps(folder / "whole.jsonl") if "train/loss" in one["data"]]
        assert len(losses) == note["figures"]["steps"] == 96
        assert np.mean(losses[-6:]) < np.mean(losses[:6]) / 4
        passes = note["figures"]["passes"]
        assert passes["positive"] >= 0.75
        assert min(note["figures"]["auc"].values()) >= 0.95
        assert max(passes["generic"], passes["other_answer"], passes["in_batch"]) <= 0.05

    def test_the_folder_notes_what_it_was_made_of(self, folder: Path, note: dict):
        assert json.loads((folder / "whole" / "encoder.json").read_text()) == note
        assert note["figures"]["questions"] == {"train": 24, "validation": 12}
        assert note["figures"]["rows"]["train"] == {"generic": 24, "other_answer": 24}
        assert (note["margin"], note["base"]) == (0.2, "start")
        assert note["figures"]["cut"] == {"query": 0, "answer": 0}
        assert str(folder) not in json.dumps(note)
        assert not (folder / "whole.checkpoints").exists()

    def test_a_killed_run_goes_on_and_ends_where_it_would_have(self, folder: Path, note: dict):
        process = popen(*command(folder, "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=None)
        while len(steps(folder / "killed.jsonl")) < 12 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = len(steps(folder / "killed.jsonl"))
        assert 12 <= before < 96, "it was killed in the middle"
        assert not (folder / "killed").exists()
        code, _, stderr = run(*command(folder, "killed", rate=1e-3))
        assert (code, "asked for something else" in stderr) == (2, True)
        # What a kill in the middle of a checkpoint leaves behind is no checkpoint.
        (folder / "killed.checkpoints" / ".90.part").mkdir()
        code, stdout, stderr = run(*command(folder, "killed", metrics="second"))
        assert code == 0, stderr
        resumed = steps(folder / "second.jsonl")
        assert resumed[0]["step"] > 1
        assert resumed[0]["step"] % 5 == 1
        again = json.loads(stdout)
        assert again["threshold"] == pytest.approx(note["threshold"], abs=1e-3)
        assert again["figures"]["auc"] == pytest.approx(note["figures"]["auc"], abs=1e-2)

    def test_a_run_is_known_by_its_rows_and_base_whatever_they_are_named(self, folder: Path, note: dict, spoilt: Path):
        before = (folder / "whole" / "encoder.json").stat().st_mtime_ns
        (folder / "other").mkdir()
        other = folder / "other" / "train.parquet"
        rows().with_columns(pl.col("positive") + "慢慢来。").write_parquet(other)
        for options in ({"train": other}, {"start": spoilt}):
            code, _, stderr = run(*command(folder, "whole", **options))
            assert (code, "asked for something else" in stderr) == (2, True), options
        # The same rows and the same base elsewhere, written in another way, are the same run, which is not made again.
        same = folder / "same" / "train.parquet"
        same.parent.mkdir()
        pq.write_table(pq.read_table(folder / "train.parquet"), same, compression="gzip")
        shutil.copytree(folder / "start", folder / "same" / "start")
        code, stdout, _ = run(*command(folder, "whole", train=same, start=folder / "same" / "start"))
        assert (code, json.loads(stdout)) == (0, note)
        assert (folder / "whole" / "encoder.json").stat().st_mtime_ns == before

    def test_a_loss_that_is_not_finite_stops_the_run(self, folder: Path):
        code, _, stderr = run(*command(folder, "lost", rate=1e30))
        assert code == 1
        assert re.search(r"the (loss|norm of the gradient) of step \d+ is (nan|inf)", stderr)
        assert not (folder / "lost").exists()

    def test_weights_that_the_last_step_broke_leave_no_encoder(self, folder: Path):
        code, _, stderr = run(*command(folder, "broken", epochs=1, batch=99, rate=1e30))
        assert code == 1
        assert "the weights are broken: on validation, of" in stderr
        assert f"where: {folder / 'broken.checkpoints'}" in stderr
        assert "hint: so is the last checkpoint: train again under another name, with a lower rate" in stderr
        assert not (folder / "broken").exists()

    def test_a_wrong_request_is_refused(self, folder: Path):
        rows()[:2].write_parquet(folder / "one.parquet")
        wrong = {"too few to learn from": {"validation": folder / "one.parquet"}, "no encoder": {"start": folder}}
        for words, options in wrong.items():
            code, _, stderr = run(*command(folder, "refused", **options))
            assert (code, words in stderr) == (2, True), stderr
            assert not (folder / "refused").exists()

    def test_a_tiny_encoder_learns_words_of_train_rows_alone(self, folder: Path):
        rows("validation").write_parquet(folder / "held-out.parquet")
        code, _, stderr = run("-m", "pipelines.train.tiny_encoder", folder / "never", folder / "held-out.parquet")
        assert (code, "no triplets to learn words from" in stderr) == (2, True)
        assert not (folder / "never").exists()


class Letters:
    """An encoder of how often each of some letters stands in a text."""

    LETTERS = "失眠睡不着凌晨三点还醒着怎么办"

    def vectors(self, texts: list[str], kind: str) -> np.ndarray:
        counts = np.array([[1 + text.count(one) for one in self.LETTERS] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_every_answer_is_compared_with_every_question_and_each_is_read_once(monkeypatch):
    drawn = random.Random(1)
    words = [chr(0x4E00 + place) for place in range(600)]
    questions = ["".join(drawn.choices(words, k=300)) for _ in range(50)]
    answers = [f"{one[:20]}，{''.join(drawn.choices(words, k=280))}" for one in questions]
    pairs = [(question, answer) for question in questions for answer in answers]
    parsed = []
    monkeypatch.setattr(contrastive, "Quotable", lambda text: parsed.append(text) or Quotable(text))
    similarities = contrastive._similarities(Letters(), pairs)
    assert Counter(parsed) == Counter([*questions, *answers])
    for place in (0, 1, 51, 52, 2499):
        query, answer = pairs[place]
        for reading, read in (("paper", answer), ("guarded", unquoted(query, answer))):
            vectors = [Letters().vectors([text], "answer")[0] for text in (query, read)]
            assert similarities[reading][place] == pytest.approx(vectors[0] @ vectors[1], abs=1e-6)
    assert unquoted(*pairs[0]) == answers[0][20:]


@pytest.fixture(scope="module")
def service(folder: Path, note: dict) -> Iterator[str]:
    """The address of the service of the trained encoder."""
    process = popen("-m", "pipelines.train.encoder", folder / "whole", stderr=subprocess.DEVNULL)
    yield json.loads(process.stdout.readline())["address"]
    process.stdin.close()
    assert process.wait(timeout=120) == 0, "it ends with the process that started it"
    process.stdout.close()


def fetched(url: str, data: bytes | None = None) -> tuple[int, dict]:
    """Status and JSON."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def post(address: str, body: object) -> tuple[int, dict]:
    return fetched(f"{address}/embed", body if isinstance(body, bytes) else json.dumps(body).encode())


class TestServed:
    def test_it_describes_what_it_serves_and_without_the_token_of_its_address_there_is_no_answer(
        self, service: str, note: dict
    ):
        known = {"threshold": note["threshold"], "figures": note["figures"]}
        assert fetched(f"{service}/about")[1] == {"folder": "whole", "dimension": 64, **known}
        host, _, token = service.rpartition("/")
        assert len(token) >= 40
        for address in (host, f"{host}/{token}x", f"{host}/{token[::-1]}"):
            for request in (f"{address}/about", urllib.request.Request(f"{address}/embed", b"{}")):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(request)
                with caught.value:
                    assert caught.value.code == 404

    def test_vectors_are_those_of_each_text_alone_and_of_unit_length(self, service: str):
        text, answer = next(iter(THEMES.items()))
        texts = [text, "", GENERIC, answer * 200]
        status, reply = post(service, {"texts": texts, "kind": "answer"})
        assert status == 200
        together = np.array(reply["vectors"])
        assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
        alone = np.array([post(service, {"texts": [one], "kind": "answer"})[1]["vectors"][0] for one in texts])
        assert together == pytest.approx(alone, abs=1e-5)
        as_query = post(service, {"texts": [answer], "kind": "query"})[1]["vectors"][0]
        assert np.array(as_query) != pytest.approx(alone[3], abs=1e-3)

    def test_of_a_megabyte_only_sixteen_windows_are_read(self, service: str):
        texts = ["难过" * 500_000, "难过" * 20_000]
        status, reply = post(service, {"texts": texts, "kind": "query"})
        assert status == 200
        assert reply["vectors"][0] == pytest.approx(reply["vectors"][1], abs=1e-6)

    def test_a_long_text_is_read_as_in_training(self, service: str, folder: Path, note: dict):
        answer = next(iter(THEMES.values()))
        texts = [answer, answer * 40, GENERIC * 60 + answer]
        served = post(service, {"texts": texts, "kind": "answer"})[1]["vectors"]
        assert (note["windows"], note["figures"]["cut"]) == ("mean", {"query": 0, "answer": 0})
        assert np.array(script_result(VECTORS, folder, stdin=texts)) == pytest.approx(np.array(served), abs=1e-5)

    def test_a_wrong_request_gets_its_problem_and_no_text_and_half_a_character_are_texts(self, service: str):
        for words, body in {
            "Expecting": b"{",
            "decode": b"\xff\xfe",
            "must be a list of strings": {"texts": "x", "kind": "query"},
            "number 1 is not": {"texts": ["x", None], "kind": "query"},
            "must be one of query, answer": {"texts": ["x"], "kind": "question"},
        }.items():
            status, reply = post(service, body)
            assert (status, words in reply["problem"]) == (400, True), reply
        assert post(service, {"texts": [], "kind": "query"}) == (200, {"vectors": []})
        assert post(service, b'{"texts": ["\\ud83d"], "kind": "query"}')[0] == 200

    def test_broken_vectors_are_not_sent_and_an_encoder_that_we_did_not_train_has_no_threshold(self, spoilt: Path):
        """And a signal ends it in order."""
        process = popen("-m", "pipelines.train.encoder", spoilt)
        address = json.loads(process.stdout.readline())["address"]
        about = fetched(f"{address}/about")[1]
        assert (about["threshold"], about["figures"]) == (None, {})
        status, reply = post(address, {"texts": ["难过", "睡不着"], "kind": "query"})
        assert (status, "its weights are broken; train it again" in reply["problem"]) == (500, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0, "its standard input is open"
        _, stderr = process.communicate()
        assert "Error" not in stderr

    def test_a_folder_without_an_encoder_is_not_served(self, tmp_path: Path):
        code, _, stderr = run("-m", "pipelines.train.encoder", tmp_path)
        assert (code, "no encoder is served from" in stderr) == (2, True)
