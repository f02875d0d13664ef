"""rensa: RMinHashDeduplicator with LSH, as its documentation shows it, in batches of 2,000. Setting: default."""

from collections.abc import Iterator

from measure import run
from rensa import RMinHashDeduplicator

PERMUTATIONS, SHINGLE, BATCH = 128, 5, 2000


def shingles(text: str) -> list[str]:
    return [text[i : i + SHINGLE] for i in range(max(1, len(text) - SHINGLE + 1))]


def deduplicate(texts: list[str], _: str) -> Iterator[int]:
    seen = RMinHashDeduplicator(threshold=0.8, num_perm=PERMUTATIONS, use_lsh=True)
    for start in range(0, len(texts), BATCH):
        batch = enumerate(texts[start : start + BATCH], start)
        added = seen.add_pairs([(str(row), shingles(text)) for row, text in batch])
        yield from (start + i for i, new in enumerate(added) if new)


if __name__ == "__main__":
    run(deduplicate)
