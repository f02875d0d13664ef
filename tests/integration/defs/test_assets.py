"""Assets and checks, run on an ephemeral instance."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

from pipelines.definitions import build_definitions
from pipelines.defs import assets
from pipelines.defs.resources import HomeResource
from pipelines.settings import ROOT
from schemas.tables import TABLES

TRENDS = ("not_empty", "not_shrunk", "not_drifted")
POSTS = ROOT / "samples" / "posts.jsonl"


@pytest.fixture
def copied(sample_home: Path, tmp_path: Path) -> HomeResource:
    """A home with the samples and every table, to be written to."""
    shutil.copytree(sample_home, tmp_path / "home", dirs_exist_ok=True)
    return HomeResource(path=str(tmp_path / "home"))


def _import_posts(instance: dg.DagsterInstance, home: HomeResource, **options: Any) -> dg.ExecuteInProcessResult:
    instance.add_dynamic_partitions("data_set", ["sample", "other"])
    config = {"reader": "mapped", "file": str(POSTS), "mapping": str(POSTS.with_suffix(".toml"))}
    options |= {"resources": {"home": home}, "run_config": {"ops": {"imported_posts": {"config": config}}}}
    return dg.materialize([assets.imports[0]], instance=instance, **options)


def _event(result: dg.ExecuteInProcessResult, table: str) -> dg.AssetMaterialization:
    events = result.get_asset_materialization_events()
    return next(one.step_materialization_data.materialization for one in events if one.asset_key == dg.AssetKey(table))


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A home of which the posts were imported, and every table that needs no model made, by Dagster."""
    home = HomeResource(path=str(tmp_path_factory.mktemp("refreshed")))
    (home.folder / "author.key").write_text("5" * 64)
    with dg.DagsterInstance.ephemeral() as instance:
        imported = _import_posts(instance, home, partition_key="sample")
        job = build_definitions({"home": home}).resolve_job_def("refresh_free_tables")
        made = job.execute_in_process(instance=instance)
        yield SimpleNamespace(home=home, instance=instance, imported=imported, job=job, made=made)


def test_an_import_is_one_partition_with_the_stores_version(refreshed):
    home, result = refreshed.home, refreshed.imported
    made = _event(result, "imported_posts")
    version = home.store().version("imported_posts", partition="sample")
    assert made.partition == "sample"
    assert made.tags["dagster/data_version"] == version.version
    assert made.metadata["dagster/partition_row_count"].value == made.metadata["read"].data["records"] == version.rows
    assert "dagster/row_count" not in made.metadata, "that of all partitions is their sum, and not that of the last one"
    checked = {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
    assert set(checked) == {"schema", "reconciliation"}
    assert all(evaluation.passed for evaluation in checked.values())
    balance = f"record: {version.rows} in, {version.rows} kept, 0 dropped"
    assert checked["reconciliation"].metadata["record"].text == balance


def test_the_whole_job_runs_and_its_checks_pass(refreshed):
    home, job, result = refreshed.home, refreshed.job, refreshed.made
    evaluations = result.get_asset_check_evaluations()
    assert {evaluation.check_name for evaluation in evaluations} == {"schema", "reconciliation", "size", *TRENDS}
    assert all(evaluation.passed for evaluation in evaluations)
    tables = {key.to_user_string() for key in job.asset_layer.executable_asset_keys}
    waiting = {table for table in tables if home.store().pointer(table) is None}
    assert {"topics", "sft_coe"} <= waiting
    assert waiting.isdisjoint({"grpo_ecot", "grpo_coe", "grpo_cer"})
    for table in waiting:
        assert "never made: it waits for a model" in _event(result, table).metadata["state"].value
    for table in tables - waiting:
        made, version = _event(result, table), home.store().version(table)
        assert made.tags["dagster/data_version"] == version.version
        assert made.metadata["dagster/row_count"].value == version.rows
        assert sum(record.data["rows"] for record in made.metadata["drop_reasons"].records) == version.dropped


def test_a_check_fails_on_rows_that_were_lost_or_break_a_rule(copied, monkeypatch):
    """Rows that vanish behind the store's back, as a bug in a later part would do it."""
    store = copied.store()
    rows, dropped = store.read("clean_posts").collect(), store.read_dropped("clean_posts").collect()
    store.write("clean_posts", rows.head(5), dropped)
    wanted = {dg.AssetKey("clean_posts")}
    check = next(one for one in assets.checks if {key.asset_key for key in one.check_keys} == wanted)
    schema, reconciliations = check(home=copied)
    assert (schema.passed, reconciliations.passed) == (True, False)
    assert "5 kept" in reconciliations.metadata["post"].text
    broken = Mock(side_effect=dy.exc.ValidationError("as if a rule were broken"))
    monkeypatch.setattr(TABLES["clean_posts"], "validate", broken)
    schema, _ = check(home=copied)
    assert not schema.passed


def test_what_nobody_should_read_does_not_reach_dagsters_metadata(refreshed):
    """All events of an import and a refresh: ten cleaned rows a table, and nothing else that people wrote.

    No personal data; and not the beginning of any post or answer that was dropped, shows signs of risk, or was
    written by somebody below 18.
    """
    home, instance = refreshed.home, refreshed.instance
    logged = "".join(
        entry.to_json() if hasattr(entry, "to_json") else repr(entry)
        for run in instance.get_runs()
        for entry in instance.all_logs(run.run_id)
    )
    logged += json.loads(json.dumps(logged).replace("\\\\u", "\\u"))  # as JSON escapes it, and as it is read
    store = home.store()
    imported, clean = store.read("imported_posts", partition="sample").collect(), store.read("clean_posts").collect()
    assert any(words[:10] in logged for words in clean["text"])
    hidden = clean.filter((pl.col("risk").list.len() > 0) | pl.col("under_18"))["post_id"].to_list()
    hidden += store.read_dropped("clean_posts").filter(pl.col("unit") == "post").collect()["row_id"].to_list()
    assert len(hidden) > 20
    for row in imported.iter_rows(named=True):
        for words in [row["title"], row["description"], *(answer["text"] for answer in row["answers"])]:
            assert row["post_id"] not in hidden or len(words) < 10 or words[:10] not in logged
            for number in re.findall(r"\d[\d -]{9,}\d|[\w.]+@[\w.]+", words):
                assert number not in logged


def test_two_partitions_are_never_one_run(instance, tmp_path, monkeypatch):
    """A range run would give all partitions one data version: the run refuses, and nothing is written."""
    monkeypatch.setenv("GONGQING_AUTHOR_KEY", "for the tests alone, 16 bytes")
    home = HomeResource(path=str(tmp_path / "home"))
    tags = {"dagster/asset_partition_range_start": "other", "dagster/asset_partition_range_end": "sample"}
    assert not _import_posts(instance, home, tags=tags, raise_on_error=False).success
    assert home.store().partitions("imported_posts") == []
