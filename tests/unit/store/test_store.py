"""What the store promises."""

import datetime as dt
import traceback
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from older_home import key_of, manifest_of, put
from polars.testing import assert_frame_equal
from store_rows import SECRET, TABLE, drops, groups

from pipelines.errors import DamagedVersion, InvalidRows, NoVersion, RequestError, UnknownName
from pipelines.store import Store, Version, parquet
from schemas.table import Dropped, to_arrow
from schemas.tables import PARTITIONED, TABLES

PARTS = {name: "a set" if name in PARTITIONED else None for name in TABLES}
# Tables with fewer keys than that many rows: one a role.
MOST = {"persona_fits": 2}


def sample(table: str, n: int = 6) -> pl.DataFrame:
    return TABLES[table].sample(min(n, MOST.get(table, n)), generator=dy.random.Generator(seed=n))


def files(store: Store, version: Version, part: str = "rows") -> list[str]:
    """Their keys."""
    return [key_of(store, version, file) for file in version.manifest.files if part in file.path]


def test_the_same_content_is_the_same_version_in_any_order_of_rows_columns_and_fields(store: Store) -> None:
    first = store.write(TABLE, groups(9), drops("p1", "p2"))
    shuffled = groups(9).sample(fraction=1, shuffle=True, seed=1).select(reversed(groups(9).columns))
    for rows in (groups(9), shuffled):
        assert store.write(TABLE, rows, drops("p2", "p1")).version == first.version
    assert store.version_ids(TABLE) == [first.version]
    said = TABLES["grpo_ecot"].sample(1)
    one = said.with_columns(reward_model=pl.struct(style=pl.lit("rule"), ground_truth=pl.lit("x")))
    other = said.with_columns(reward_model=pl.struct(ground_truth=pl.lit("x"), style=pl.lit("rule")))
    version = store.write("grpo_ecot", other)
    assert store.write("grpo_ecot", one).version == version.version
    store.verify(version)


def test_how_a_frame_lies_in_memory_is_no_content(store: Store) -> None:
    first = store.write(TABLE, groups(9))
    in_pieces = pl.concat([groups(9).slice(start, 2) for start in range(0, 9, 2)], rechunk=False)
    assert in_pieces.n_chunks() > 1
    assert store.write(TABLE, in_pieces).version == first.version
    assert store.write(TABLE, in_pieces.lazy()).version == first.version


def test_what_was_dropped_is_content(store: Store) -> None:
    contents = (drops(), drops("p1"), drops("p1", reason="too_long"), drops("p2"))
    versions = [store.write(TABLE, groups(9), dropped) for dropped in contents]
    assert len({version.version for version in versions}) == 4
    assert [version.dropped for version in versions] == [0, 1, 1, 1]
    assert store.read_dropped(TABLE, versions[2].version).collect()["reason"].to_list() == ["too_long"]
    assert store.read_dropped(TABLE, versions[0].version).collect().schema == Dropped.polars_schema()
    assert versions[2].manifest.reasons == {"post: too_long": 1}
    assert [versions[2].manifest.dropped_for(reason) for reason in ("too_long", "long")] == [1, 0]


def test_every_table_reads_back_as_it_was_written_and_may_be_empty(tmp_path: Path) -> None:
    store = Store(tmp_path / "data")
    for table, schema in TABLES.items():
        for rows in (sample(table), schema.create_empty()):
            version = store.write(table, rows, partition=PARTS[table])
            read = store.read(table, partition=PARTS[table]).collect()
            assert_frame_equal(read, rows.sort(schema.key()))
            assert read.schema == schema.polars_schema(), table
            assert (version.rows, version.dropped, version.current) == (len(rows), 0, True), table
            store.verify(version)
        for part, declared in (("rows", schema), ("dropped", Dropped)):
            (key,) = files(store, version, part)
            written = pq.read_schema(pa.BufferReader(store.storage.get(key)))
            assert written.equals(declared.arrow_schema(), check_metadata=True), table
            described = [written.field(name).metadata[b"description"].decode() for name in written.names]
            assert described == list(declared.describe().values()), table
            assert not [field for field in written if "large" in str(field.type) or "view" in str(field.type)], table
        assert [column.name for column in version.manifest.columns] == schema.column_names()


