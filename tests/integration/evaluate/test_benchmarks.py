"""SAGE and ESC-Eval on inspect-ai, against a host on loopback: the ledger, roles, figures, and `inspect eval`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from judge_host import JudgeHost
from judge_process import profiles
from pages import commands
from played import NAMES, ROLES, feels, played

from pipelines.errors import GongqingError, NoVersion, RequestError, UnknownName, UnreadableFile
from pipelines.evaluate.benchmarks import WORST, benchmark_rows, run_benchmark
from pipelines.evaluate.tasks.esc_eval import DIMENSIONS
from pipelines.operations.evaluate.evaluating import EvaluationOptions, evaluate
from pipelines.operations.evaluate.rejudging import rejudge
from pipelines.operations.evaluate.report import write_report
from pipelines.settings import ROOT, load
from pipelines.store import Store

SEEKERS = ROOT / "samples" / "evaluate" / "seekers.jsonl"


@pytest.fixture
def host() -> Iterator[JudgeHost]:
    with JudgeHost(played) as host:
        yield host


@pytest.fixture
def home(host: JudgeHost, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    profiles(home, host.base_url, names=NAMES, profile='key_variable = ""\n', temperature="temperature = 0.7\n")
    return home


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The profiles of two seekers: the first ends in success, the last in neither."""
    first, *_, last = SEEKERS.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "few.jsonl"
    file.write_text(f"{first}\n{last}\n", encoding="utf-8")
    return file


def run(home: Path, benchmark: Any, seekers: Path = SEEKERS, **more: Any) -> Any:
    settings = {"budget": Decimal(50), **more}
    return run_benchmark(
        benchmark, home, load(home).llm, "openai", "tested", ROLES, seekers, home / "evaluations", **settings
    )


def score_of(sample: Any) -> Any:
    [score] = sample.scores.values()
    return score


def figures(rows: list[dict[str, Any]]) -> dict[tuple[str, str], float | None]:
    return {(row["metric"], row["subset"]): row["value"] for row in rows}


def test_sage_ends_in_success_in_failure_or_after_ten_turns_and_keeps_the_emotion_of_each(home: Path, host: JudgeHost):
    log = run(home, "sage")
    emotions = {sample.id: score_of(sample).metadata["emotions"] for sample in log.samples}
    assert emotions["invented-1"] == [40, 50, 60, 70, 80, 90, 100]
    assert emotions["invented-2"] == [40, 30, 20, 10, 0]
    assert emotions["invented-3"] == [40 + 3 * turn for turn in range(10)]
    kept = figures(benchmark_rows(log, "sage", "tested", ROLES, "published"))
    assert kept["emotion", "all"] == pytest.approx((100 + 0 + 4 * 67) / 6)
    assert (kept["success", "all"], kept["failure", "all"]) == (pytest.approx(1 / 6), pytest.approx(1 / 6))
    assert kept["emotion", WORST] == 0
    assert kept["emotion", "type 内敛型"] == 100
    assert kept["unscored", "all"] == 0
    asked = len(host.asked)
    again = run(home, "sage")
    assert len(host.asked) == asked, "the ledger has every turn"
    assert figures(benchmark_rows(again, "sage", "tested", ROLES, "published")) == kept


def test_as_c_has_it_sage_goes_on_to_twenty_turns(home: Path, few: Path):
    log = run(home, "sage", few, setting="compeer")
    assert log.eval.task.endswith("sage_compeer")
    longest = max(len(score_of(sample).metadata["emotions"]) for sample in log.samples)
    assert longest == 20


def test_esc_eval_is_five_rounds_and_the_mean_of_two_judges(home: Path, host: JudgeHost):
    log = run(home, "esc_eval")
    assert {len(sample.metadata["dialogue"]) for sample in log.samples} == {10}
    kept = figures(benchmark_rows(log, "esc_eval", "tested", ROLES, "five rounds"))
    assert {kept[name, "all"] for name in DIMENSIONS} == {2.5}
    of_judges = [payload["model"] for payload in host.asked if "七个方面" in payload["messages"][0]["content"]]
    assert sorted(of_judges) == ["judge-1"] * 6 + ["second-1"] * 6


def test_a_reply_of_another_form_is_asked_for_once_more_and_then_that_seeker_has_no_score(home: Path, host: JudgeHost):
    def reply(payload: dict[str, Any]) -> str:
        if feels(payload):
            player = json.loads(payload["messages"][1]["content"])["seeker"]["player"][:2]
            if player == "何静" or (player == "林晓" and len(payload["messages"]) == 2):
                return "我给0分…不，4分"
        return played(payload)

    host.reply = reply
    log = run(home, "sage")
    emotions = {one.id: score_of(one).metadata["emotions"] for one in log.samples if one.scores}
    assert emotions["invented-1"][-1] == 100
    assert "invented-3" not in emotions
    assert figures(benchmark_rows(log, "sage", "tested", ROLES, "published"))["unscored", "all"] == pytest.approx(1 / 6)


