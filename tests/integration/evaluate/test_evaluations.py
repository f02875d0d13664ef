"""Evaluations end to end: a release of the samples, and a host of models whose replies the test decides."""

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from judge_host import JudgeHost, verdict
from judge_process import profiles
from table_rows import frame, row_of
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import GongqingError, NoVersion, RequestError, UnknownName, UnreadableFile
from pipelines.operations.evaluate.evaluating import SUITES, EvaluationOptions, evaluate, evaluate_data, evaluate_people
from pipelines.operations.evaluate.kept import keep
from pipelines.operations.evaluate.rejudging import rejudge
from pipelines.operations.evaluate.report import write_report
from pipelines.settings import load
from pipelines.store import Store
from schemas.reviews import Rankings

ANSWER = "听起来这件事压在你心里很久了，先缓一缓，愿意的话我们可以慢慢说。"
COE = (
    "<empathy_think><L1>他很累。</L1><L2>事情太多。</L2><L3>先接住。</L3><L4>陪他说。</L4></empathy_think>"
    f"<answer>{ANSWER}</answer>"
)
CER = (
    "<cer_think><history>阶段：探索\n刚开始说。</history><emotion>情感：消极；情绪：疲惫；强度：3\n很累。</emotion>"
    f"<strategy>策略：提问\n先问。</strategy></cer_think><answer>{ANSWER}</answer>"
)
BASELINES = {"post_copied", "generic_comfort", "sibling"}


