"""Our index: what 1 % of new documents cost where 99 % are known, against a run over all of them.

Called like its neighbours; the setting is the mode. The result holds CPU seconds: `full_seconds` (find_duplicates
over all) and `add_seconds` (Index.add of the new, the index opened from its folder), medians of three;
`clusters_seconds` (Index.clusters over all, which gives every row of the full run's result anew).
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

import polars as pl
import pyarrow.parquet as pq
from measure import cpu_seconds

from pipelines.dedup import find_duplicates
from pipelines.dedup.index import Index
from pipelines.dedup.minhash import Mode

NEW, TIMES = 0.01, 3


def measured(texts: pl.Series, mode: Mode, folder: Path) -> dict[str, float]:
    ids = pl.int_range(len(texts), eager=True).cast(pl.String).str.zfill(9)
    n_known = round(len(texts) * (1 - NEW))
    warm = folder / "warm"
    Index(warm, mode=mode).clusters(ids[:n_known], texts[:n_known])
    full, adding = [], []
    for number in range(TIMES):
        start = cpu_seconds()
        find_duplicates(texts, mode=mode, ids=ids)
        full.append(cpu_seconds() - start)
        place = Path(shutil.copytree(warm, folder / str(number)))
        start = cpu_seconds()
        index = Index(place, mode=mode)
        index.add(ids[n_known:], texts[n_known:], lambda wanted: texts.gather(wanted.cast(pl.UInt32)))
        adding.append(cpu_seconds() - start)
        shutil.rmtree(place)
    start = cpu_seconds()
    Index(warm, mode=mode).clusters(ids, texts)
    clusters = cpu_seconds() - start
    return {
        "documents": len(texts),
        "hashed": index.report.hashed,
        "full_seconds": median(full),
        "add_seconds": median(adding),
        "clusters_seconds": clusters,
    }


def main() -> None:
    corpus, result, mode = sys.argv[1:]
    texts = pl.Series("text", pq.read_table(corpus, columns=["text"]).column("text"))
    place = Path(result).parent
    with tempfile.TemporaryDirectory(dir=place) as folder, tempfile.TemporaryDirectory(dir=place) as other:
        measured(texts[:2000], mode, Path(folder))  # the compiler
        Path(result).write_text(json.dumps(measured(texts, mode, Path(other))))


if __name__ == "__main__":
    main()
