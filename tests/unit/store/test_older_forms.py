"""Tables that an older or a newer gongqing has written: upgraded where nothing is lost by it, else refused in words."""

import polars as pl
import pytest
from older_home import manifest_of, rewrite, say

from pipelines.errors import NewerHome, OlderSchema
from pipelines.store import Store, Version
from schemas.tables import STANDING, TABLES

pytestmark = pytest.mark.drill("upgrade")

TABLE, ROWS = "imported_posts", TABLES["imported_posts"].sample(5)


def without_likes(rows: pl.DataFrame) -> pl.DataFrame:
    """Answers as they were before anybody counted who likes them."""
    inner = TABLES[TABLE].polars_schema()["answers"].inner
    fields = [pl.element().struct.field(field.name) for field in inner.fields if field.name != "likes"]
    return rows.with_columns(pl.col("answers").list.eval(pl.struct(fields)))


def written(store: Store, partition: str = "sample") -> Version:
    return store.write(TABLE, ROWS, partition=partition)


def refusal(store: Store, version: Version, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        store.require_todays(version)
    return str(caught.value)


def test_a_column_that_has_come_since_and_may_be_null_is_null(store: Store) -> None:
    version = written(store)
    rewrite(store, version, ROWS.drop("topic"))
    read = store.read(TABLE).collect()
    assert read.schema == TABLES[TABLE].polars_schema()
    assert read["topic"].null_count() == read.height == 5
    assert read.drop("topic").equals(store.read(TABLE, version.version, "sample").collect().drop("topic"))
    store.require_todays(store.version(TABLE, partition="sample"))
    TABLES[TABLE].validate(read)
    written(store, "today")
    assert store.read(TABLE).collect().height == 10, "partitions of several schemas together"
    rewrite(store, version, without_likes(ROWS))
    read = store.read(TABLE, version.version, "sample").collect()
    assert read.schema == TABLES[TABLE].polars_schema(), "so is a field within a column"
    assert read.explode("answers")["answers"].struct.field("likes").drop_nulls().is_empty()
    store.require_todays(store.version(TABLE, partition="sample"))


OLDER = {
    "lineage": ROWS.drop("lineage"),
    "mood": ROWS.with_columns(mood=pl.lit("low")),
    "topic": ROWS.with_columns(topic=pl.lit(3)),
    "answers": ROWS.with_columns(pl.col("answers").list.eval(pl.struct(text=pl.element().struct.field("text")))),
}


def test_any_other_difference_names_table_versions_columns_and_what_to_do(store: Store) -> None:
    today = TABLES[TABLE].version
    for column, older in OLDER.items():
        version = store.write(TABLE, ROWS, partition=column)
        rewrite(store, version, older, schema_version=-1)
        said = refusal(store, store.version(TABLE, partition=column), OlderSchema)
        assert f"imported_posts/{column} was written by an older gongqing: schema version {today - 1}" in said
        assert f"has {today}; other columns: {column}" in said
        assert f"hint: import it again: gongqing import NAME PATH --as {column}" in said
        assert store.read(TABLE, version.version, column).collect().columns == older.columns, "it can be looked at"


def test_an_older_meaning_is_refused_and_what_a_newer_gongqing_has_written_is_not_called_damaged(store: Store) -> None:
    version = written(store)
    say(store, manifest_of(version), schema_version=-1)
    assert "older gongqing" in refusal(store, store.version(TABLE, partition="sample"), OlderSchema)
    written(store)
    store.require_todays(store.version(TABLE, partition="sample"))
    say(store, manifest_of(version), schema_version=1)
    assert "newer gongqing: schema version" in refusal(store, store.version(TABLE, partition="sample"), NewerHome)
    say(store, manifest_of(version), schema_version=-1, from_the_future=1)
    pointer = f"{TABLE}/sample/current.json"
    for _ in range(2):
        with pytest.raises(NewerHome, match="the home was written by a newer gongqing") as caught:
            store.read(TABLE)
        assert "from_the_future" in str(caught.value)
        assert "hint: update gongqing" in str(caught.value)
        before = store.storage.get(pointer)
        with pytest.raises(NewerHome):
            written(store)
        assert store.storage.get(pointer) == before, "an older gongqing writes nothing over it"
        say(store, pointer, from_the_future=2)


def test_an_older_version_can_still_be_erased_from(store: Store) -> None:
    rewrite(store, written(store), ROWS.drop("topic"))
    version = store.version(TABLE, partition="sample")
    erased = store.erase(version, lambda _, rows: (rows.head(2), 0), erasure="e1")
    assert erased.rows == 2
    assert "topic" not in [column.name for column in erased.manifest.columns]
    assert store.read(TABLE).collect()["topic"].null_count() == 2


def test_a_derived_table_is_made_again_by_a_refresh_and_what_nothing_makes_again_never_names_one(store: Store) -> None:
    for table in ("unique_posts", *STANDING):
        version = store.write(table, TABLES[table].sample(2))
        say(store, manifest_of(version), schema_version=-1)
        hint = f"hint: make it again: gongqing refresh --select {table}"
        assert (hint in refusal(store, store.version(table), OlderSchema)) == (table not in STANDING), table
