"""What is made on Ray is what one process makes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from near_texts import edited, random_text
from pages import blocks
from polars.testing import assert_frame_equal
from web_ui import wait_until_gone

from pipelines.core import cluster as clusters
from pipelines.core.cluster import connected, mapped_on_ray
from pipelines.dedup import find_duplicates, on_ray
from pipelines.dedup.on_ray import find_duplicates_in_dataset, find_duplicates_on_ray
from pipelines.errors import RequestError

ODD = ["", "我", "我失眠", "好累啊", "a", "🙂🙂", "a\x00b", "\n", "é" * 9, "哈" * 300]


def families(n: int, seed: int = 0) -> list[str]:
    """Odd texts, and `n` originals with up to four edited copies of each, all different."""
    random = Random(seed)
    originals = [random_text(random.randint(40, 90), 1000 * seed + number) for number in range(n)]
    copies = [edited(text, random, 0.03) for text in originals for _ in range(random.randint(0, 4))]
    return list(dict.fromkeys([*ODD, *originals, *copies]))


POOL = families(8)

# The steps, without Ray


def _by_part(table: pa.Table) -> list[pa.Table]:
    """What the hash shuffle does."""
    part = table["part"].to_numpy()
    return [table.filter(pa.array(part == one)) for one in np.unique(part)]


def in_parts(texts: list[str | None], parts: int, rows_a_block: int, earliest: pl.Series) -> pl.DataFrame:
    """The steps of the search one after the other, in this process."""
    n = len(texts)
    rows = pl.Series(range(n), dtype=pl.UInt32)
    frame = pl.DataFrame({"row": rows, "text": pl.Series(texts, dtype=pl.String), "earliest": earliest, "id": rows})
    blocks = [block.to_arrow() for block in frame.iter_slices(rows_a_block)]
    keys = pa.concat_tables(on_ray._keyed(block, parts, "fast") for block in blocks)
    none = pl.DataFrame(schema={"row": pl.UInt32, "other": pl.UInt32})
    links = pl.concat([none, *(pl.from_arrow(on_ray._linked(part)) for part in _by_part(keys))])
    part_of = pl.Series(on_ray._parted(n, links["row"].to_numpy(), links["other"].to_numpy(), parts))
    candidates = frame.with_columns(part=part_of).filter(part_of >= 0).to_arrow()
    found = [pl.from_arrow(on_ray._clustered(part, threshold=0.8, mode="fast")) for part in _by_part(candidates)]
    alone = frame.filter(part_of < 0).select("row", cluster_id="row", cluster_size=1, similarity=1.0)
    schema = {"row": pl.UInt32, "cluster_id": pl.UInt32, "cluster_size": pl.UInt32, "similarity": pl.Float64}
    return pl.concat([one.select(*schema).cast(schema) for one in (alone, *found)]).sort("row")


_TEXTS = st.lists(st.none() | st.sampled_from(POOL), min_size=1, max_size=40)


@settings(max_examples=60)
@given(_TEXTS, st.integers(1, 9), st.integers(1, 40), st.integers(0, 9))
def test_parts_find_just_the_links_of_the_whole(texts, parts, rows_a_block, seed):
    """However keys, texts and candidates are cut up."""
    random = Random(seed)
    earliest = pl.Series([random.choice([None, 1, 2]) for _ in texts], dtype=pl.Int64)
    whole = find_duplicates(pl.Series(texts, dtype=pl.String), mode="fast", earliest=earliest)
    assert_frame_equal(in_parts(texts, parts, rows_a_block, earliest), whole.drop("keep"))


def test_a_repeated_text_is_keyed_once_a_block():
    texts = pa.table({"row": pa.array(range(1000), pa.uint32()), "text": [POOL[10]] * 1000})
    assert on_ray._keyed(texts, 4, "fast").num_rows == 18 + 999


# A cluster of two workers


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.delenv("GONGQING_RAY_ADDRESS", raising=False)
        with connected(cpus=2) as ray:
            yield ray


TEXTS = pl.Series([*families(120, seed=6), None, "", "我失眠", None, "", "我失眠", "好累啊"] + [POOL[10]] * 500)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")  # one cluster on this machine at a time
# Ray's own: when it reads its settings it warns of the old names of some.
@pytest.mark.filterwarnings("ignore:`use_.*deprecated:DeprecationWarning:ray.data.context")
class TestOnTwoWorkers:
    @pytest.mark.parametrize("mode", ["exact", "fast"])
    def test_ray_finds_what_one_process_finds(self, cluster, mode):
        order = Random(2).sample(range(len(TEXTS)), len(TEXTS))
        texts = TEXTS.gather(order)
        ids = pl.Series([f"post:{i % 97:02d}:{i}" for i in order])
        earliest = pl.Series([i % 5 or None for i in order]).cast(pl.Datetime("us", "UTC"))
        found = find_duplicates_on_ray(texts, mode=mode, ids=ids, earliest=earliest, parts=3)
        assert_frame_equal(found, find_duplicates(texts, mode=mode, ids=ids, earliest=earliest))
        assert found["cluster_size"].max() == 500

    def test_a_dataset_that_does_not_pass_through_this_process(self, cluster, tmp_path):
        rows = pl.Series(Random(1).sample(range(len(TEXTS)), len(TEXTS)), dtype=pl.UInt32)
        frame = pl.DataFrame({"row": rows, "text": TEXTS.gather(rows), "earliest": rows % 3, "id": rows})
        for place, part in enumerate(frame.iter_slices(200)):
            part.write_parquet(tmp_path / f"{place}.parquet")
        dataset = cluster.data.read_parquet(str(tmp_path))
        wanted = find_duplicates(TEXTS, mode="fast", earliest=frame.sort("row")["earliest"])
        assert_frame_equal(find_duplicates_in_dataset(dataset, len(TEXTS), mode="fast", parts=2), wanted)

    def test_the_block_of_the_page(self, cluster, tmp_path):
        rows = pl.Series(range(len(POOL)), dtype=pl.UInt32)
        pl.DataFrame({"row": rows, "text": POOL, "earliest": rows, "id": rows}).write_parquet(
            tmp_path / "posts.parquet"
        )
        [code] = blocks("ray.md", "python")
        exec(code.replace("…/posts", str(tmp_path)), made := {})
        assert_frame_equal(made["clusters"], find_duplicates(pl.Series(POOL), earliest=rows))

    def test_pieces_come_in_their_order_and_few_are_on_their_way(self, cluster):
        asked: list[int] = []
        items = (asked.append(number) or number for number in range(9))
        made = mapped_on_ray(partial(pow, 2), items)
        assert asked == []
        assert (next(made), asked) == (1, [0, 1, 2, 3])
        assert list(made) == [2**number for number in range(1, 9)]

    def test_a_piece_that_fails_says_why(self, cluster):
        def refused(item):
            raise RequestError("no such row", where=item, hint="name another")

        with pytest.raises(RequestError, match="no such row\n  where: here\n  hint: name another"):
            list(mapped_on_ray(refused, ["here"]))

    def test_next_to_nothing(self, cluster):
        for texts in ([], [None], ["", None], ["我", "好"]):
            column = pl.Series(texts, dtype=pl.String)
            assert_frame_equal(find_duplicates_on_ray(column, parts=2), find_duplicates(column))

    def test_impossible_requests_are_refused(self, cluster):
        with pytest.raises(RequestError, match="threshold"):
            find_duplicates_on_ray(TEXTS, threshold=0)
        with pytest.raises(RequestError, match="series of 1"):
            find_duplicates_on_ray(TEXTS, ids=pl.Series([1]))


@pytest.mark.xdist_group("ray")
def test_a_node_of_ours_is_waited_for_for_longer_than_ray_does(monkeypatch):
    from ray._private import services

    answers = iter([RuntimeError("not yet"), RuntimeError("not yet"), {"node": "it"}])

    def ask(*_: str) -> dict[str, str]:
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    monkeypatch.setattr(services, "get_node", ask)
    with clusters._time_to_start():
        assert services.get_node("127.0.0.1:1", "id") == {"node": "it"}
    assert services.get_node is ask
    monkeypatch.setattr(clusters, "_START", 0)
    answers = iter([RuntimeError("never")] * 2)
    with clusters._time_to_start(), pytest.raises(RuntimeError, match="never"):
        services.get_node("127.0.0.1:1", "id")


OWN_CLUSTER = """
import json, os
from pathlib import Path
from pipelines.core.cluster import connected