def test_a_row_group_takes_no_other_rows_along(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of a list column exports all its elements: past 2 GiB of text Arrow's plain strings overflow."""
    elements = []

    def exported(frame: pl.DataFrame, schema: Any) -> pa.Table:
        table = to_arrow(frame, schema)
        if "members" in table.column_names:
            elements.append(sum(len(chunk.values) for chunk in table.column("members").chunks))
        return table

    monkeypatch.setattr(parquet, "to_arrow", exported)
    monkeypatch.setattr(parquet, "_ROWS_AT_ONCE", 3)
    store.write(TABLE, groups(9))
    assert elements == [3, 3, 3]


def test_versions_are_listed_in_the_order_in_which_they_were_made_and_stay_readable(store: Store) -> None:
    made = [store.write(TABLE, groups(n)).version for n in range(1, 8)]
    store.write(TABLE, groups(3))  # again: that makes it current, not newer
    listed = store.versions(TABLE)
    assert [version.version for version in listed] == made
    assert [version.version for version in listed if version.current] == [made[2]]
    assert [version.rows for version in listed] == list(range(1, 8))
    for n, version in enumerate(made, 1):
        assert_frame_equal(store.read(TABLE, version[:6]).collect(), groups(n))


def test_promoting_moves_the_pointer_back_until_the_next_write(store: Store) -> None:
    first = store.write(TABLE, groups(5), code="1")
    store.write(TABLE, groups(5, "second"), code="2")
    inputs = store.pointer(TABLE).inputs
    promoted = store.promote(TABLE, first.version[:5])
    assert (promoted.version, promoted.current) == (first.version, True)
    assert store.pointer(TABLE).model_dump() == {"version": first.version, "inputs": inputs, "promoted": True}
    assert_frame_equal(store.read(TABLE).collect(), groups(5))
    assert [version.current for version in store.versions(TABLE)] == [True, False]
    third = store.write(TABLE, groups(5, "third"), code="3")
    pointer = {"version": third.version, "inputs": third.manifest.runs[0].inputs, "promoted": False}
    assert store.pointer(TABLE).model_dump() == pointer, "writing ends the promotion"


def test_a_version_that_is_not_there_and_a_beginning_of_two_cannot_be_named(store: Store) -> None:
    versions = [store.write(TABLE, groups(n)).version for n in range(1, 18)]
    first_digits = [version[0] for version in versions]
    twice = next(digit for digit in first_digits if first_digits.count(digit) > 1)
    for named in ("", "0123456789abcdef", "zz", "../../etc", twice):
        for call in (store.read, store.promote):
            with pytest.raises(UnknownName, match=versions[0]):
                call(TABLE, named)


def test_a_run_with_other_inputs_adds_a_line_and_one_with_the_same_none(store: Store) -> None:
    parents = [store.write("topics", sample("topics", n)) for n in (3, 4)]
    told = {"parents": parents, "code": "1", "settings": {"min": 3, "kinds": ("a", "b")}}
    note = {"file": Path("posts.jsonl"), "at": dt.date(2026, 11, 21), "columns": ("a", "b")}
    for _ in range(2):
        [run] = store.write(TABLE, groups(4), **told, note=note).manifest.runs
    assert run.settings == {"min": 3, "kinds": ["a", "b"]}
    assert run.note == {"file": "posts.jsonl", "at": "2026-11-21", "columns": ["a", "b"]}
    first, *others = [(parents[0], "", {}), (parents[1], "", {}), (parents[1], "2", {}), (parents[1], "2", {"min": 3})]
    for parent, code, settings in (first, *others, first):
        version = store.write(TABLE, groups(5), parents=[parent], code=code, settings=settings)
    assert [(run.parents["topics"], run.code, run.settings) for run in version.manifest.runs] == [
        (parent.version, code, settings) for parent, code, settings in (*others, first)
    ], "the last run is last"
    assert len({run.inputs for run in version.manifest.runs}) == 4
    assert store.pointer(TABLE).inputs == version.manifest.runs[-1].inputs


ODD = ["a b", "a/b", "../up", "...", ".hidden", "a|b", "100%", "%2F", "知乎·心理", "current.json", "rows", "x" * 200]


def test_a_partition_may_have_any_name(store: Store) -> None:
    for n, name in enumerate(ODD, start=1):
        store.write("imported_posts", sample("imported_posts", n), partition=name)
    assert sorted(store.partitions("imported_posts")) == sorted(ODD)
    for n, name in enumerate(ODD, start=1):
        assert store.read("imported_posts", partition=name).collect().height == n
        assert store.version("imported_posts", partition=name).name == f"imported_posts/{name}"
    assert {version.partition: version.rows for version in store.current("imported_posts")} == {
        name: n for n, name in enumerate(ODD, start=1)
    }
    assert {*store.storage.children("")} - {".tmp"} == {"imported_posts"}, "none leaves the folder"
    assert len(store.storage.children("imported_posts")) == len(ODD)


def test_a_name_that_cannot_be_a_folder_is_refused(store: Store) -> None:
    for name in ("", ".", "..", "0123456789abcdef", "x" * 201, "/" * 67):
        with pytest.raises(RequestError, match="cannot name a partition"):
            store.write("imported_posts", sample("imported_posts", 1), partition=name)
    assert store.partitions("imported_posts") == []


def test_a_partition_has_its_own_versions_and_all_are_read_together(store: Store) -> None:
    rows = [sample("imported_posts", n) for n in (2, 3)]
    first = store.write("imported_posts", rows[0], drops("p1"), partition="a")
    store.write("imported_posts", rows[1], partition="a")
    same = store.write("imported_posts", rows[0], drops("p1"), partition="b")
    assert same.version == first.version  # the content is the same; the place is another
    assert store.read("imported_posts").collect().height == 5
    store.promote("imported_posts", first.version, "a")
    assert store.read("imported_posts", partition="a").collect().height == 2
    assert store.read_dropped("imported_posts").collect().height == 2
    assert len(store.versions("imported_posts", "a")) == 2
    assert len(store.versions("imported_posts", "b")) == 1


def test_a_version_of_a_partitioned_table_needs_its_partition(store: Store) -> None:
    version = store.write("imported_posts", sample("imported_posts", 2), partition="a").version
    for call in (
        lambda: store.read("imported_posts", version),
        lambda: store.diff("imported_posts", version, version),
        lambda: store.versions("imported_posts"),
        lambda: store.promote("imported_posts", version),
        lambda: store.write("imported_posts", sample("imported_posts", 2)),
    ):
        with pytest.raises(RequestError, match="is partitioned"):
            call()
    with pytest.raises(RequestError, match="has no partitions"):
        store.write(TABLE, groups(2), partition="a")
    with pytest.raises(UnknownName, match="did you mean 'unique_posts'"):
        store.read("uniqe_posts")


def test_a_table_that_was_never_written_says_how_to_make_it(store: Store) -> None:
    for table, partition in ((TABLE, None), ("imported_posts", None), ("imported_posts", "a")):
        for call in (store.read, store.read_dropped):
            with pytest.raises(NoVersion, match="make one: gongqing"):
                call(table, partition=partition)
        assert store.current(table) == []
    assert store.versions(TABLE) == store.versions("imported_posts", "a") == []


INVALID = (
    pl.concat([groups(3), groups(3).with_columns(given_at=pl.lit(SECRET))]),  # a key twice
    groups(3).with_columns(split=pl.lit(SECRET)),  # outside its closed set
    groups(3, SECRET).drop("split"),
    groups(3, SECRET).with_columns(split=pl.lit(None, dtype=pl.String)),
    groups(3, SECRET).with_columns(group_id=pl.lit(None, dtype=pl.String)),
    groups(3, SECRET).lazy().with_columns(split=pl.col("given_at").cast(pl.Int64)),  # a query that fails
    pl.DataFrame(),
)


def test_rows_that_break_their_schema_are_refused_and_not_quoted(store: Store) -> None:
    before = store.write(TABLE, groups(3))
    broken = [(rows, drops(), TABLE) for rows in INVALID]
    for rows, dropped, name in (*broken, (groups(3), drops("p1", reason=SECRET), r"splits \(dropped\)")):
        with pytest.raises(InvalidRows, match=name) as caught:
            store.write(TABLE, rows, dropped)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert "\n\n" not in str(caught.value)
        assert store.versions(TABLE) == [store.version(TABLE)] == [before]
    for value in (float("nan"), float("inf")):
        with pytest.raises(InvalidRows, match="rewrite_drafts"):
            store.write("rewrite_drafts", sample("rewrite_drafts").with_columns(similarity=pl.lit(value)))


def test_verifying_finds_a_file_swapped_for_another_valid_one(store: Store) -> None:
    other, version = store.write(TABLE, groups(9, "other")), store.write(TABLE, groups(9))
    (key,), (of_other,) = files(store, version), files(store, other)
    put(store.storage, key, store.storage.get(of_other))
    with pytest.raises(DamagedVersion, match=store.storage.uri(key)):
        store.verify(version)

    # Even where the manifest was made to match: the version is its content.
    new, old = (one.manifest.files[0] for one in (other, version))
    manifest = store.storage.get(manifest_of(version)).decode()
    forged = manifest.replace(old.sha256, new.sha256).replace(f": {old.bytes},", f": {new.bytes},")
    put(store.storage, manifest_of(version), forged.encode())
    put(store.storage, key_of(store, version, new), store.storage.get(of_other))
    assert store.read(TABLE).collect().height == 9
    with pytest.raises(DamagedVersion, match=f"are those of version {other.version}: remove this folder first"):
        store.verify(store.version(TABLE))