def test_where_most_seekers_have_no_score_there_is_no_mean(home: Path, host: JudgeHost):
    host.reply = lambda payload: "心情好一点。" if feels(payload) and "林晓" not in str(payload) else played(payload)
    with pytest.raises(GongqingError, match="5 of 6 seekers have no score"):
        run(home, "sage")


def test_a_budget_that_is_used_up_ends_it_and_the_next_one_goes_on(home: Path, host: JudgeHost):
    with pytest.raises(GongqingError):
        run(home, "sage", budget=Decimal("0.05"))
    paid = len(host.asked)
    assert 0 < paid < 150
    log = run(home, "sage")
    assert figures(benchmark_rows(log, "sage", "tested", ROLES, "published"))["unscored", "all"] == 0


def test_profiles_that_are_none_are_refused_with_their_line(home: Path, tmp_path: Path):
    file = tmp_path / "seekers.jsonl"
    for line, says in (
        ('{"id": "a"}', "no profile of a seeker"),
        ("[]", "no profile of a seeker"),
        ('{"id": "a", "player": "p", "scene": "s", "task": "t", "character": "c"}\n' * 2, "an id stands there twice"),
    ):
        file.write_text(line, encoding="utf-8")
        with pytest.raises(UnreadableFile, match=says):
            run(home, "sage", seekers=file)


def test_what_is_lacking_is_said_before_anything_is_asked(home: Path, host: JudgeHost):
    with pytest.raises(UnknownName, match="setting of SAGE"):
        run(home, "sage", setting="fifty")
    settings = load(home)
    for suites, more, says in (
        (("sage",), {}, "needs profiles of seekers"),
        (("sage", "automatic"), {"seekers": SEEKERS, "seeker": "seeker"}, "is run by itself"),
        (
            ("esc_eval",),
            {"seekers": SEEKERS, "seeker": "seeker", "judges": ("judge",)},
            "the judges of ESC-Eval are two",
        ),
        (("sage",), {"seekers": SEEKERS, "seeker": "seeker", "setting": "fifty"}, "setting of SAGE"),
        (("sage",), {"seekers": SEEKERS, "seeker": "nobody"}, "model profile"),
        (("sage",), {"seekers": home / "none.jsonl", "seeker": "seeker"}, "no profiles"),
        (("sage",), {"seekers": SEEKERS, "seeker": "seeker", "judges": ("judge",)}, "judge"),
        (("esc_eval",), {"seekers": SEEKERS, "seeker": "seeker", "judges": ("judge", "second", "third")}, "judges"),
        (
            ("esc_eval",),
            {"seekers": home / "a.json", "seeker": "seeker", "judges": ("judge", "second")},
            "judged again",
        ),
    ):
        with pytest.raises(GongqingError, match=says):
            evaluate(home, settings, "tested", EvaluationOptions(suites=suites, budget=Decimal(1), **more))  # type: ignore[arg-type]
    assert host.asked == []


def test_settings_and_suites_are_kept_under_one_name_and_stand_in_tables_apart(home: Path, few: Path, tmp_path: Path):
    common: dict[str, Any] = {"seekers": few, "seeker": "seeker", "budget": Decimal(50)}
    for more in ({"suites": ("sage",)}, {"suites": ("sage",), "setting": "compeer"}):
        evaluate(home, load(home), "tested", EvaluationOptions(**common, **more))  # type: ignore[arg-type]
    judges = {"suites": ("esc_eval",), "judges": ("judge", "second")}
    evaluate(home, load(home), "tested", EvaluationOptions(**common, **judges))  # type: ignore[arg-type]
    rows = Store(home / "data").read("evaluations", partition="tested").collect()
    assert set(rows.select("suite", "mode").rows()) == {
        ("sage", "published"),
        ("sage", "compeer"),
        ("esc_eval", "five rounds"),
    }
    page = write_report(home, ["tested"], tmp_path)[0].read_text(encoding="utf-8").replace("\\", "")
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert titles == [
        *("SAGE, compeer", "SAGE, compeer, beside the paper", "SAGE, published"),
        *("SAGE, compeer, by type of seeker", "SAGE, published, by type of seeker"),
        *("ESC-Eval, five rounds", "ESC-Eval, five rounds, beside the paper"),
        *("ESC-Eval, five rounds, by type of seeker", "The judges beside people"),
    ]
    assert page.count("| C: COMPEER-URP |") == 2, "of C's own setting alone"
    made = sorted(line for line in page.splitlines() if line.startswith("| tested | "))
    assert [line.split(" | ")[1] for line in made[:3]] == ["esc_eval", "sage", "sage"]
    assert all(f"setting {setting}," in line for setting, line in zip(("compeer", "published"), made[1:3], strict=True))
    assert "judge was not calibrated" in page