def replied(payload: dict[str, Any]) -> str:
    """The model under test answers in E's form; a judge likes what is long, and the first of two."""
    if payload["model"] == "tested-1":
        return CER if "<cer_think>" in payload["messages"][0]["content"] else COE
    asked = json.loads(payload["messages"][-1]["content"])
    if "strategy" in asked:
        return json.dumps({"why": "没有提问。", "follows": "？" in asked["response"]}, ensure_ascii=False)
    if "answer" not in asked:
        return verdict(payload)
    points = min(5, 1 + len(asked["answer"]) // 40)
    respects = dict.fromkeys(("fluency_comfort", "empathic_understanding", "support_encouragement"), points)
    return json.dumps({"why": "看长短。", **respects}, ensure_ascii=False)


@pytest.fixture
def host() -> Iterator[JudgeHost]:
    with JudgeHost(replied) as host:
        yield host


@pytest.fixture
def home(released_home: Path, host: JudgeHost, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(released_home, home)
    named = ("tested", "judge", "second")
    profiles(home, host.base_url, names=named, profile='key_variable = ""\n', temperature="temperature = 0.7\n")
    return home


def options(**more: Any) -> EvaluationOptions:
    return EvaluationOptions(**{"size": 6, "budget": Decimal(100), "samples": 2, **more})


def figures(home: Path, name: str) -> dict[tuple[str, ...], dict[str, Any]]:
    rows = Store(home / "data").read("evaluations", partition=name).collect().to_dicts()
    return {(row["suite"], row["model"], row["judge"], row["metric"], row["mode"], row["subset"]): row for row in rows}


def test_a_model_is_shown_beside_three_baselines_and_is_asked_once(home: Path, host: JudgeHost):
    made = evaluate(home, load(home), "tested", options(), name="first")
    kept = figures(home, "first")
    assert {model for _, model, *_ in kept} == {"tested", *BASELINES}
    assert kept["automatic", "tested", "", "form", "grpo_coe", "all"]["value"] == 1
    assert made.unanswered == {}
    answers = Store(home / "data").read("model_answers", partition="first").collect()
    assert set(answers.filter(model="tested")["answer"]) == {ANSWER}, "without the chain before it"
    asked = len(host.asked)
    assert asked == answers.filter(model="tested").height > 0
    again = evaluate(home, load(home), "tested", options(), name="first")
    assert len(host.asked) == asked, "the ledger has it"
    assert again.version.version == made.version.version


def test_judges_score_several_times_and_their_biases_are_told(home: Path, host: JudgeHost, tmp_path: Path):
    evaluate(home, load(home), "tested", options(suites=("automatic", "judge"), judges=("judge", "second"), size=20))
    kept = figures(home, "tested")
    points = min(5, 1 + len(ANSWER) // 40)
    assert kept["judge", "tested", "judge", "overall", "", "all"]["value"] == points
    assert kept["judge", "tested", "all judges", "variance", "", "all"]["value"] == 0
    changes = kept["bias", "judge", "judge", "position", "changes with places", "all"]
    assert (changes["value"], changes["n"] > 3) == (1, True), "A is always better"
    assert kept["bias", "judge", "judge", "position", "first in place wins, less half", "all"]["value"] == 0.5
    slope = kept["bias", "judge", "judge", "length", "points a doubling", "all"]
    assert slope["n"] > 3, "a person's answer beside that of the model"
    assert slope["low"] > 0, "it counts characters"
    markdown, html = write_report(home, [], tmp_path)
    page = markdown.read_text(encoding="utf-8")
    assert re.search(r"1\.000 \\\[0\.\d+, 1\.000\\\] \\\*", page), "its position, which is no certainty of so few"
    assert "judge was not calibrated" in page
    assert "E, Empathy-QA: Empathy-R1" in page
    assert "<script" not in html.read_text(encoding="utf-8")
    assert "data:image/png;base64," in html.read_text(encoding="utf-8")


def test_of_an_output_in_cs_form_a_judge_says_whether_the_response_follows_from_its_third_step(home: Path):
    evaluate(home, load(home), "tested", options(prompts="grpo_cer", suites=("judge",), judges=("judge",)))
    kept = figures(home, "tested")
    assert kept["judge", "tested", "judge", "does_not_follow", "", "all"]["value"] == 1
    assert [model for suite, model, _, metric, *_ in kept if metric == "does_not_follow"] == ["tested"]


def test_a_file_of_answers_is_judged_again_by_another_and_no_answer_is_paid_for(
    home: Path, host: JudgeHost, tmp_path: Path
):
    prompts = pl.read_parquet(home / "releases" / "v1" / "grpo_coe" / "*.parquet").filter(split="test")
    rows = [{"row_id": row_id, "output": ANSWER, "model": "ours"} for row_id in prompts["row_id"]]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    evaluate(home, load(home), str(file), options(size=2, suites=("judge",), judges=("judge",)))
    assert {payload["model"] for payload in host.asked} == {"judge-1"}
    kept = Store(home / "data").read("model_answers", partition="answers").collect()
    assert set(kept.filter(model="ours")["row_id"]) == set(prompts["row_id"]), "of a file all are taken"
    rejudge(home, load(home), "answers", options(suites=("judge",), judges=("second",)))
    assert {payload["model"] for payload in host.asked} == {"judge-1", "second-1"}
    judges = {judge for suite, _, judge, *_ in figures(home, "answers") if suite == "judge"}
    assert judges == {"judge", "second", "all judges"}


def test_a_file_that_is_no_answers_is_refused_with_its_line(home: Path, tmp_path: Path):
    file = tmp_path / "answers.jsonl"
    for line, says in (
        ('{"row_id": "nobody", "output": "嗯"}', "it answers no held-out row"),
        ('{"row_id": 1, "output": "嗯"}', "no answer: ValidationError"),
        ("[" * 5000, "no answer: "),
        ('{"output": "嗯"}', "no answer: "),
        ('{"row_id": "nobody", "output": "a\\ud800"}', "no answer: UnicodeEncodeError"),
        ("", "there is no answer in it"),
    ):
        file.write_text(line, encoding="utf-8")
        with pytest.raises(UnreadableFile, match=says):
            evaluate(home, load(home), str(file), options(size=None))
    assert Store(home / "data").partitions("evaluations") == []


def test_what_cannot_be_evaluated_is_refused_before_anything_is_asked(home: Path, host: JudgeHost):
    profiles(home, host.base_url, names=("tested", "cold"), profile='key_variable = ""\n')
    cold = {"suites": ("judge",), "judges": ("cold",)}
    refused: tuple[tuple[str, dict[str, Any], type[Exception], str], ...] = (
        ("nobody", {}, UnknownName, "file, run or profile"),
        ("tested", {"suites": ("sages",)}, UnknownName, "suite"),
        ("tested", {"prompts": "grpo_cor"}, UnknownName, "set of prompts"),
        ("tested", {"suites": ("judge",)}, RequestError, "the suite judge and its judges belong together"),
        ("tested", {"budget": None}, GongqingError, "budget"),
        ("tested", {"release": "v9"}, UnknownName, "release"),
        ("cold", cold, RequestError, "no temperature above 0"),  # it would draw the same each time
    )
    for target, more, error, says in refused:
        with pytest.raises(error, match=says):
            evaluate(home, load(home), target, options(**more))
    with pytest.raises(NoVersion, match="nobody has ranked"):
        evaluate_people(home)
    assert host.asked == []


def test_of_a_run_what_lacks_is_said_before_its_model_is_served(home: Path):
    run = home / "training" / "mine"
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"recipe": "empathy_coe"}), encoding="utf-8")  # there is no model
    for more, says in (
        ({"release": "v9"}, "release"),
        ({"suites": ("judge",), "judges": ("nobody",)}, "model profile"),
    ):
        with pytest.raises(UnknownName, match=says):
            evaluate(home, load(home), "mine", options(**more))


