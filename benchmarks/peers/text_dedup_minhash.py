"""text-dedup: its MinHash command, from a data set on disk to the one that it writes.

Its command splits texts at everything that is no letter, so a Chinese clause is one word. The setting `characters` puts
a splitter into characters in that place; `default` leaves it, and sets the threshold alone.
"""

import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path

import datasets
from datasets import Dataset, load_from_disk
from measure import run
from text_dedup import minhash
from text_dedup.utils import IOArgs, MetaArgs, MinHashArgs


class Characters:
    """In the place of a compiled pattern."""

    split = staticmethod(list)


def deduplicate(texts: list[str], setting: str) -> Iterable[int]:
    characters = setting == "characters"
    if characters:
        minhash.NON_ALPHA = Characters
    arguments = MinHashArgs(threshold=0.8, num_perm=128, b=16, r=8) if characters else MinHashArgs(threshold=0.8)
    with tempfile.TemporaryDirectory() as folder:
        given, left = Path(folder) / "given", Path(folder) / "left"
        Dataset.from_dict({"text": texts, "row": range(len(texts))}).save_to_disk(given)
        minhash.main.callback(
            io_args=IOArgs(path=str(given), output=str(left), cache_dir=folder, local=True, num_proc=None),
            meta_args=MetaArgs(column="text"),
            minhash_args=arguments,
        )
        return load_from_disk(left)["row"][:]


if __name__ == "__main__":
    logging.disable()
    datasets.disable_progress_bars()
    minhash.tqdm = lambda items, **_: items
    run(deduplicate)
