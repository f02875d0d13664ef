"""The Parquet files of a release: names as the Hub's, rows by key, the same bytes for the same rows."""

import polars as pl
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from release_rows import triplets

from pipelines.store import parquet
from pipelines.store.parquet import write_shards
from schemas.labels import SPLITS
from schemas.tables import TABLES

TABLE = TABLES["rm_triplets"]


def test_a_split_has_a_file_and_one_without_rows_has_none(tmp_path):
    rows = triplets(("b", "train"), ("c", "test"), ("a", "train"))
    found = write_shards(tmp_path, "rm_triplets", TABLE, rows)
    assert [(one.path, one.split, one.rows) for one in found] == [
        ("rm_triplets/train-00000-of-00001.parquet", "train", 2),
        ("rm_triplets/test-00000-of-00001.parquet", "test", 1),
    ]
    assert pl.read_parquet(tmp_path / found[0].path)["row_id"].to_list() == ["a", "b"]
    assert [one.bytes for one in found] == [(tmp_path / one.path).stat().st_size for one in found]
    assert pq.read_schema(tmp_path / found[0].path).equals(TABLE.arrow_schema(), check_metadata=True)


def test_a_large_split_is_cut_into_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SHARD_ROWS", 3)
    monkeypatch.setattr(parquet, "_ROWS_AT_ONCE", 2)
    rows = triplets(*((f"{number:02d}", "train") for number in range(7)))
    found = write_shards(tmp_path, "rm_triplets", TABLE, rows)
    assert [(one.path, one.rows) for one in found] == [
        ("rm_triplets/train-00000-of-00003.parquet", 3),
        ("rm_triplets/train-00001-of-00003.parquet", 3),
        ("rm_triplets/train-00002-of-00003.parquet", 1),
    ]
    assert pl.read_parquet([tmp_path / one.path for one in found]).equals(rows)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.text("ab1/#~", min_size=1), st.sampled_from(SPLITS)), unique_by=lambda row: row[0]))
def test_the_same_rows_give_the_same_bytes_in_whatever_order_they_come(tmp_path_factory, rows):
    one, other = (tmp_path_factory.mktemp("shards") for _ in range(2))
    assert write_shards(one, "rm_triplets", TABLE, triplets(*rows)) == write_shards(
        other, "rm_triplets", TABLE, triplets(*reversed(rows))
    )
