"""What the doctor finds wrong, and that it goes on looking."""

import shutil

import pytest
from older_home import manifest_of, rewrite, say

from pipelines.defs.instance import ensure_configured
from pipelines.llm.ledger.ledger import Ledger
from pipelines.operations.doctor import Finding, examine, verdict
from pipelines.store import Store


def found(home, what):
    return [(one.state, one.detail) for one in examine(home) if one.what == what]


def test_the_verdict_counts_what_is_to_mend_and_names_the_first_few():
    sound, key = Finding("Python", "ok", "3.12"), Finding("author key", "warning", "none")
    broken = [Finding(name, "broken", "…") for name in ("ledger", "splits", "splits", "topics", "emotions")]
    assert verdict([sound, sound]) == "ready: 2 things are sound"
    assert verdict([sound, key]) == "ready: 1 thing is sound; 1 warning: author key"
    assert verdict([sound, broken[0]]) == "1 thing to mend: ledger"
    assert verdict([key, *broken]) == "5 things to mend: ledger, splits, topics, …; 1 warning: author key"


def test_a_dagster_yaml_that_is_none_or_keeps_nothing_is_broken(tmp_path):
    for content in (b"42", b"- one\n- two", b"just words", b"\xff\xfe", b"storage: [", b""):
        (tmp_path / "dagster.yaml").write_bytes(content)
        ((state, detail),) = found(tmp_path, "dagster.yaml")
        assert (state, str(tmp_path / "dagster.yaml") in detail) == ("broken", True), content
    assert "does not say that Dagster's state is kept in" in detail


def test_the_dagster_yaml_of_a_home_that_was_copied_is_broken(tmp_path):
    home, copied = tmp_path / "home", tmp_path / "copied"
    home.mkdir()
    ensure_configured(home)
    assert found(home, "dagster.yaml") == [("ok", str(home / "dagster.yaml"))]
    shutil.copytree(home, copied)
    ((state, detail),) = found(copied, "dagster.yaml")
    assert (state, str(copied / ".dagster") in detail, "remove the file" in detail) == ("broken", True, True)


@pytest.mark.drill("damage")
def test_every_damaged_version_is_named_and_not_the_first_alone(tmp_path, sample_store):
    store = Store(tmp_path / "data")
    rows = sample_store.read("splits").collect()
    made = [store.write("splits", rows.head(count)) for count in (3, 4, 5)]
    assert found(tmp_path, "splits") == [("ok", "3 versions, read and compared")]
    for version in made[:2]:
        file = tmp_path / "data" / "splits" / version.version / "rows" / "part-00000.parquet"
        file.write_bytes(file.read_bytes()[:-1])
    findings = found(tmp_path, "splits")
    assert [state for state, _ in findings] == ["broken", "broken"]
    assert all(any(version.version in detail for _, detail in findings) for version in made[:2])


def test_the_ledger_is_read_whole_where_there_is_one(tmp_path):
    path = tmp_path / "ledger.sqlite"
    assert (found(tmp_path, "ledger"), path.exists()) == ([], False)
    Ledger(path).close()
    assert [state for state, _ in found(tmp_path, "ledger")] == ["ok"]
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 4096 + content[8192:])
    ((state, detail),) = found(tmp_path, "ledger")
    assert (state, str(path) in detail) == ("broken", True)


@pytest.mark.drill("upgrade")
def test_a_table_of_an_older_gongqing_is_a_warning_and_one_of_a_newer_is_broken(tmp_path, sample_store):
    store = Store(tmp_path / "data")
    rows = sample_store.read("imported_dialogues").collect()
    version = store.write("imported_dialogues", rows, partition="sample")
    rewrite(store, version, rows.drop("topic"))
    assert [state for state, _ in found(tmp_path, "imported_dialogues/sample")] == ["ok"], "it is upgraded on reading"
    rewrite(store, version, rows.drop("lineage"), schema_version=-1)
    ((state, detail),) = found(tmp_path, "imported_dialogues/sample")
    assert (state, "import it again: gongqing import" in detail) == ("warning", True)
    say(store, manifest_of(version), schema_version=2)
    ((state, detail),) = found(tmp_path, "imported_dialogues/sample")
    assert (state, "newer gongqing" in detail) == ("broken", True)


def test_what_others_may_read_is_named_with_what_closes_it(tmp_path):
    home = tmp_path / "a corpus"
    (home / ".dagster").mkdir(parents=True)
    home.chmod(0o700)
    assert found(home, "permissions") == [("ok", "what lies in the home is for you alone")]
    home.chmod(0o755)
    (home / ".dagster").chmod(0o755)
    (home / ".dagster" / "runs.db").touch()
    (home / ".dagster" / "runs.db").chmod(0o644)
    ((state, detail),) = found(home, "permissions")
    assert state == "warning"
    assert detail.startswith("others may read 3 paths in ")
    assert detail.endswith(f"chmod -R go= '{home}' '{home / '.dagster'}'")