def test_dialogues_of_a_log_are_judged_by_others_and_nobody_else_says_anything_again(
    home: Path, host: JudgeHost, few: Path
):
    common: dict[str, Any] = {"budget": Decimal(50), "suites": ("esc_eval",)}
    judges = {"seekers": few, "seeker": "seeker", "judges": ("judge", "second")}
    evaluate(home, load(home), "tested", EvaluationOptions(**common, **judges))  # type: ignore[arg-type]
    host.asked.clear()
    more = {"profile": 'key_variable = ""\n', "temperature": "temperature = 0.7\n"}
    profiles(home, host.base_url, names=(*NAMES, "third"), **more)  # type: ignore[arg-type]
    rejudge(home, load(home), "tested", EvaluationOptions(**common, judges=("third", "second")))
    assert [payload["model"] for payload in host.asked] == ["third-1"] * 2, "what the second has said is known"
    rows = Store(home / "data").read("evaluations", partition="tested").collect()
    kept, rows = len(rows), rows.filter(subset="all", metric="overall")
    assert dict(rows.select("judge", "value").iter_rows()) == {"seeker, judge, second": 2.5, "seeker, second, third": 1}
    rejudge(home, load(home), "tested", EvaluationOptions(**common, judges=("second", "third")))
    assert len(Store(home / "data").read("evaluations", partition="tested").collect()) == kept, "the same two"
    with pytest.raises(NoVersion, match="no dialogues"):
        rejudge(home, load(home), "nobody", EvaluationOptions(**common, judges=("third", "second")))
    cards = home / "cards.json"
    cards.write_text('{"id": "1"}', encoding="utf-8")
    with pytest.raises(UnreadableFile, match="no log of ESC-Eval"):
        run(home, "esc_eval", cards)
    with pytest.raises(RequestError, match="the judges of ESC-Eval are two"):
        rejudge(home, load(home), "tested", EvaluationOptions(**common, judges=("second", "second")))


def test_of_a_model_that_reasons_first_the_seeker_hears_the_answer_alone(home: Path, host: JudgeHost, few: Path):
    levels = "".join(f"<L{n}>他很累。</L{n}>" for n in (1, 2, 3, 4))
    chain = f"<empathy_think>{levels}</empathy_think><answer>先歇歇。</answer>"
    host.reply = lambda payload: chain if payload["model"] == "tested-1" else played(payload)
    for benchmark in ("sage", "esc_eval"):
        for sample in run(home, benchmark, few).samples:
            assert {turn["text"] for turn in sample.metadata["dialogue"] if turn["role"] == "supporter"} == {"先歇歇。"}


def test_a_type_of_seekers_may_be_called_as_anything(home: Path, tmp_path: Path):
    seekers = [json.loads(line) for line in SEEKERS.read_text(encoding="utf-8").splitlines()]
    seekers[0]["character"], seekers[1]["character"] = "all", WORST
    file = tmp_path / "seekers.jsonl"
    file.write_text("\ufeff" + "\n".join(map(json.dumps, seekers)), encoding="utf-8")
    rows = benchmark_rows(run(home, "sage", file), "sage", "tested", ROLES, "published")
    assert len({(row["metric"], row["subset"]) for row in rows}) == len(rows)
    assert {"type all", f"type {WORST}"} <= {row["subset"] for row in rows}
    [worst] = [row for row in rows if row["subset"] == WORST]
    emotions = sorted(row["value"] for row in rows if row["metric"] == "emotion" and row["subset"].startswith("type "))
    assert (worst["value"], worst["low"]) == (emotions[0], None), "a tenth of six is a part of the lowest"


def ran(command: list[str], logs: Path, **environment: str) -> dict[str, Any]:
    """The log of a task that `inspect eval` has run to its end."""
    command = [
        str(Path(sys.executable).with_name(command[0])),
        *command[1:],
        "--display",
        "none",
        "--log-format",
        "json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    words = [*command, "--log-dir", str(logs), "--limit", "2"]
    ran = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    [path] = logs.glob("*.json")
    log: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert log["status"] == "success"
    return log


def test_anybody_runs_a_task_as_inspect_eval_and_our_profiles_are_its_models(home: Path, tmp_path: Path):
    command = [
        "inspect",
        "eval",
        "pipelines/evaluate/tasks/esc_eval.py",
        "--model",
        "gongqing/tested",
        "-M",
        "budget=5",
    ]
    command += [
        f"--model-role={role}={{model: gongqing/{alias}, model_args: {{budget: 5}}}}" for role, alias in ROLES.items()
    ]
    log = ran([*command, "-T", f"profiles={SEEKERS}"], tmp_path / "logs", GONGQING_HOME=str(home))
    assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == 2.5


def test_the_command_of_the_page_asks_models_of_any_host(host: JudgeHost, tmp_path: Path):
    [command] = [one for one in commands("evaluating.md") if one.startswith("inspect eval ")]
    own = command.replace("seeker=openai-api/HOST/MODEL", "seeker=openai-api/host/seeker-1")
    words = own.replace("HOST/MODEL", "host/tested-1").replace("$PWD/FILE", str(SEEKERS)).split()
    log = ran(words, tmp_path / "logs", HOST_BASE_URL=host.base_url, HOST_API_KEY="of nobody")
    assert log["results"]["total_samples"] == 2
    assert {one["model"] for one in host.asked} == {"tested-1", "seeker-1"}
