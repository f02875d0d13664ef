"""Texts for the index: families of near-duplicates, short ones and odd ones, drawn from a seed."""

import tempfile
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
from hypothesis import strategies as st

from pipelines.dedup.index import Index
from pipelines.dedup.remembered import OURS

CHARACTERS = "我最近总是睡不着觉心里很乱不知道该怎么办才好你愿意多说一点吗听起来这段时间真的辛苦了"
ODD = ["", "我", "我失眠", "好累啊", "a", "🙂🙂", "a\x00b", "\n", "é" * 9, "哈" * 300]


def sentence(random: Random, length: int) -> str:
    return "".join(random.choices(CHARACTERS, k=length))


def edited(text: str, random: Random, n_edits: int) -> str:
    characters = list(text)
    for _ in range(n_edits):
        characters[random.randrange(len(characters))] = random.choice(CHARACTERS)
    return "".join(characters)


def families(n: int, seed: int = 0) -> list[str]:
    """`n` originals of 40 to 90 characters and up to four edited copies of each, all different; and odd texts."""
    random = Random(seed)
    texts = list(ODD)
    for _ in range(n):
        original = sentence(random, random.randint(40, 90))
        texts += [original, *(edited(original, random, random.randint(1, 3)) for _ in range(random.randint(0, 4)))]
    return list(dict.fromkeys(texts))


POOL = families(8)
# A table as it may be at some time: ids with a text each, or none.
tables = st.dictionaries(
    st.integers(0, 30).map("post:{}".format), st.none() | st.sampled_from(POOL), max_size=25
)  # fmt: skip


def columns(table: dict[str, str | None]) -> tuple[pl.Series, pl.Series]:
    return pl.Series("id", list(table), pl.String), pl.Series("text", list(table.values()), pl.String)


def new_folder() -> Path:
    """For an example of hypothesis; pytest's `tmp_path` is one for all examples."""
    return Path(tempfile.mkdtemp(prefix="gongqing-index-"))


def chain() -> list[str]:
    """Three texts of which the first and the last are linked through the middle one alone."""
    middle = sentence(Random(3), 100)
    return ["始" * 10 + middle[:90], middle, middle[10:] + "终" * 10]


def files(folder: Path) -> list[Path]:
    """The files of an index that hold something of texts or ids."""
    return sorted(path for path in folder.iterdir() if path.name != "lock")


def strays(index: Index) -> list[str]:
    """Files of an index that its manifest does not name."""
    named = (index.folder / "index.json").read_text()
    return [path.name for path in index.folder.iterdir() if OURS.fullmatch(path.name) and path.name not in named]


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in files(folder))


def upper_halves(keys: np.ndarray) -> set[bytes]:
    """The parts of band keys that an index keeps, as they stand in its files."""
    return {int(key >> 32).to_bytes(4, "little") for key in keys.ravel()}
