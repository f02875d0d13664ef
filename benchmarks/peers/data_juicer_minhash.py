"""Data-Juicer: document_minhash_deduplicator over a data set in memory.

Settings: `characters` (its own advice for Chinese, 16 bands of 8) and `default` (words between blanks; the threshold
alone is set).
"""

from collections.abc import Iterable

import data_juicer_alone  # first: what it changes must hold before the operators are imported
import pyarrow as pa
from data_juicer.ops.deduplicator import DocumentMinhashDeduplicator, document_minhash_deduplicator
from measure import run

CHARACTERS = {
    "tokenization": "character",
    "lowercase": False,
    "num_permutations": 128,
    "num_bands": 16,
    "num_rows_per_band": 8,
}


def deduplicate(table: pa.Table, setting: str) -> Iterable[int]:
    settings = CHARACTERS if setting == "characters" else {}
    operator = DocumentMinhashDeduplicator(jaccard_threshold=0.8, turbo=True, **settings)
    return operator.run(data_juicer_alone.dataset(table))["row"][:]


if __name__ == "__main__":
    document_minhash_deduplicator.tqdm = lambda items, **_: items
    run(deduplicate, data_juicer_alone.numbered)
