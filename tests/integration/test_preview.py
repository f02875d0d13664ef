"""What a refresh would do, and why, without doing any of it; since when a table is stale."""

import hashlib
import shutil
from pathlib import Path

import polars as pl
import pytest
from killing import home_with
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.errors import NoVersion, RequestError, UnknownName, UnknownPrice
from pipelines.flow.preview import Preview, preview
from pipelines.flow.refresh import refresh, states
from pipelines.flow.stages import MAKERS, STAGES
from pipelines.flow.staleness import stale_since
from pipelines.settings import Filters, Settings
from pipelines.store import Store


@pytest.fixture
def home(tmp_path: Path, sample_home: Path) -> Path:
    """A copy of the sample home, to be changed."""
    shutil.copytree(sample_home / "data", tmp_path / "home" / "data")
    return tmp_path / "home"


@pytest.fixture
def imported(tmp_path: Path, sample_home: Path) -> Path:
    """A home in which nothing was ever made."""
    return home_with(sample_home, tmp_path / "imported", ["imported_posts", "imported_dialogues"])


def previews(home: Path, settings: Settings | None = None, *select: str, **who) -> dict[str, Preview]:
    """The previews by stage."""
    return {one.stage.name: one for one in preview(home, settings or Settings(), select, **who)}


def reasons(home: Path, settings: Settings | None = None, *select: str) -> dict[str, tuple[str, ...]]:
    """Why each stage would run that would."""
    return {name: one.reasons for name, one in previews(home, settings, *select).items() if one.runs}


def hash_of(home: Path) -> str:
    """Over the names, the contents and the times of all that lies in a home."""
    hashed = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        hashed.update(f"{path.relative_to(home)} {path.lstat().st_mtime_ns}".encode())
        hashed.update(path.read_bytes() if path.is_file() else b"")
    return hashed.hexdigest()


def test_what_is_up_to_date_would_not_run(sample_home):
    known = previews(sample_home)
    assert list(known) == [stage.name for stage in STAGES]
    assert not any(one.may_run or one.waits for one in known.values())


def test_a_changed_setting_is_named_and_what_comes_after_may_run(home):
    changed = Settings(filters=Filters(max_post_chars=19_999))
    known = previews(home, changed)
    setting = ("settings changed: filters.max_post_chars",)
    assert reasons(home, changed) == {"clean_posts": setting, "clean_dialogues": setting}
    assert known["unique"].after == ("clean_posts", "clean_dialogues")
    assert known["unique"].may_run
    assert "unique" not in previews(home, changed, "clean")


def test_a_parent_that_is_newer_is_named_and_so_is_one_of_many_partitions(home):
    store = Store(home / "data")
    rows = store.read("imported_posts").collect()
    store.write("imported_posts", rows.head(20), partition="sample")
    assert reasons(home)["clean_posts"] == ("imported_posts/sample changed",)
    store.write("imported_posts", rows.tail(-20), partition="another")
    assert reasons(home)["clean_posts"] == ("2 partitions of imported_posts changed",)


def test_changed_code_is_named(home, monkeypatch):
    monkeypatch.setattr("pipelines.flow.runner.code_version", lambda module: f"another {module}"[:12])
    assert reasons(home, None, "grpo_ecot") == {"grpo_ecot": ("the code changed",)}


def test_damage_and_an_erasure_are_named(home):
    Store(home / "data").make_stale("grpo_ecot")  # as an erasure does
    assert reasons(home, None, "grpo_ecot") == {"grpo_ecot": ("rows were erased",)}
    (file,) = (home / "data" / "clean_dialogues").glob("*/rows/*.parquet")
    file.write_bytes(b"")
    (why,) = reasons(home)["clean_dialogues"]
    assert why.startswith("clean_dialogues is damaged: a file has 0 bytes")


