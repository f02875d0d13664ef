"""Dagster's events as earlier versions wrote them: with each row its number at the source, and the time of posting."""

import datetime as dt
import re
import shutil
from pathlib import Path

import dagster as dg
import pytest
from erase_home import HERS, HIS, clean_post, frame, post, unique_post
from every_byte import documents

from pipelines.defs import metadata, samples
from pipelines.defs.instance import instance
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.rows import ErasedIds
from pipelines.operations.erase.survey import Request
from pipelines.operations.erase.traces import without_erased_records
from pipelines.store.store import Store
from pipelines.store.suppression import SuppressionList

TABLES = ("clean_posts", "unique_posts")
URL = "https://forum.example/t/12"
POSTED = dt.datetime(2025, 3, 10, 13, 33, 7, tzinfo=dt.UTC)
LONG = "b" * 38  # with its source longer than a column is wide: it stands among the texts
WANTED = (r"s:12(?!3)", r'"12\\*"', rf"{URL}(?!3)", "2025-03-10", "13:33:07")  # patterns


def rows(kind):
    hers = {"url": URL, "posted_at": POSTED, "author": "u_00000000000000aa"}
    his = {"url": URL + "3", "posted_at": POSTED.replace(month=5, minute=41)}
    return [kind("12", HERS, **hers), kind("123", HIS, **his), kind(LONG, HIS + "？", **his)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A home whose posts `s:12` and `s:123` Dagster has told all of, and a log their addresses."""
    home = tmp_path_factory.mktemp("old") / "home"
    store = Store(home / "data")
    store.write("imported_posts", frame("imported_posts", *rows(post)), partition="s")
    store.write("clean_posts", frame("clean_posts", *rows(clean_post)))
    store.write("unique_posts", frame("unique_posts", *rows(unique_post)))
    with pytest.MonkeyPatch.context() as patched, instance(home) as standing:
        patched.setattr(samples, "_UNSHOWN", frozenset())
        patched.setattr(samples, "_draw", lambda rows, _: rows)  # the first ones, in their order
        for table in TABLES:
            shown = metadata.describe(store.version(table), store)
            standing.report_runless_asset_event(dg.AssetMaterialization(table, metadata=shown))
    (home / ".dagster" / "compute").mkdir()
    (home / ".dagster" / "compute" / "crawl.err").write_text(f"gone: {URL}\ngone: {URL}3\n", encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def erased(made, tmp_path_factory) -> Path:
    home = Path(shutil.copytree(made, tmp_path_factory.mktemp("erased") / "home"))
    (home / "dagster.yaml").unlink()  # it names the place of the other
    erase(home, Request(rows=("s:12",)))
    return home


def occurrences(home: Path) -> dict[str, set[str]]:
    """The wanted patterns, and the files that hold them. `12` alone is part of many numbers: here it is a string."""
    texts = [(str(path.relative_to(home)), text) for path, text in documents(home)]
    return {name: {path for path, text in texts if re.search(name, text)} for name in WANTED}


def shown(home: Path, table: str) -> dict[str, list[dict]]:
    with instance(home) as standing:
        event = standing.get_latest_materialization_event(dg.AssetKey(table)).asset_materialization
    return {name: [one.data for one in event.metadata[name].records] for name in ("sample", "sample_fields")}


def test_before_it_all_of_it_is_found_in_the_events(made):
    found = occurrences(made)
    logged = found.pop(WANTED[2])  # of addresses the events tell how long they are
    assert ".dagster/compute/crawl.err" in logged
    assert all(".dagster/storage/history/runs/index.db" in paths for paths in found.values()), found


@pytest.mark.drill("privacy")
def test_no_byte_holds_the_number_or_the_time(erased):
    assert {name: paths for name, paths in occurrences(erased).items() if paths} == {}


def test_rows_that_stay_are_shown_as_before(made, erased):
    for table in TABLES:
        before, after = shown(made, table), shown(erased, table)
        assert after == {name: told[1:] for name, told in before.items()}, table
        assert [row["source_id"] for row in after["sample_fields"]] == ["123", LONG], table
    assert "gone: https://forum.example/t/123\n" in (erased / ".dagster/compute/crawl.err").read_text(encoding="utf-8")


def event(rows):
    """As Dagster writes a table of an event."""
    return {"label": "sample", "entry_data": {"records": [{"__class__": "TableRecord", "data": row} for row in rows]}}


def test_a_record_that_names_an_erased_row_goes_and_a_bare_number_leads_to_nobody(tmp_path):
    going = [
        {"row": "s:9", "survivor": "s:1", "survivor_text": "…"},
        {"source": "s", "source_id": "1"},
        {"dialogue_id": "s:1#3", "round": 3},
        {"answer_id": "s:1/9f2c01ab"},
        {"post_id": SuppressionList(tmp_path).mask("s:7"), "source_id": "7"},
    ]
    stay = [{"post_id": "s:12"}, {"source": "s", "source_id": "2"}, {"n": "1", "source_id": 1}, {"text": "s:1 says"}]
    entries, left = ([event(rows), {"records": ["s:1"]}, "s:1"] for rows in ([*going, *stay], stay))
    assert without_erased_records(entries, ErasedIds(["s:1"])) == left, "also by the mask of an earlier erasure"
