"""Near-duplicates on several machines: the kernels of one process, through Ray Data.

Band keys are shuffled and sorted in parts; texts that share a bucket, directly or through others, go to one part, where
`find_duplicates` links them. So the clusters are those of one process. Of texts only candidates travel, once.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.core.arrow import Texts, arrow, buffers
from pipelines.core.cluster import connected
from pipelines.core.kernels import Keys, Words
from pipelines.dedup.bands import BANDS, band_keys, runs
from pipelines.dedup.components import roots, singletons, unite_pairs
from pipelines.dedup.duplicates import find_duplicates, require_arguments
from pipelines.dedup.minhash import Mode

if TYPE_CHECKING:
    from ray.data import Dataset

ROWS_A_BLOCK = 20_000
ROWS_A_PART = 2_000_000  # keys that are sorted at a time


def find_duplicates_on_ray(
    texts: Texts,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    earliest: pl.Series | None = None,
    ids: pl.Series | None = None,
    parts: int | None = None,
) -> pl.DataFrame:
    """What `find_duplicates` gives, computed on the cluster that `connected` gives.

    `parts`: into how many parts keys and candidates are shuffled; by the number of texts and of CPUs if None.

    Raises RequestError as `find_duplicates` does, GongqingError where Ray is not installed or cannot be reached.
    """
    column = arrow(texts)
    n = len(column)
    require_arguments(n, threshold, earliest, ids)
    if not n:
        return find_duplicates(column)
    rows = pl.Series(np.arange(n, dtype=np.uint32))
    table = pl.DataFrame(
        {
            "row": rows,
            "text": pl.Series(column, dtype=pl.String),
            "earliest": pl.Series([None]).new_from_index(0, n) if earliest is None else earliest,
            "id": rows if ids is None else ids,
        }
    )
    with connected() as ray:
        blocks = [block.to_arrow(compat_level=pl.CompatLevel.oldest()) for block in table.iter_slices(ROWS_A_BLOCK)]
        return find_duplicates_in_dataset(ray.data.from_arrow(blocks), n, threshold, mode, parts=parts)


def find_duplicates_in_dataset(
    dataset: "Dataset",
    n: int,
    threshold: float = 0.8,
    mode: Mode = "exact",
    *,
    parts: int | None = None,
) -> pl.DataFrame:
    """What `find_duplicates` gives, for a dataset that need not pass through this process. Ray is to be connected.

    Args:
        dataset: columns `row` (0 … n - 1, each once, in any order), `text`, and `earliest` and `id` for the rule of
            survivors. It is read twice.
        n: the number of its rows.
    """
    import ray

    require_arguments(n, threshold)
    parts = parts or _parts(n * BANDS[0])
    row = np.arange(n, dtype=np.uint32)
    survivors, sizes, similarity = row.copy(), np.ones(n, np.uint32), np.ones(n)

    keyed = _mapped(dataset.select_columns(["row", "text"]), _keyed, parts=parts, mode=mode)
    links = _gathered(_by_part(keyed, parts, _linked))
    if links is not None:
        part_of = _parted(n, links["row"].to_numpy(), links["other"].to_numpy(), parts)
        candidates = _mapped(dataset, _chosen, part_of=[ray.put(part_of)])
        clusters = _gathered(_by_part(candidates, parts, _clustered, threshold=threshold, mode=mode))
        if clusters is not None:
            rows = clusters["row"].to_numpy()
            survivors[rows] = clusters["cluster_id"].to_numpy()
            sizes[rows] = clusters["cluster_size"].to_numpy()
            similarity[rows] = clusters["similarity"].to_numpy()
    return pl.DataFrame(
        {
            "row": row,
            "cluster_id": survivors,
            "keep": survivors == row,
            "cluster_size": sizes,
            "similarity": similarity,
        }
    )


def _parts(n_keys: int) -> int:
    import ray

    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(2 * int(resources.get("CPU", 1)), -(-n_keys // ROWS_A_PART))


# What a worker does, on Arrow tables.


def _keyed(texts: pa.Table, parts: int, mode: Mode) -> pa.Table:
    """`part`, `key`, `row`: the keys of all bands of texts that are no nulls, of equal ones the first of them alone."""
    frame = _frame(texts).drop_nulls("text")
    first = frame["text"].is_first_distinct().to_numpy()
    keys: Keys = band_keys(*buffers(frame["text"]), mode)
    wanted = np.ones(keys.shape, np.bool_)
    wanted[1:, ~first] = False
    rows = np.broadcast_to(frame["row"].to_numpy(), keys.shape)
    key = keys[wanted]
    return pa.table({"part": _part(key, parts), "key": key, "row": rows[wanted]})


def _linked(keys: pa.Table) -> pa.Table:
    """`row`, `other`: each row that shares a key with others, and the first of these."""
    rows = keys["row"].to_numpy()
    sharing = runs(keys["key"].to_numpy())
    members = rows[sharing.rows]
    first = np.repeat(members[sharing.starts[:-1]], np.diff(sharing.starts))
    links = pl.DataFrame({"row": members, "other": first}).filter(pl.col("row") != pl.col("other")).unique()
    return links.to_arrow()


def _parted(n: int, left: Words, right: Words, parts: int) -> NDArray[np.int32]:
    """The part of each of n texts: one for all that are linked, directly or through others; -1 where none is."""
    parents = singletons(n)
    unite_pairs(parents, left, right)
    groups = roots(parents)
    alone = np.bincount(groups, minlength=n)[groups] == 1
    return np.where(alone, np.int32(-1), _part(groups.astype(np.uint64) * _MIX, parts))


def _chosen(texts: pa.Table, part_of: Any) -> pa.Table:
    """The candidates among texts, each with its `part`: a list of one array in Ray's object store."""
    import ray

    part = ray.get(part_of[0])[texts["row"].to_numpy()]
    return texts.append_column("part", pa.array(part)).filter(pa.array(part >= 0))


def _clustered(texts: pa.Table, threshold: float, mode: Mode) -> pa.Table:
    """The clusters of a part, by the rows of the whole."""
    frame = _frame(texts)
    clusters = find_duplicates(frame["text"], threshold, mode, earliest=frame["earliest"], ids=frame["id"])
    rows = frame["row"]
    return clusters.with_columns(row=rows, cluster_id=rows.gather(clusters["cluster_id"])).drop("keep").to_arrow()


_MIX = np.uint64(0x9E3779B97F4A7C15)


def _part(keys: Keys, parts: int) -> NDArray[np.int32]:
    return ((keys >> np.uint64(32)) * np.uint64(parts) >> np.uint64(32)).astype(np.int32)


def _frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


# Ray's calls.


def _mapped(dataset: "Dataset", work: Any, **arguments: Any) -> "Dataset":
    return dataset.map_batches(work, batch_format="pyarrow", batch_size=None, fn_kwargs=arguments)


def _by_part(dataset: "Dataset", parts: int, work: Any, **arguments: Any) -> "Dataset":
    """Hash-shuffled by the column `part`, of which a worker takes one value at a time."""
    grouped = dataset.groupby("part", num_partitions=parts)
    return grouped.map_groups(work, batch_format="pyarrow", fn_kwargs=arguments)


def _gathered(dataset: "Dataset") -> pl.DataFrame | None:
    """All rows of a dataset, here; None where it has none."""
    import ray

    tables = [table for table in ray.get(dataset.to_arrow_refs()) if table.num_rows]
    return _frame(pa.concat_tables(tables)) if tables else None