def test_rows_without_an_answer_are_counted(home):
    store = Store(home / "data")
    run = store.version("topics").manifest.runs[-1]
    rows, dropped = store.read("topics").collect(), store.read_dropped("topics").collect()
    unasked = pl.DataFrame(
        [{"row_id": rows["row_id"][0], "stage": "topics", "unit": "row", "reason": "not_asked_yet", "detail": ""}],
        schema=dropped.schema,
    )
    dropped = pl.concat([dropped, unasked])
    store.write(
        "topics", rows.tail(-1), dropped, parents=store.current("unique_posts"), code=run.code, settings=run.settings
    )
    assert "1 row without an answer" in previews(home)["topics"].reasons


def test_what_was_never_made_would_run_after_what_it_is_made_of_or_waits_with_it(imported):
    known = previews(imported)
    assert known["clean_posts"].reasons == ("it was never made",)
    assert known["unique"].reasons == ("clean_posts and clean_dialogues would be made first",)
    assert known["topics"].waits == known["personas"].waits
    assert known["topics"].waits.startswith("for a model: --provider openai")
    ran = {outcome.stage.name: outcome.ran for outcome in refresh(imported, Settings(), ["clean", "topics"])}
    assert ran == {name: known[name].runs for name in ran}, "as the refresh then does"
    assert sum(ran.values()) == 2


def test_what_costs_money_waits_for_a_budget_unless_there_is_one(imported):
    without = previews(imported, provider="openai")
    assert without["topics"].waits.startswith("for a budget: ")
    assert without["personas"].waits == without["disc_profiles"].waits == without["topics"].waits
    assert without["clean_posts"].runs
    with pytest.raises(UnknownPrice):
        previews(imported, provider="openai", budget=True)
    assert previews(imported, provider="written")["topics"].runs


def test_it_refuses_what_the_refresh_would_refuse(imported, tmp_path):
    with pytest.raises(RequestError, match="gongqing import"):
        preview(tmp_path / "empty", Settings())
    with pytest.raises(UnknownName, match="did you mean 'grpo_cer'"):
        preview(imported, Settings(), ["grpo_cerr"])
    with pytest.raises(NoVersion, match="come from clean_posts, and that was never made"):
        preview(imported, Settings(), ["unique"])


@pytest.mark.parametrize("who", [(), ("--provider", "openai"), ("--provider", "written", "--budget", "1")])
def test_the_command_prints_all_of_it_and_changes_no_file(home, monkeypatch, who):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    monkeypatch.setenv("GONGQING_FILTERS__MAX_POST_CHARS", "19999")
    home.chmod(0o700)
    before = hash_of(home)
    ran = CliRunner().invoke(app, ["refresh", "--dry-run", *who])
    assert ran.exit_code == 0, ran.output
    assert "settings changed: filters.max_post_chars" in ran.output
    assert "after clean_posts, clean_dialogues" in ran.output
    assert "nothing was made or asked" in ran.output
    assert hash_of(home) == before


def test_two_looks_at_once_are_refused(home, monkeypatch):
    monkeypatch.setenv("GONGQING_HOME", str(home))
    ran = CliRunner().invoke(app, ["refresh", "--dry-run", "--estimate"])
    assert isinstance(ran.exception, RequestError)


def test_a_stale_table_says_since_when_the_first_newer_version_of_a_parent_is_there(home):
    store = Store(home / "data")
    rows = store.read("imported_posts").collect()
    first = store.write("imported_posts", rows.head(20), partition="sample").manifest.runs[-1].at
    store.write("imported_posts", rows.head(10), partition="sample")
    assert stale_since(MAKERS["clean_posts"], store) == first
    known = states(store, Settings())
    assert known["clean_posts"] == f"stale since {first.astimezone():%Y-%m-%d %H:%M}"
    assert known["unique_posts"] == "up to date", "its own parents are as they were"


def test_a_table_that_is_stale_for_another_reason_says_no_time(home):
    store = Store(home / "data")
    assert states(store, Settings(filters=Filters(max_post_chars=19_999)))["clean_posts"] == "stale"
    assert stale_since(MAKERS["clean_posts"], store) is None
