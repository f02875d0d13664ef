"""The command line: what it prints, its exit codes, its JSON."""

import errno
import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
import typer.rich_utils
from typer.testing import CliRunner

from pipelines.cli import app, main
from pipelines.llm.ledger.ledger import Ledger
from pipelines.store import Store

COMMANDS = [
    *(
        "import",
        "crawl",
        "refresh",
        "tables",
        "tables promote",
        "show",
        "diff",
        "why",
        "erase",
        "stats",
        "doctor",
        "ui",
    ),
    "demo",
    *("ledger", "ledger budgets", "ledger close-budget", "ledger give-up-batch", "ledger record"),
    "train",
    *("release", "releases", "releases promote", "export", "export folder", "export hub", "export jsonl", "restore"),
]


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def _json(*arguments: str):
    ran = _run(*arguments, "--json")
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output)


def _fails(capsys, monkeypatch, *arguments: str) -> tuple[int, str]:
    """Exit code and message of a call that goes wrong, through the entry point."""
    monkeypatch.setattr(sys, "argv", ["gongqing", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command, snapshot, monkeypatch):
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 100)
    monkeypatch.setattr(typer.rich_utils, "COLOR_SYSTEM", None)
    ran = _run(*command.split(), "--help")
    assert ran.exit_code == 0
    assert "\n".join(line.rstrip() for line in ran.output.splitlines()) == snapshot


