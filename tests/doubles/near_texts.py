"""What the search should find, told the slow way; and texts to search."""

import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
from hypothesis import strategies as st

# Few characters, of one to four bytes, so that texts drawn from them share shingles now and then.
TEXTS = st.text(st.sampled_from("aé我们😀"), max_size=24)


def shingles(text: str) -> set[str]:
    return {text[i : i + 5] for i in range(max(1, len(text) - 4))} if text else set()


def jaccard(one: str, other: str) -> float:
    ours, theirs = shingles(one), shingles(other)
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0


def partition(names: Sequence[int]) -> set[frozenset[int]]:
    """Rows by the name of their cluster."""
    groups: dict[int, set[int]] = {}
    for row, name in enumerate(names):
        groups.setdefault(name, set()).add(row)
    return {frozenset(group) for group in groups.values()}


def components(n: int, edges: Sequence[tuple[int, int]]) -> set[frozenset[int]]:
    """What edges among n rows connect, by scipy."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    left, right = np.array(edges, np.int64).reshape(-1, 2).T
    _, names = connected_components(coo_array((np.ones(len(left)), (left, right)), shape=(n, n)), directed=False)
    return partition(names.tolist())


def linked(texts: Sequence[str | None], threshold: float) -> set[frozenset[int]]:
    """The clusters, from the similarity of every pair."""
    edges = [
        (i, j)
        for i, one in enumerate(texts)
        for j, other in enumerate(texts[:i])
        if one is not None and other is not None and jaccard(one, other) >= threshold
    ]
    return components(len(texts), edges)


def edited(text: str, random: Random, share: float) -> str:
    """A text with a share of its characters replaced, dropped or doubled."""
    characters = list(text)
    for _ in range(max(1, round(share * len(text)))):
        place = random.randrange(len(characters))
        characters[place] = random.choice(["", characters[place] * 2, random.choice(text)])
    return "".join(characters)


def smile(shared: Path) -> list[str]:
    """The dialogues of SMILE, their turns joined: about 1,000 characters each."""
    with tarfile.open(shared / "zh_multiturn" / "smile_raw.tar.gz") as archive:
        files = [archive.extractfile(member) for member in archive if member.name.endswith(".json")]
        return ["\n".join(turn["content"] for turn in json.load(file)) for file in files if file]


def random_text(n: int, seed: int) -> str:
    points = np.random.default_rng(seed).integers(0x4E00, 0x9FA5, n, dtype=np.uint32)
    return points.astype("<u4").tobytes().decode("utf-32-le")


def series(texts: Sequence[str | None]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String)