def test_a_judge_that_prefers_its_own_is_told_of_a_profile_and_of_a_file(home: Path, host: JudgeHost, tmp_path: Path):
    def partial_to_itself(payload: dict[str, Any]) -> str:
        asked = json.loads(payload["messages"][-1]["content"]) if payload["messages"][-1]["content"][0] == "{" else {}
        if "answer" not in asked or payload["model"] != "tested-1":
            return replied(payload | {"model": "judge-1"}) if asked else COE
        points = 5 if asked["answer"] == ANSWER else 1
        respects = dict.fromkeys(("fluency_comfort", "empathic_understanding", "support_encouragement"), points)
        return json.dumps({"why": "是我写的。", **respects}, ensure_ascii=False)

    host.reply = partial_to_itself
    asked = options(suites=("judge",), judges=("tested", "judge"), size=20, samples=1)
    evaluate(home, load(home), "tested", asked)
    prompts = pl.read_parquet(home / "releases" / "v1" / "grpo_coe" / "*.parquet").filter(split="test")
    file = tmp_path / "answers.jsonl"
    rows = [{"row_id": row_id, "output": ANSWER, "model": "tested"} for row_id in prompts["row_id"]]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    evaluate(home, load(home), str(file), asked)
    for name in ("tested", "answers"):
        own = figures(home, name)["bias", "tested", "tested", "self_preference", "points", "all"]
        assert own["n"] > 3
        assert own["low"] > 0


def test_outputs_that_no_judge_can_read_are_counted_beside_the_means(home: Path, host: JudgeHost):
    told = iter(range(100))

    def reply(payload: dict[str, Any]) -> str:
        if payload["model"] != "tested-1":
            return replied(payload)
        return COE if next(told) == 0 else "<empathy_think><L1>他很累。"

    host.reply = reply
    evaluate(home, load(home), "tested", options(suites=("judge",), judges=("judge",), size=4))
    kept = figures(home, "tested")
    assert kept["judge", "tested", "all judges", "no_answer", "", "all"]["value"] == 0.75
    assert kept["judge", "tested", "judge", "overall", "", "all"]["n"] == 1
    assert kept["judge", "generic_comfort", "all judges", "no_answer", "", "all"]["value"] == 0


def test_figures_of_answers_that_are_replaced_go_with_them(home: Path):
    evaluate(home, load(home), "tested", options(suites=("judge",), judges=("judge",)))
    evaluate(home, load(home), "tested", options())
    assert {suite for suite, *_ in figures(home, "tested")} == {"automatic", "judge", "bias"}, "of the same answers"
    evaluate(home, load(home), "tested", options(prompts="grpo_cer"))
    assert {suite for suite, *_ in figures(home, "tested")} == {"automatic"}


def test_after_a_kill_between_answers_and_figures_those_of_other_answers_go_as_well(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    evaluate(home, load(home), "tested", options(suites=("judge",), judges=("judge",)))
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.operations.evaluate.kept._write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            evaluate(home, load(home), "tested", options(prompts="grpo_cer"))
    evaluate(home, load(home), "tested", options(prompts="grpo_cer"))
    assert {suite for suite, *_ in figures(home, "tested")} == {"automatic"}


def test_evaluations_of_one_name_at_once_lose_no_figure(tmp_path: Path):
    def kept(number: int) -> None:
        row = {"model": "m", "judge": "", "metric": f"f{number}", "mode": "", "subset": "all", "n": 1, "value": 1.0}
        keep(tmp_path, "one", None, [row | {"suite": SUITES[number], "low": None, "high": None}], {})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(kept, range(3)))
    assert {suite for suite, *_ in figures(tmp_path, "one")} == set(SUITES[:3])


