"""The index gives what a full run gives, whatever it held before; and it hashes only what it has not seen."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_texts import (
    POOL,
    bytes_of,
    chain,
    columns,
    edited,
    families,
    files,
    new_folder,
    sentence,
    strays,
    tables,
    upper_halves,
)
from polars.testing import assert_frame_equal

from pipelines.core.arrow import buffers
from pipelines.dedup import find_duplicates, index, remembered
from pipelines.dedup.bands import band_keys
from pipelines.dedup.index import Index
from pipelines.errors import RequestError

Table = dict[str, str | None]
Fetch = Callable[[pl.Series], pl.Series]


def fetch_from(table: Table) -> Fetch:
    return lambda ids: pl.Series([table[one] for one in ids], dtype=pl.String)


def is_a_full_run(folder: Path, table: Table, earliest: pl.Series | None = None, **settings) -> Index:
    """The index in a folder, which gave the same as a full run over the table."""
    ids, texts = columns(table)
    opened = Index(folder, **settings)
    found = opened.clusters(ids, texts, earliest=earliest)
    assert_frame_equal(found, find_duplicates(texts, ids=ids, earliest=earliest, **settings))
    return opened


def clusters_by_id(table: Table) -> set[frozenset[str]]:
    ids, texts = columns({one: text for one, text in table.items() if text is not None})
    found = find_duplicates(texts, ids=ids).with_columns(id=ids)
    return {frozenset(cluster) for cluster in found.group_by("cluster_id").agg("id")["id"].to_list()}


# Equal to a full run


@settings(max_examples=60)
@given(st.lists(tables, min_size=1, max_size=5), st.sampled_from(["exact", "fast"]), st.integers(0, 9))
def test_a_table_that_changes_at_will(versions, mode, seed):
    """Additions, changes, removals, re-posts, other orders, other dates: each time what a full run gives."""
    folder, random = new_folder(), Random(seed)
    try:
        for table in versions:
            earliest = pl.Series([random.choice([None, 1, 2, 3]) for _ in table], dtype=pl.Int64)
            is_a_full_run(folder, table, earliest, mode=mode)
    finally:
        shutil.rmtree(folder)


@settings(max_examples=40)
@given(st.lists(tables, min_size=1, max_size=4), st.integers(1, 7), st.integers(0, 3))
def test_neither_the_size_of_a_block_nor_that_of_a_bucket_matters(versions, block, most_pairs):
    folder = new_folder()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "BLOCK", block)
            patch.setattr(index, "MOST_PAIRS", most_pairs)
            for table in versions:
                is_a_full_run(folder, table, mode="fast")
    finally:
        shutil.rmtree(folder)


@settings(max_examples=30)
@given(tables, st.integers(1, 5), st.integers(0, 9))
def test_the_order_in_which_texts_came_does_not_matter(table, parts, seed):
    folder = new_folder()
    shuffled = Random(seed).sample(sorted(table), len(table))
    try:
        for part in range(1, parts + 1):
            is_a_full_run(folder, {one: table[one] for one in shuffled[: len(table) * part // parts]})
        is_a_full_run(folder, table)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "settings",
    [{"threshold": 0.5}, {"threshold": 1.0}, {"seed": 7}, {"num_perm": 64, "bands": (9, 7)}, {"bands": (25, 5)},
     {"mode": "fast", "threads": 2}],
)  # fmt: skip
def test_settings_reach_the_kernel(tmp_path, settings):
    table = {f"post:{i:03d}": text for i, text in enumerate(families(20, seed=5))}
    half = dict(list(table.items())[::2])
    is_a_full_run(tmp_path, half, **settings)
    assert is_a_full_run(tmp_path, table, **settings).report.hashed == len(table) - len(half)


def test_real_posts_and_dialogues(tmp_path, shared):
    lines = (shared / "near_dup" / "smile_first_turns.jsonl").read_text().splitlines()
    texts = pl.Series([pl.Series([line]).str.json_path_match("$.text")[0] for line in lines])
    table = {f"smile:{i:05d}": text for i, text in enumerate(texts)}
    known = dict(list(table.items())[: len(table) * 9 // 10])
    is_a_full_run(tmp_path, known)
    opened = is_a_full_run(tmp_path, table)
    assert opened.report.hashed == len(set(table.values()) - set(known.values()))


# The cost follows what is new


def test_only_new_texts_are_hashed(tmp_path):
    first = {f"post:{i}": text for i, text in enumerate(POOL)}
    assert is_a_full_run(tmp_path, first).report.hashed == len(POOL)
    more = first | {"post:more": "新的一天，新的开始，今天终于睡了一个好觉。", "post:none": None}
    report = is_a_full_run(tmp_path, more).report
    assert (report.known, report.hashed, report.gone, report.rebuilt) == (len(POOL), 1, 0, None)


def test_a_repost_costs_nothing(tmp_path):
    first = {f"post:{i}": text for i, text in enumerate(POOL)}
    is_a_full_run(tmp_path, first)
    reposted = first | {f"repost:{i}": text for i, text in enumerate(POOL)}
    assert is_a_full_run(tmp_path, reposted).report.hashed == 0


def test_where_nothing_is_new_nothing_is_written(tmp_path):
    table = {f"post:{i}": text for i, text in enumerate(POOL)}
    assert is_a_full_run(tmp_path, table).report.saved
    before = {path.name: path.stat().st_mtime_ns for path in files(tmp_path)}
    backwards = dict(reversed(table.items()))
    assert not is_a_full_run(tmp_path, table).report.saved
    assert {path.name: path.stat().st_mtime_ns for path in files(tmp_path)} == before
    assert is_a_full_run(tmp_path, backwards).report.hashed == 0


def test_a_chain_whose_middle_goes_falls_apart_and_closes_again(tmp_path):
    """The middle one held the others together: what it leaves is looked at anew, and nothing else."""
    first, middle, last = chain()
    alone = {"post:4": POOL[-1], "post:5": POOL[-9]}
    whole = {"post:1": first, "post:2": middle, "post:3": last} | alone
    assert is_a_full_run(tmp_path, whole).clusters(*columns(whole))["cluster_size"].to_list() == [3, 3, 3, 1, 1]
    parted = {"post:1": first, "post:3": last} | alone
    opened = is_a_full_run(tmp_path, parted)
    assert (opened.report.known, opened.report.hashed, opened.report.gone) == (2, 2, 1)
    assert opened.clusters(*columns(parted))["cluster_size"].to_list() == [1, 1, 1, 1]
    assert is_a_full_run(tmp_path, whole).report.hashed == 1


def test_many_small_additions_leave_few_runs(tmp_path):
    random, table = Random(1), {}
    for i in range(40):
        table[f"post:{i:02d}"] = sentence(random, 50)
        Index(tmp_path, mode="fast").clusters(*columns(table))
    assert len(list(tmp_path.glob("run-*"))) <= 6  # log2 of 40
    is_a_full_run(tmp_path, table, mode="fast")
    assert strays(Index(tmp_path)) == []


# add


@settings(max_examples=40)
@given(st.lists(tables, min_size=1, max_size=5), st.integers(1, 30))
def test_what_is_added_piece_by_piece_is_clustered_as_in_a_full_run(pieces, block):
    folder, table = new_folder(), {}
    patch = pytest.MonkeyPatch()
    patch.setattr(index, "BLOCK", block)
    try:
        for drawn in pieces:
            piece = {one: text for one, text in drawn.items() if text is not None}
            table |= piece
            found = Index(folder).add(*columns(piece), fetch_from(table))
            expected = {one: cluster for cluster in clusters_by_id(table) for one in cluster}
            assert found["id"].to_list() == list(piece)
            for one, cluster, size in found.iter_rows():
                assert cluster in expected[one]
                assert size == len(expected[one])
        assert is_a_full_run(folder, table).report.hashed == 0
    finally:
        patch.undo()
        shutil.rmtree(folder)


def test_a_changed_text_takes_its_cluster_along(tmp_path):
    """What was linked through the old text is looked at anew, whether it is given again or not."""
    first, middle, last = chain()
    table = {"post:1": first, "post:2": middle, "post:3": last}
    opened = Index(tmp_path)
    assert opened.add(*columns(table), fetch_from(table))["cluster_size"].to_list() == [3, 3, 3]
    table["post:2"] = "另一段话，和前后都没有关系。"
    given = {"post:2": table["post:2"], "post:3": last}
    assert opened.add(*columns(given), fetch_from(table))["cluster_size"].to_list() == [1, 1]
    table["post:2"] = middle
    assert opened.add(*columns({"post:2": middle}), fetch_from(table))["cluster_size"].to_list() == [3]
    assert is_a_full_run(tmp_path, table).report.hashed == 0


def test_many_additions_leave_few_files(tmp_path):
    random, table = Random(1), {}
    for i in range(40):
        table[f"post:{i:02d}"] = sentence(random, 50)
        Index(tmp_path).add(*columns({f"post:{i:02d}": table[f"post:{i:02d}"]}), fetch_from(table))
    assert len(list(tmp_path.glob("members-*"))) <= remembered.MOST_MEMBERS
    assert is_a_full_run(tmp_path, table).report.hashed == 0


def test_add_asks_for_texts_that_share_a_bucket_alone(tmp_path):
    table = {f"post:{i}": text for i, text in enumerate(families(40, seed=2))}
    opened = Index(tmp_path)
    opened.add(*columns(table), fetch_from(table))
    original = table["post:10"]
    copy, asked = edited(original, Random(0), 1), []

    def fetch(ids: pl.Series) -> pl.Series:
        asked.extend(ids)
        return fetch_from(table)(ids)

    opened.add(*columns({"copy": copy}), fetch)
    assert "post:10" in asked
    assert len(asked) < 8


def test_add_refuses_a_text_that_is_not_the_one_it_knows(tmp_path):
    table = {f"post:{i}": text for i, text in enumerate(POOL)}
    opened = Index(tmp_path)
    opened.add(*columns(table), fetch_from(table))
    before = bytes_of(tmp_path)
    copy = edited(POOL[10], Random(0), 1)
    with pytest.raises(RequestError, match="not the one that was added"):
        opened.add(*columns({"copy": copy}), lambda ids: pl.Series(["另一个"] * len(ids)))
    opened.forget(pl.Series([], dtype=pl.String))  # opening it is enough to tidy up
    assert bytes_of(tmp_path) == before
    assert is_a_full_run(tmp_path, table).report.hashed == 0


# forget


def test_what_is_forgotten_leaves_no_byte(tmp_path):
    table = {f"post:{i:03d}": text for i, text in enumerate(families(30, seed=3))}
    gone = {"post:010", "post:025", "post:040"}
    opened = Index(tmp_path)
    opened.clusters(*columns(table))
    seeds = remembered.Remembered.load(tmp_path).seeds
    texts = pl.Series([table[one] for one in sorted(gone)])
    traces = {half.to_bytes(8, "little") for seed in seeds for half in texts.hash(seed)}
    traces |= {one.encode() for one in gone}
    rest = {one: text for one, text in table.items() if one not in gone}
    shared_with_others = upper_halves(band_keys(*buffers(pl.Series(rest.values()))))
    traces |= upper_halves(band_keys(*buffers(texts))) - shared_with_others
    assert len(traces) > 3 * (2 + 1 + 4)
    before = bytes_of(tmp_path)
    assert all(trace in before for trace in traces)

    others = opened.forget(pl.Series(sorted(gone)))
    after = bytes_of(tmp_path)
    assert [trace for trace in traces if trace in after] == []
    assert strays(opened) == []
    assert opened.report.gone == 3
    assert not set(others) & gone
    assert is_a_full_run(tmp_path, rest).report.hashed == len(others)


def test_a_text_that_another_id_bears_stays(tmp_path):
    table = {"post:1": POOL[10], "post:2": POOL[10], "post:3": POOL[20]}
    opened = Index(tmp_path)
    opened.clusters(*columns(table))
    assert opened.forget(pl.Series(["post:1"])).is_empty()
    assert b"post:1" not in bytes_of(tmp_path)
    assert is_a_full_run(tmp_path, {"post:2": POOL[10], "post:3": POOL[20]}).report.hashed == 0


def test_forgetting_everything_and_what_was_never_known(tmp_path):
    table = {f"post:{i}": text for i, text in enumerate(POOL)}
    opened = Index(tmp_path / "index")
    assert opened.forget(pl.Series(["post:1"])).is_empty()  # no index yet, and none made for it
    assert not (tmp_path / "index").exists()
    opened.clusters(*columns(table))
    before = bytes_of(tmp_path / "index")
    assert opened.forget(pl.Series(["post:unknown"])).is_empty()
    assert bytes_of(tmp_path / "index") == before
    assert opened.forget(pl.Series(list(table))).is_empty()
    assert list((tmp_path / "index").glob("run-*")) == []
    assert is_a_full_run(tmp_path / "index", table).report.hashed == len(table)


def test_forgetting_does_not_depend_on_settings(tmp_path):
    """Whoever erases a post need not know how the index was made."""
    table = {f"post:{i}": text for i, text in enumerate(POOL)}
    Index(tmp_path, mode="fast", seed=9).clusters(*columns(table))
    Index(tmp_path).forget(pl.Series(["post:12"]))
    assert b"post:12" not in bytes_of(tmp_path)
    rest = {one: text for one, text in table.items() if one != "post:12"}
    assert is_a_full_run(tmp_path, rest, mode="fast", seed=9).report.rebuilt is None


def test_a_text_that_is_no_longer_given_leaves_no_byte_either(tmp_path):
    table = {f"post:{i:03d}": text for i, text in enumerate(families(10, seed=4))}
    is_a_full_run(tmp_path, table)
    del table["post:020"]
    assert is_a_full_run(tmp_path, table).report.gone == 1
    assert b"post:020" not in bytes_of(tmp_path)
    assert strays(Index(tmp_path)) == []


def test_no_text_is_written(tmp_path):
    table = {f"post:{i}": text for i, text in enumerate(POOL)}
    is_a_full_run(tmp_path, table)
    held = bytes_of(tmp_path)
    for text in POOL:
        for start in range(0, len(text) - 2, 3):
            assert text[start : start + 3].encode() not in held


# Odd input


@pytest.mark.parametrize("table", [{}, {"post:1": None}, {"post:1": ""}, {"post:1": "", "post:2": "", "post:3": None}])
def test_next_to_nothing(tmp_path, table):
    is_a_full_run(tmp_path, table)
    is_a_full_run(tmp_path, table | {"post:9": "你好"})
    is_a_full_run(tmp_path, table)
    assert Index(tmp_path).add(*columns(table), fetch_from(table)).height == sum(
        one is not None for one in table.values()
    )


def test_a_null_id_and_columns_of_different_lengths_are_refused(tmp_path):
    opened = Index(tmp_path)
    with pytest.raises(RequestError, match="an id is null"):
        opened.clusters(pl.Series(["post:1", None]), pl.Series(["a", "b"]))
    with pytest.raises(RequestError, match="2 ids cannot belong to 1 texts"):
        opened.clusters(pl.Series(["post:1", "post:2"]), pl.Series(["a"]))
    with pytest.raises(RequestError, match="series of 1"):
        opened.clusters(pl.Series(["post:1", "post:2"]), pl.Series(["a", "b"]), earliest=pl.Series([1]))
    with pytest.raises(RequestError, match="stands twice"):
        opened.add(pl.Series(["post:1", "post:1"]), pl.Series(["a", "b"]), lambda ids: ids)
    with pytest.raises(RequestError, match="threshold"):
        Index(tmp_path, threshold=0)
    assert files(tmp_path) == []


def test_ids_may_be_numbers_and_repeat_themselves(tmp_path):
    ids, texts = pl.Series([10, 9, 10, 9]), pl.Series([POOL[10], POOL[10], POOL[20], POOL[30]])
    assert_frame_equal(Index(tmp_path).clusters(ids, texts), find_duplicates(texts, ids=ids))
    Index(tmp_path).forget(pl.Series([10]))
    assert_frame_equal(Index(tmp_path).clusters(ids[1::2], texts[1::2]), find_duplicates(texts[1::2], ids=ids[1::2]))


def test_one_text_many_times(tmp_path):
    """One distinct text, however often it stands there."""
    n = 100_000
    ids, texts = pl.Series(range(n)), pl.Series([POOL[10]]).new_from_index(0, n)
    opened = Index(tmp_path)
    found = opened.clusters(ids, texts)
    assert (found["cluster_size"] == n).all()
    assert found["keep"].sum() == 1
    assert opened.report.hashed == 1
