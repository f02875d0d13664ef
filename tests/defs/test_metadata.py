"""What Dagster shows of a version."""

import base64
import re

import pytest

from pipelines.defs.metadata import column_schema, describe
from pipelines.defs.pictures import picture
from schemas.tables import TABLES

PICTURED = ["clean_posts", "clean_dialogues", "unique_posts", "unique_dialogues", "splits", "sampled_turns",
            "grpo_ecot", "grpo_coe", "grpo_cer"]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_columns_have_types_and_descriptions(table):
    columns = column_schema(TABLES[table]).columns
    assert [column.name for column in columns] == TABLES[table].column_names()
    assert all(column.description and column.type for column in columns)
    assert any(column.constraints.unique for column in columns) == (len(TABLES[table].key()) == 1)


@pytest.mark.parametrize("table", PICTURED)
@pytest.mark.parametrize("home", ["sample_store", "real_store"])
def test_pictures_are_small_pngs(table, home, request):
    store = request.getfixturevalue(home)
    drawn = picture(table, store.read(table).collect())
    png = base64.b64decode(re.fullmatch(r"!\[.+\]\(data:image/png;base64,(.+)\)", drawn)[1])
    assert png.startswith(b"\x89PNG")
    assert len(png) < 50_000


def test_an_empty_table_has_no_picture():
    assert picture("clean_posts", TABLES["clean_posts"].create_empty()) is None


def test_a_sample_shows_lengths_and_ids_of_ten_rows(sample_store):
    shown = describe(sample_store.version("unique_posts"), sample_store)["sample"]
    rows = sample_store.read("unique_posts").head(10).collect()
    assert [record.data["post_id"] for record in shown.records] == rows["post_id"].to_list()
    assert [record.data["title"] for record in shown.records] == [f"{len(title)} characters" for title in rows["title"]]
    assert all(isinstance(record.data["n_chars"], int) for record in shown.records)


def test_the_raw_zone_shows_no_sample_at_all(sample_store):
    version = sample_store.version("imported_posts", partition="sample")
    assert "sample" not in describe(version, sample_store)
