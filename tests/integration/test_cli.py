"""The command line: what it prints, its exit codes, its JSON."""

import errno
import json
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest
import typer.rich_utils
from typer.testing import CliRunner

from pipelines.cli import app, main
from pipelines.flow.stages import MAKERS
from pipelines.llm.ledger.ledger import Ledger
from pipelines.llm.ledger.records import Call
from pipelines.settings import ROOT
from pipelines.store import Store
from schemas.tables import TABLES

COMMANDS = [
    "import", "crawl", "refresh", "tables", "tables promote", "show", "diff", "why", "erase", "stats", "doctor", "ui",
    "calibrate", "review", "review export", "review import", "review agreement",
    "demo", "ledger", "ledger budgets", "ledger close-budget", "ledger give-up-batch", "ledger compact",
    "ledger record", "train",
    "release", "releases", "releases promote", "export", "export folder", "export hub", "export jsonl", "restore",
]  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of the command line where a test does not name the samples': an empty one."""
    return tmp_path / "home"


def _run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def _json(*arguments: str):
    ran = _run(*arguments, "--json")
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output)


@pytest.fixture
def fails(capsys, monkeypatch):
    """Calls the entry point, and gives the exit code, the message, and what was printed before it."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gongqing", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return ended.value.code, printed.err, printed.out

    return call


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command, snapshot, monkeypatch):
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 100)
    monkeypatch.setattr(typer.rich_utils, "COLOR_SYSTEM", None)
    ran = _run(*command.split(), "--help")
    assert ran.exit_code == 0
    assert "\n".join(line.rstrip() for line in ran.output.splitlines()) == snapshot


def test_help_imports_nothing_heavy():
    code = (
        "import atexit, sys; sys.argv = ['gongqing', '--help']\n"
        "atexit.register(lambda: print(len(sys.modules), 'polars' in sys.modules, 'dagster' in sys.modules))\n"
        "from pipelines.cli import main; main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, polars, dagster = ran.stdout.split()[-3:]
    assert (polars, dagster) == ("False", "False")
    assert int(modules) < 900


def test_tables_lists_every_current_version(in_home):
    listed = _json("tables")
    assert listed[0].keys() == {"table", "partition", "version", "rows", "dropped"}
    imported = ("imported_posts", "imported_dialogues")
    assert [(row["table"], row["partition"]) for row in listed] == [
        (table, "sample" if table in imported else None) for table in TABLES if table in MAKERS or table in imported
    ]
    printed = _run("tables").output
    assert all(row["version"][:8] in printed for row in listed)


def test_show_prints_rows_and_json_and_reasons_of_drops(in_home):
    rows = _json("show", "unique_posts", "-n", "3")
    assert len(rows) == 3
    assert rows[0]["post_id"] in _run("show", "unique_posts", "-n", "1").output
    assert "system：" in _run("show", "grpo_cer", "-n", "1").output
    assert "too_short" in {row["reason"] for row in _json("show", "clean_posts", "--dropped", "-n", "500")}
    assert "too_short" in _run("show", "clean_posts", "--dropped").output


def test_why_follows_a_duplicate(in_home):
    events = _json("why", "sample:p083")
    life = {(event["table"], event["what"], event["reason"]) for event in events if event["row_id"] == "sample:p083"}
    assert {("clean_posts", "kept", None), ("unique_posts", "dropped", "duplicate")} <= life
    assert "same text as sample:p012" in _run("why", "sample:p083").output


def test_diff_and_promote_of_two_versions(home, sample_store):
    store, rows = Store(home / "data"), sample_store.read("splits").collect()
    first = store.write("splits", rows)
    second = store.write("splits", rows.tail(-2).with_columns(given_at=pl.lit("another time")))
    changes = _json("diff", "splits", first.version, second.version)
    assert [len(changes[kind]) for kind in ("added", "removed", "changed")] == [0, 2, rows.height - 2]
    assert "2 removed" in _run("diff", "splits", first.version, second.version).output
    assert "0 added, 0 removed, 0 changed" in _run("diff", "splits", first.version, first.version[:8]).output
    assert first.version in _run("tables", "promote", "splits", first.version[:6]).output
    assert store.version("splits").version == first.version
    assert {row["version"] for row in _json("tables", "--versions")} == {first.version, second.version}


def test_stats_stand_beside_the_papers(in_home):
    of_papers = {"M": {"M", "M subtopics"}, "E": {"E", "E splits"}, "C": {"C", "C agreement"}}
    assert set(_json("stats")) == set().union(*of_papers.values())
    for paper, tables in of_papers.items():
        assert set(_json("stats", "--against", paper.lower())) == tables
    [labels] = [row for row in _json("stats", "--against", "c")["C"]["rows"] if row["figure"] == "labels"]
    assert labels["C"] == 11_140
    assert "11,140" in _run("stats", "--against", "C").output
    assert "3,993*" in _run("stats").output


def test_its_version_is_that_of_the_package(in_home):
    assert _run("--version").output == f"gongqing {metadata.version('gongqing')}\n"


def test_show_finds_rows_by_id_and_by_condition_and_draws_the_same_sample_each_time(in_home):
    [first, *_] = _json("show", "unique_posts", "-n", "1")
    assert _json("show", "unique_posts", "--id", first["post_id"]) == [first]
    rounds = _json("show", "grpo_cer", "-n", "500")
    dialogue_id = rounds[0]["row_id"].partition("#")[0]
    found = _json("show", "grpo_cer", "--id", dialogue_id, "-n", "500")
    assert {row["row_id"] for row in found} >= {one["row_id"] for one in rounds if f"{dialogue_id}#" in one["row_id"]}
    long = _json("show", "unique_posts", "--where", "n_chars > 100 and lang = 'zh'", "-n", "500")
    assert long
    assert all(row["n_chars"] > 100 for row in long)
    drawn = _json("show", "unique_posts", "--sample", "-n", "3")
    assert drawn == _json("show", "unique_posts", "--sample", "-n", "3") != _json("show", "unique_posts", "-n", "3")


def test_show_dropped_has_the_text_of_what_was_dropped(in_home):
    units = {row["unit"]: row for row in _json("show", "clean_posts", "--dropped", "-n", "500")}
    assert {"post", "answer"} <= units.keys()
    assert all(units[unit]["text"] for unit in ("post", "answer"))
    dialogues = _json("show", "clean_dialogues", "--dropped", "-n", "500")
    assert any("seeker: " in (row["text"] or "") for row in dialogues)


def test_show_changed_prints_what_was_replaced_in_its_context(in_home):
    found = _json("show", "clean_posts", "--changed", "-n", "500")
    kinds = {kind["kind"] for row in _json("show", "clean_posts", "-n", "500") for kind in row["pii"]}
    assert {one["kind"] for one in found} == kinds
    assert all(one["text"] and one["place"].split()[0] in ("title", "description", "answer") for one in found)
    assert found[0]["text"] in _run("show", "clean_posts", "--changed").output


def test_stats_show_how_varied_rewrites_are(in_home, sample_store):
    figures = {(row["lang"], row["figure"]): row for row in _json("stats", "--diversity")}
    dialogues = [row for (_, figure), row in figures.items() if figure == "dialogues"]
    rewritten = sample_store.version("rewritten_dialogues").rows
    assert sum(row["P"] for row in dialogues) == sum(row["source"] for row in dialogues) == rewritten
    assert "distinct-2" in _run("stats", "--diversity").output


def test_an_estimate_makes_nothing(in_home):
    before = _json("tables")
    printed = _run("refresh", "--estimate", "--provider", "written").output
    for stage in ("coherent_dialogues", "cer_candidates"):
        assert re.search(rf"(?m)^{stage} +written +0 ", printed), printed
    assert _json("tables") == before


def test_an_unknown_price_or_a_missing_ledger_stops_before_anything_is_sent(home, sample_home, fails):
    assert "there is no ledger" in fails("ledger", "record", str(home / "nothing.jsonl"))[1]
    shutil.copytree(sample_home / "data", home / "data", dirs_exist_ok=True)
    ended, message, _ = fails("refresh", "--provider", "openai", "--estimate")
    assert ended == 2
    assert "nobody has said what qwen2.5-72b and deepseek-r1 and qwen2.5-vl cost" in message
    ended, message, _ = fails("refresh", "--provider", "replay", "--select", "topics")
    assert ended == 2
    assert "nothing to replay" in message


def test_an_empty_home_says_what_to_do():
    assert "gongqing import" in _run("tables").output
    assert "no model was asked yet" in _run("ledger").output
    assert _json("tables") == _json("ledger") == _json("ledger", "--open") == []


def test_a_budget_that_was_broken_off_is_listed_and_closed_and_a_batch_that_is_not_there_refused(home, fails):
    assert "no budget is open" in _run("ledger", "budgets").output
    assert "there is no ledger, so there are no batches" in fails("ledger", "give-up-batch", "3")[1]
    assert "there is no ledger to compact" in fails("ledger", "compact")[1]
    assert fails("ledger", "close-budget", "refresh")[0] == 2
    with Ledger(home / "ledger.sqlite") as ledger:
        ledger.open_budget(Decimal("2.5"), "USD", "refresh:topics")
    [budget] = _json("ledger", "budgets")
    assert (budget["budget"], budget["cap"], budget["spent"], budget["currency"]) == ("refresh:topics", 2.5, 0, "USD")
    wrong_name = (["close-budget", "refresh"], "did you mean 'refresh:topics'")
    for arguments, says in (wrong_name, (["give-up-batch", "3"], "batch")):
        ended, message, _ = fails("ledger", *arguments)
        assert (ended, says in message) == (2, True), message
    with Ledger(home / "ledger.sqlite") as ledger:
        call = Call("key", "topics", "qwen-plus", "m", b"{}")
        planned = ledger.batches.plan("qwen-plus", "https://example.org", [call], [1], None)
    assert "is given up: 1 questions" in _run("ledger", "give-up-batch", str(planned.batch.id)).output
    assert " MB now" in _run("ledger", "compact").output
    assert "refresh:topics is closed" in _run("ledger", "close-budget", "refresh:topics").output
    assert _json("ledger", "budgets") == []


def test_errors_say_what_and_what_to_do(in_home, fails, monkeypatch):
    monkeypatch.chdir(ROOT)
    for arguments, code, says in [
        (["show", "grpo_cerr"], 2, "did you mean 'grpo_cer'"),
        (["show", "unique_posts", "--changed"], 2, "tables that do: clean_posts, clean_dialogues"),
        (["show", "clean_posts", "--changed", "--dropped"], 2, "--changed reads the raw texts of today"),
        (["show", "unique_posts", "--where", "nope = 1"], 2, "it is no condition"),
        (["show", "unique_posts", "--where", "n_chars +"], 2, "it is no condition"),
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
    ]:
        ended, message, _ = fails(*arguments)
        assert (ended, says in message) == (code, True), message
    monkeypatch.setenv("GONGQING_SAMPLING__N_SAMPLE", "2")
    ended, message, _ = fails("refresh")
    assert ended == 2
    assert "did you mean 'sampling.n_samples'" in message


def test_a_home_that_is_a_file_is_refused(home, fails):
    home.write_text("", encoding="utf-8")
    for command in ("tables", "doctor", "demo"):
        ended, message, _ = fails(command)
        assert (ended, "the home is a file" in message) == (2, True)


@pytest.mark.drill("damage")
def test_tables_lists_the_others_where_some_are_damaged(home, sample_store, fails):
    store = Store(home / "data")
    for name in ("one", "two"):
        store.write("imported_posts", sample_store.read("imported_posts"), partition=name)
    store.write("splits", sample_store.read("splits"))
    (home / "data" / "imported_posts" / "two" / "current.json").write_bytes(b"")
    (home / "data" / "splits" / "current.json").write_text("{", encoding="utf-8")
    ended, message, printed = fails("tables", "--json")
    listed = {(row["table"], row["partition"]): row for row in json.loads(printed)}
    assert ended == 1
    assert listed["imported_posts", "one"]["rows"] > 0
    assert listed["imported_posts", "two"]["damaged"] == "the pointer of imported_posts/two cannot be read"
    assert listed["splits", None]["version"] is None
    assert "tables promote splits" in message
    assert "tables promote imported_posts VERSION --partition two" in message
    assert re.search(r"splits +damaged", fails("tables")[2])


@pytest.mark.drill("damage")
def test_a_refresh_names_the_damage_that_it_mends(home, sample_home):
    shutil.copytree(sample_home / "data", home / "data")
    (file,) = (home / "data" / "clean_dialogues").glob("*/rows/*.parquet")
    file.write_bytes(b"")
    output = _run("refresh", "--select", "clean_dialogues").output
    assert "clean_dialogues is damaged: a file has 0 bytes and should have" in output
    assert ": made again\n" in output


@pytest.mark.drill("damage")
def test_damage_ends_with_1_and_names_the_file(home, sample_store, fails):
    version = Store(home / "data").write("splits", sample_store.read("splits"))
    assert {finding["state"] for finding in _json("doctor")} <= {"ok", "warning"}
    assert _run("doctor").output.startswith("ready: ")
    file = home / "data" / "splits" / version.version / "rows" / "part-00000.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    ran = _run("doctor")
    assert (ran.exit_code, str(file) in ran.output) == (1, True)
    assert ran.output.startswith("1 thing to mend: splits; ")
    file.unlink()
    ended, message, _ = fails("show", "splits")
    assert ended == 1
    assert str(file) in message
    assert "restore its folder from a backup" in message


@pytest.mark.drill("disk")
def test_what_the_disk_refuses_says_what_to_do_and_a_mistake_of_ours_to_report_it(in_home, fails, monkeypatch):
    full = OSError(errno.ENOSPC, "Error writing bytes to file")
    for error, says in ((full, "free some space"), (KeyError("a mistake"), "report it")):
        monkeypatch.setattr("pipelines.cli.tables.list_tables", Mock(side_effect=error))
        ended, message, _ = fails("tables")
        assert (ended, says in message) == (1, True), message


def test_debug_shows_the_traceback(in_home, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gongqing", "--debug", "show", "nothing"])
    monkeypatch.setenv("_GONGQING_DEBUG", "")  # restored afterwards
    with pytest.raises(Exception, match="no table 'nothing'"):
        main()


def test_output_goes_whole_into_a_pipe(in_home):
    """Off a terminal there is no bar, no colour, and no line is cut."""
    environment = {"GONGQING_HOME": str(in_home), "PATH": "/usr/bin:/bin"}
    gongqing = Path(sys.executable).with_name("gongqing")
    ran = subprocess.run([gongqing, "tables"], env=environment, capture_output=True, text=True, check=True)
    assert "\x1b" not in ran.stdout
    assert "imported_dialogues" in ran.stdout