def test_help_costs_less_than_half_a_second_of_cpu_in_imports():
    """No heavy import for `--help` (tests/unit/test_house.py names them): here the whole command, in modules."""
    code = (
        "import sys; sys.argv = ['gongqing', '--help']\n"
        "from pipelines.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code + "print(len(sys.modules), 'polars' in sys.modules, 'dagster' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules, polars, dagster = ran.stdout.split()[-3:]
    assert (polars, dagster) == ("False", "False")
    assert int(modules) < 900


def test_tables_lists_every_current_version(in_home):
    listed = _json("tables")
    assert all(set(row) == {"table", "partition", "version", "rows", "dropped"} for row in listed)
    assert [(row["table"], row["partition"]) for row in listed] == [
        ("imported_posts", "sample"), ("imported_dialogues", "sample"), ("clean_posts", None),
        ("clean_dialogues", None), ("unique_posts", None), ("unique_dialogues", None), ("splits", None),
        ("coherent_dialogues", None), ("topics", None), ("emotions", None), ("sampled_turns", None),
        ("ecot_chains", None), ("coe_chains", None), ("cer_candidates", None),
        ("disc_profiles", None), ("persona_fits", None), ("personas", None), ("rewrite_drafts", None),
        ("rewrite_judgements", None), ("rewritten_dialogues", None), ("rewritten_rounds", None),
        ("grpo_ecot", None), ("grpo_coe", None), ("grpo_cer", None),
        ("sft_coe", None), ("sft_cer", None), ("rm_triplets", None),
        ("rm_process", None), ("rm_outcome", None), ("rm_unified", None),
    ]  # fmt: skip
    printed = _run("tables").output
    for row in listed:
        assert row["version"][:8] in printed


def test_tables_of_an_empty_home_says_what_to_do():
    assert "gongqing import" in _run("tables").output
    assert _json("tables") == []


def test_show_prints_rows_and_json(in_home):
    rows = _json("show", "unique_posts", "-n", "3")
    assert len(rows) == 3
    printed = _run("show", "unique_posts", "-n", "1").output
    assert rows[0]["post_id"] in printed
    assert rows[0]["title"][:6] in printed


def test_a_prompt_reads_as_a_conversation(in_home):
    printed = _run("show", "grpo_cer", "-n", "1").output
    (row,) = _json("show", "grpo_cer", "-n", "1")
    assert "system：" in printed
    assert "user：" in printed
    assert row["prompt"][-1]["role"] == "user"


def test_show_dropped_gives_reasons(in_home):
    rows = _json("show", "clean_posts", "--dropped", "-n", "500")
    assert {"too_short", "english", "advertisement", "post_dropped"} <= {row["reason"] for row in rows}
    assert "too_short" in _run("show", "clean_posts", "--dropped").output


def test_why_follows_a_duplicate(in_home, sample_store):
    events = _json("why", "sample:p083")
    told = {(event["table"], event["what"], event["reason"]) for event in events if event["row_id"] == "sample:p083"}
    assert ("clean_posts", "kept", None) in told
    assert ("unique_posts", "dropped", "duplicate") in told
    assert "same text as sample:p012" in _run("why", "sample:p083").output


def test_diff_of_a_version_with_itself_is_empty(in_home, sample_store):
    version = sample_store.version("splits").version
    assert _json("diff", "splits", version, version[:8]) == {"added": [], "removed": [], "changed": []}
    assert "0 added, 0 removed, 0 changed" in _run("diff", "splits", version, version).output


def test_diff_and_promote_of_two_versions(tmp_path, sample_store, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    store, rows = Store(tmp_path / "data"), sample_store.read("splits").collect()
    first = store.write("splits", rows)
    second = store.write("splits", rows.tail(-2).with_columns(given_at=pl.lit("another time")))
    found = _json("diff", "splits", first.version, second.version)
    assert [len(found[kind]) for kind in ("added", "removed", "changed")] == [0, 2, rows.height - 2]
    assert found["changed"][0]["columns"] == ["given_at"]
    assert "2 removed" in _run("diff", "splits", first.version, second.version).output
    assert first.version in _run("tables", "promote", "splits", first.version[:6]).output
    assert store.version("splits").version == first.version
    versions = {row["version"] for row in _json("tables", "--versions")}
    assert versions == {first.version, second.version}


def test_stats_stand_beside_the_papers(in_home):
    assert set(_json("stats")) == {"M", "E", "C"}
    assert set(_json("stats", "--against", "m")) == {"M"}
    printed = _run("stats").output
    assert "3,993*" in printed
    assert "168,470" in printed


def test_how_varied_rewrites_are_is_told(in_home):
    figures = {(row["lang"], row["figure"]): row for row in _json("stats", "--diversity")}
    kept = _json("tables")
    [rewritten] = [row for row in kept if row["table"] == "rewritten_dialogues"]
    dialogues = [row for (_, figure), row in figures.items() if figure == "dialogues"]
    assert sum(row["P"] for row in dialogues) == sum(row["source"] for row in dialogues) == rewritten["rows"]
    assert 0 < figures["zh", "distinct-2"]["P"] <= 1
    assert "distinct-2" in _run("stats", "--diversity").output


def test_what_questions_would_take_is_told_and_nothing_is_made(in_home):
    before = _json("tables")
    printed = _run("refresh", "--estimate", "--provider", "written").output
    for stage in ("coherent_dialogues", "topics", "emotions", "ecot_chains", "coe_chains", "cer_candidates"):
        assert re.search(rf"│ {stage} +│ written +│ +0 │", printed), printed
    assert _json("tables") == before


def test_a_price_that_nobody_has_said_stops_before_anything_is_sent(tmp_path, sample_home, capsys, monkeypatch):
    shutil.copytree(sample_home / "data", tmp_path / "home" / "data")
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "home"))
    ended, message = _fails(capsys, monkeypatch, "refresh", "--provider", "openai", "--estimate")
    assert ended == 2
    assert "nobody has said what qwen2.5-72b and deepseek-r1 and qwen2.5-vl cost" in message
    ended, message = _fails(capsys, monkeypatch, "refresh", "--provider", "replay", "--select", "topics")
    assert ended == 2
    assert "nothing to replay" in message
    shutil.rmtree(tmp_path / "home")
    ended, message = _fails(capsys, monkeypatch, "ledger", "record", str(tmp_path / "nothing.jsonl"))
    assert ended == 2
    assert "there is no ledger" in message


def test_without_a_call_the_ledger_says_so(in_home):
    assert "no model was asked yet" in _run("ledger").output
    assert _json("ledger") == _json("ledger", "--open") == []


def test_a_budget_that_was_broken_off_is_listed_and_closed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    assert "no budget is open" in _run("ledger", "budgets").output
    assert _fails(capsys, monkeypatch, "ledger", "close-budget", "refresh")[0] == 2
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.open_budget(Decimal("2.5"), "USD", "refresh:topics")
    [budget] = _json("ledger", "budgets")
    assert (budget["budget"], budget["cap"], budget["spent"], budget["currency"]) == ("refresh:topics", 2.5, 0, "USD")
    ended, message = _fails(capsys, monkeypatch, "ledger", "close-budget", "refresh")
    assert ended == 2
    assert "did you mean 'refresh:topics'" in message
    assert "refresh:topics is closed" in _run("ledger", "close-budget", "refresh:topics").output
    assert _json("ledger", "budgets") == []


def test_a_batch_that_is_not_there_cannot_be_given_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    assert _fails(capsys, monkeypatch, "ledger", "give-up-batch", "3")[0] == 2
    with Ledger(tmp_path / "ledger.sqlite"):
        pass
    ended, message = _fails(capsys, monkeypatch, "ledger", "give-up-batch", "3")
    assert ended == 2
    assert "batch" in message


def test_doctor_finds_a_sound_home_sound(in_home):
    assert {finding["state"] for finding in _json("doctor")} <= {"ok", "warning"}


def test_doctor_finds_damage_and_ends_with_1(tmp_path, sample_store, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    store = Store(tmp_path / "data")
    version = store.write("splits", sample_store.read("splits"))
    file = tmp_path / "data" / "splits" / version.version / "rows" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    ran = _run("doctor")
    assert ran.exit_code == 1
    assert str(file) in ran.output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["show", "grpo_cerr"], 2, "did you mean 'grpo_cer'"),
        (["show", "rollouts"], 1, "rollouts has no version yet"),
        (["refresh", "--provider", "opnai"], 2, "did you mean 'openai'"),
        (["show", "clean_posts", "--version", "zz"], 2, "no version of clean_posts 'zz'"),
        (["show", "clean_posts", "--partition", "x"], 2, "has no partitions"),
        (["why", "sample:p999"], 2, "no table holds or dropped a row 'sample:p999'"),
        (["why", "nonsense"], 2, "ids begin with"),
        (["stats", "--against", "X"], 2, "no paper 'X'"),
        (["import", "psyqaa", "x.json"], 2, "did you mean 'psyqa'"),
        (["import", "psyqa", "not-there.json"], 2, "not-there.json"),
        (["import", "mapped", "samples/posts.jsonl"], 2, "needs a mapping file"),
        (["import", "psyqa", "README.md", "--as", "Not A Name"], 2, "a data set cannot be called 'Not A Name'"),
        (["refresh", "--select", "promts"], 2, "did you mean 'prompts'"),
        (["tables", "promote", "splits", "0000"], 2, "no version of splits '0000'"),
        (["show"], 2, "Missing argument"),
        (["shwo"], 2, "No such command"),
    ],
)  # fmt: skip
def test_errors_say_what_and_what_to_do(arguments, code, says, in_home, capsys, monkeypatch):
    ended, message = _fails(capsys, monkeypatch, *arguments)
    assert ended == code
    assert says in message
    assert "Traceback" not in message