def children():
    token = os.environ["RAY_AUTH_TOKEN"].encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token in (process / "environ").read_bytes():
                yield int(process.name)
        except OSError:  # of somebody else, or ended
            continue

for _ in range(2):  # a second one comes up in the same process
    with connected(cpus=1) as ray:
        report = {
            "children": [child for child in children() if child != os.getpid()],
            "address": ray.get_runtime_context().gcs_address,
            "scratch": ray._private.worker._global_node.get_temp_dir_path(),
        }
print(json.dumps(report | {"token": os.environ.get("RAY_AUTH_TOKEN")}))
"""


def run_apart(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if "RAY_" not in name}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=ours | environment, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_a_cluster_of_our_own_is_of_this_machine_alone_and_leaves_nothing():
    ran = run_apart(OWN_CLUSTER)
    assert ran.returncode == 0, ran.stderr
    cluster = json.loads(ran.stdout.splitlines()[-1])
    assert cluster["address"].startswith("127.0.0.1:")
    assert len(cluster["children"]) >= 2
    wait_until_gone(set(cluster["children"]))  # Ray's agents notice the end of their raylet at the next look
    assert not Path(cluster["scratch"]).exists()
    assert cluster["token"] is None


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_an_address_that_nobody_listens_at():
    code = "from pipelines.core.cluster import connected\nwith connected(): pass"
    ran = run_apart(code, GONGQING_RAY_ADDRESS="127.0.0.1:9")
    assert (ran.returncode, "Ray cannot be reached" in ran.stderr, "127.0.0.1:9" in ran.stderr) == (1, True, True)