def test_baselines_stand_on_the_questions_that_were_answered_and_n_says_how_many(home: Path, tmp_path: Path):
    prompts = pl.read_parquet(home / "releases" / "v1" / "grpo_coe" / "*.parquet").filter(split="test")
    file = tmp_path / "answers.jsonl"
    model = "$\\frac$ 心语"
    line = {"row_id": prompts["row_id"][0], "output": ANSWER, "model": model}
    file.write_text(json.dumps(line), encoding="utf-8")
    evaluate(home, load(home), str(file), options(size=None))
    kept = figures(home, "answers")
    assert {row["n"] for key, row in kept.items() if key[3] == "distinct_1" and key[4] == "answer"} == {1}
    page = write_report(home, ["answers"], tmp_path)[0].read_text(encoding="utf-8")
    assert "| model | n | " in page


def test_rankings_of_other_models_are_another_study(home: Path):
    ranked = [("q1", "a", "b"), ("q2", "a", "b"), ("q3", "a", "c")]
    rows = [
        row_of(
            Rankings,
            role="annotator",
            annotator="u_00000000000000ff",
            task_id=f"t{item}",
            item_id=item,
            kind="rank",
            models=list(models),
            places=[1, 2],
        )
        for item, *models in ranked
    ]
    Store(home / "data").write("rankings", frame(Rankings, *rows))
    evaluate_people(home)
    assert {key[4] for key in figures(home, "people")} == {"among a, b", "among a, c"}


def test_no_model_is_called_as_a_baseline_and_nobody_judges_what_has_no_judge(home: Path, tmp_path: Path):
    prompts = pl.read_parquet(home / "releases" / "v1" / "grpo_coe" / "*.parquet").filter(split="test")
    file = tmp_path / "sibling.jsonl"
    file.write_text(json.dumps({"row_id": prompts["row_id"][0], "output": ANSWER}), encoding="utf-8")
    with pytest.raises(UnreadableFile, match="called as a baseline"):
        evaluate(home, load(home), str(file), options())
    for name in ("people", "data-v1"):
        with pytest.raises(RequestError, match="kept for other figures"):
            evaluate(home, load(home), "tested", options(), name=name)
    for wrong in ({"split": "train"}, {"size": -1}, {"suites": ("judge",), "judges": ("judge", "judge")}):
        with pytest.raises(RequestError):
            evaluate(home, load(home), "tested", options(**wrong))
    with pytest.raises(RequestError, match="cannot name an evaluation"):
        evaluate(home, load(home), "tested", options(), name="../x")
    with pytest.raises(RequestError, match="nobody judges that suite"):
        rejudge(home, load(home), "tested", options(suites=("automatic",)))


def test_a_judge_is_held_against_labels_of_held_out_candidates_in_both_modes(home: Path, host: JudgeHost):
    evaluate(home, load(home), "judge", options(suites=("reward_model",)), name="rm")
    kept = figures(home, "rm")
    assert {mode for *_, mode, _ in kept} == {"unified", "apart", ""}
    # It says right of every step: the recall of False is 0.
    for mode in ("unified", "apart"):
        assert kept["reward_model", "judge", "", "recall_false", mode, "step1"]["value"] == 0
        assert kept["reward_model", "judge", "", "unread", mode, "response"]["value"] == 0
    assert 0 <= kept["reward_model", "length alone", "", "auc_of_length", "", "step1"]["value"] <= 1


def test_of_a_releases_data_the_report_has_a_table(home: Path, tmp_path: Path):
    version = evaluate_data(home, "v1")
    page = write_report(home, ["data-v1"], tmp_path)[0].read_text(encoding="utf-8")
    figures = Store(home / "data").read("evaluations", version.version, "data-v1").collect()
    assert {"near_duplicate_outputs", "personal_data"} <= set(figures["metric"])
    sets = ["figure", *sorted(set(figures["model"]))]
    head = page.replace("\\", "").partition("## Data of a release\n\n")[2].partition("\n")[0]
    assert [one.strip() for one in head.strip("|").split("|")] == sets


def test_the_command_line_takes_a_target_as_it_stands(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    run = CliRunner()
    options = ["--size", "3", "--budget", "5", "--json"]
    for words in (["tested", *options], [*options, "tested"]):
        shown = run.invoke(app, ["evaluate", *words])
        assert shown.exit_code == 0, shown.output
        assert {row["model"] for row in json.loads(shown.stdout)} == {"tested", *BASELINES}
    shown = run.invoke(
        app, ["evaluate", "tested", "--judge", "judge", "--samples", "1", "--size", "3", "--budget", "5"]
    )
    assert "judge was not calibrated" in shown.stdout
    shown = run.invoke(app, ["evaluate", "report", "tested", "--to", str(tmp_path / "page")])
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == ["evaluation.html", "evaluation.md"]