def test_a_wrong_setting_is_the_requests_fault(in_home, capsys, monkeypatch):
    monkeypatch.setenv("GONGQING_SAMPLING__N_SAMPLE", "2")
    ended, message = _fails(capsys, monkeypatch, "refresh")
    assert ended == 2
    assert "did you mean 'sampling.n_samples'" in message


def test_a_home_that_is_a_file_is_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path / "file"))
    for command in ("tables", "doctor", "demo"):
        ended, message = _fails(capsys, monkeypatch, command)
        assert ended == 2
        assert "the home is a file" in message


@pytest.mark.drill("damage")
def test_tables_lists_the_others_where_one_is_damaged(tmp_path, sample_store, monkeypatch, capsys):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    store = Store(tmp_path / "data")
    for table in ("splits", "unique_posts"):
        store.write(table, sample_store.read(table))
    (tmp_path / "data" / "splits" / "current.json").write_text("{", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["gongqing", "tables"])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert "unique_posts" in printed.out
    assert re.search(r"splits +│ damaged", printed.out)
    assert "tables promote splits" in printed.err


@pytest.mark.drill("damage")
def test_one_damaged_data_set_hides_neither_the_others_nor_another_that_is_damaged(
    tmp_path, sample_store, monkeypatch, capsys
):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    store = Store(tmp_path / "data")
    for name in ("one", "two", "three"):
        store.write("imported_posts", sample_store.read("imported_posts"), partition=name)
    store.write("splits", sample_store.read("splits"))
    for damaged in ("imported_posts/two", "splits"):
        (tmp_path / "data" / damaged / "current.json").write_bytes(b"")
    monkeypatch.setattr(sys, "argv", ["gongqing", "tables", "--json"])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr()
    listed = {(row["table"], row["partition"]): row for row in json.loads(printed.out)}
    assert listed["imported_posts", "one"]["rows"] == listed["imported_posts", "three"]["rows"] > 0
    assert listed["imported_posts", "two"]["damaged"] == "the pointer of imported_posts/two cannot be read"
    assert listed["splits", None]["version"] is None
    assert "tables promote splits" in printed.err
    assert "tables promote imported_posts VERSION --partition two" in printed.err


