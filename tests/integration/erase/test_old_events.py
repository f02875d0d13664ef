"""Dagster's events as earlier versions wrote them: with each row its number at the source, and the time of posting."""

import datetime as dt
import re
import shutil
from pathlib import Path

import dagster as dg
import pytest
from erase_home import HERS, HIS, clean_post, frame, post
from every_byte import documents

from pipelines.defs import metadata
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


def unique(name, text, **more):
    clusters = {"cluster_id": f"s:{name}", "cluster_size": 1, "group_id": "g0"}
    return clean_post(name, text, **more) | clusters


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A home whose posts `s:12` and `s:123` Dagster has told all of, and a log their addresses."""
    home = tmp_path_factory.mktemp("old") / "home"
    store = Store(home / "data")
    store.write("imported_posts", frame("imported_posts", *rows(post)), partition="s")
    store.write("clean_posts", frame("clean_posts", *rows(clean_post)))
    store.write("unique_posts", frame("unique_posts", *rows(unique)))
    with pytest.MonkeyPatch.context() as patched, instance(home) as standing:
        patched.setattr(metadata, "_UNSHOWN", frozenset())
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
    found: dict[str, set[str]] = {name: set() for name in WANTED}
    for path, text in documents(home):
        for name in WANTED:
            if re.search(name, text):
                found[name].add(str(path.relative_to(home)))
    return found


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


@pytest.mark.parametrize("table", TABLES)
def test_rows_that_stay_are_shown_as_before(made, erased, table):
    before, after = shown(made, table), shown(erased, table)
    assert after == {name: told[1:] for name, told in before.items()}
    assert [row["source_id"] for row in after["sample_fields"]] == ["123", LONG]
    assert "gone: https://forum.example/t/123\n" in (erased / ".dagster/compute/crawl.err").read_text(encoding="utf-8")


def event(**tables):
    """As Dagster writes tables of an event."""
    return [
        {"label": label, "entry_data": {"records": [{"__class__": "TableRecord", "data": row} for row in told]}}
        for label, told in tables.items()
    ]


def test_a_record_that_names_an_erased_row_goes_also_by_the_mask_of_an_earlier_erasure(tmp_path):
    going = [
        {"row": "s:9", "survivor": "s:1", "survivor_text": "…"},
        {"source": "s", "source_id": "1"},
        {"dialogue_id": "s:1#3", "round": 3},
        {"answer_id": "s:1/9f2c01ab"},
        {"post_id": SuppressionList(tmp_path).mask("s:7"), "source_id": "7"},
    ]
    stays = {"post_id": "s:12"}
    assert without_erased_records(event(any_table=[*going, stays]), ErasedIds(["s:1"])) == event(any_table=[stays])


def test_a_bare_number_leads_to_nobody():
    values = [{"source": "s", "source_id": "2"}, {"n": "1", "source_id": 1}, {"text": "s:1 says"}]
    entries = [event(sample=values), {"records": ["s:1"]}, "s:1"]
    assert without_erased_records(entries, ErasedIds(["s:1"])) == entries
