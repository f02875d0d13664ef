"""What Dagster shows of a version."""

import base64
import re

import polars as pl
import pytest

from pipelines.defs.metadata import column_schema, describe, presentable
from pipelines.defs.plots import plots
from pipelines.operations.paper_tables import dialogue_diversity
from schemas.table import Dropped
from schemas.tables import TABLES

PEOPLES = ("clean_posts", "clean_dialogues", "unique_posts", "unique_dialogues")
PICTURED = [*PEOPLES, "splits", "sampled_turns", "sampled_rewrites", "grpo_ecot", "grpo_coe", "grpo_cer"]


def test_columns_have_types_and_descriptions():
    for table in TABLES:
        columns = column_schema(TABLES[table]).columns
        assert [column.name for column in columns] == TABLES[table].column_names()
        assert all(column.description and column.type for column in columns), table
        assert any(column.constraints.unique for column in columns) == (len(TABLES[table].key()) == 1), table


def png_of(drawn: str) -> bytes:
    return base64.b64decode(re.fullmatch(r"!\[.+\]\(data:image/png;base64,(.+)\)", drawn)[1])


@pytest.mark.parametrize("home", ["sample_store", "real_store"])
def test_pictures_are_small_pngs(home, request):
    store = request.getfixturevalue(home)
    for table in PICTURED:
        rows, dropped = store.read(table).collect(), store.read_dropped(table).collect()
        drawn = plots(table, rows, dropped)
        assert ("cluster_sizes" in drawn) == table.startswith("unique_")
        assert ("drops_by_source" in drawn) == (dropped.height > 0)
        assert "picture" in drawn
        for one in drawn.values():
            assert png_of(one).startswith(b"\x89PNG")
            assert len(png_of(one)) < 50_000
    assert plots("unique_posts", TABLES["unique_posts"].create_empty(), Dropped.create_empty()) == {}


def test_a_table_that_drops_from_many_sources_for_many_reasons_is_still_drawn():
    rows = [("t", "post", f"{source}:{n}", f"reason_{n % 20}", None) for source in "abcdefgh" for n in range(60)]
    rows.append(("t", "record", "a file, line 7", "unreadable", None))
    dropped = pl.DataFrame(rows, Dropped.polars_schema(), orient="row")
    drawn = plots("clean_posts", pl.DataFrame(), dropped)["drops_by_source"]
    assert png_of(drawn).startswith(b"\x89PNG")


def test_rewritten_dialogues_show_how_varied_they_are(sample_store):
    version = sample_store.version("rewritten_dialogues")
    shown, figures = describe(version, sample_store), dialogue_diversity(sample_store, version)
    assert [record.data["figure"] for record in shown["diversity"].records] == figures["figure"].to_list()
    for lang in figures["lang"].unique():
        assert png_of(shown[f"diversity_{lang}"].md_str).startswith(b"\x89PNG")


def test_a_sample_shows_ten_rows_as_they_were_cleaned(sample_store):
    """Texts in one table, all else in another: in one they would leave each other no room."""
    described = describe(sample_store.version("unique_posts"), sample_store)
    texts, fields = ([record.data for record in described[name].records] for name in ("sample", "sample_fields"))
    rows = sample_store.read("unique_posts").collect()
    rows = rows.filter(pl.col("risk").list.len() == 0, ~pl.col("under_18")).head(10)
    for shown in (texts, fields):
        assert [record["post_id"] for record in shown] == rows["post_id"].to_list()
    assert {*texts[0], *fields[0]} == set(rows.columns) - {"source_id", "url", "posted_at", "fetched_at"}
    assert texts[0].keys() & fields[0].keys() == {"post_id"}
    for record, words in zip(texts, rows["text"], strict=True):
        assert record["text"] == (words if len(words) <= 200 else words[:200] + "…")
    for record in fields:
        assert record["topic"].endswith(" characters")  # private still: the source's own words
        assert all(len(str(cell)) <= 40 for cell in record.values())


@pytest.mark.parametrize("table", PEOPLES)
def test_no_row_with_risk_or_by_a_minor_is_shown(sample_store, table):
    rows = sample_store.read(table).collect()
    hidden = rows.filter((pl.col("risk").list.len() > 0) | pl.col("under_18"))
    assert hidden.height > 0
    shown = describe(sample_store.version(table), sample_store)
    tables = [shown[name] for name in ("sample", "sample_fields", "merged_pairs") if name in shown]
    keys = {rows.columns[0], "row", "survivor"}
    ids = {value for one in tables for record in one.records for name, value in record.data.items() if name in keys}
    assert ids
    assert ids.isdisjoint(hidden[rows.columns[0]])
    at_risk = rows.with_columns(pl.lit([{"kind": "abuse", "rule": "r"}]).alias("risk"))
    assert at_risk.filter(presentable(at_risk)).is_empty()


def test_merged_pairs_stand_side_by_side_with_their_similarity(real_store):
    version = real_store.version("unique_dialogues")
    pairs = [record.data for record in describe(version, real_store)["merged_pairs"].records]
    assert len(pairs) == 10
    dropped = dict(real_store.read_dropped("unique_dialogues").collect().select("row_id", "detail").iter_rows())
    for pair in pairs:
        assert dropped[pair["row"]] == f"{pair['similarity']:.2f} like {pair['survivor']}"
        assert pair["row_text"] != pair["survivor_text"]
    assert [pair["similarity"] for pair in pairs] == sorted(pair["similarity"] for pair in pairs)


def test_the_raw_zone_shows_no_sample_at_all(sample_store):
    version = sample_store.version("imported_posts", partition="sample")
    assert {"sample", "sample_fields", "merged_pairs", "drops_by_source"}.isdisjoint(describe(version, sample_store))