@pytest.mark.drill("damage")
def test_what_a_refresh_says_of_a_table_that_was_damaged(tmp_path, sample_home, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    shutil.copytree(sample_home / "data", tmp_path / "data")
    (file,) = (tmp_path / "data" / "clean_dialogues").glob("*/rows/*.parquet")
    file.write_bytes(b"")
    output = _run("refresh", "--select", "clean_dialogues").output
    assert "clean_dialogues is damaged: a file has 0 bytes and should have" in output
    assert ": made again\n" in output


@pytest.mark.drill("disk")
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/home/of/it/refresh.lock"), "where: /home/of/it/refresh.lock"),
        (OSError(errno.ENOSPC, "Error writing bytes to file"), "free some space"),
    ],
)
def test_what_the_disk_refuses_ends_with_1_and_says_what_to_do(in_home, capsys, monkeypatch, error, says):
    def refuse(*_, **__):
        raise RuntimeError("something else of Dagster's") from error

    monkeypatch.setattr("pipelines.cli.tables.list_tables", refuse)
    ended, message = _fails(capsys, monkeypatch, "tables")
    assert ended == 1
    assert says in message
    assert "report it" not in message


def test_debug_shows_the_traceback(in_home, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gongqing", "--debug", "show", "nothing"])
    monkeypatch.setenv("_GONGQING_DEBUG", "")  # restored afterwards
    with pytest.raises(Exception, match="no table 'nothing'"):
        main()


@pytest.mark.drill("damage")
def test_a_damaged_table_ends_with_1_and_names_the_file(tmp_path, sample_store, monkeypatch, capsys):
    monkeypatch.setenv("GONGQING_HOME", str(tmp_path))
    version = Store(tmp_path / "data").write("splits", sample_store.read("splits"))
    file = tmp_path / "data" / "splits" / version.version / "rows" / "part-00000.parquet"
    file.unlink()
    ended, message = _fails(capsys, monkeypatch, "show", "splits")
    assert ended == 1
    assert str(file) in message
    assert "restore its folder from a backup" in message
    assert "gongqing refresh" not in message


def test_output_goes_whole_into_a_pipe(in_home):
    """Off a terminal there is no bar, no colour, and no line is cut."""
    environment = {"GONGQING_HOME": str(in_home), "PATH": "/usr/bin:/bin"}
    gongqing = Path(sys.executable).with_name("gongqing")
    ran = subprocess.run([gongqing, "tables"], env=environment, capture_output=True, text=True, check=True)
    assert "\x1b" not in ran.stdout
    assert "imported_dialogues" in ran.stdout
