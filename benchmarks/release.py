"""What a release costs and what leaves it: rows a CPU-second of the real commands, at two sizes.

    python -m benchmarks.release [--posts 1000 4000]

Imports posts whose sentences come from public sets (`benchmarks.corpus`), each with three answers. Then, a process
each: `gongqing release`, `export folder`, `export jsonl`, and `export folder` where no text is known yet. Beside
them, in the same run, polars writes the same rows to Parquet as they are.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import documents
from benchmarks.refresh import gongqing
from pipelines.text.minors import under_18
from pipelines.text.risk import risk

MAPPING = """kind = "posts"
title = "Posts of the benchmark"
licence = "CC0-1.0"
consent = "public_licence"
origin = "human"
lang = "zh"
[columns]
id = "id"
title = "title"
description = "text"
[answers]
list = "answers"
id = "id"
text = "text"
"""
_ANSWERS = 3
_COMMON = "的了我你是不在有人这那就也都会说要对去来着里后多些心想情很让把给"


def _posts(n: int) -> Iterator[dict[str, object]]:
    """Posts and answers that may train, each answer with some characters of its own: none looks like a form letter."""
    texts = pl.Series("text", documents(2 * (_ANSWERS + 1) * n)["text"].to_pylist()).to_frame()
    fit = texts.filter(~under_18(pl.col("text")), risk(pl.col("text")).list.len() == 0)["text"].to_list()
    chance = random.Random(0)
    for number, (post, *answers) in enumerate(zip(*[iter(fit[: (_ANSWERS + 1) * n])] * (_ANSWERS + 1), strict=True)):
        own = ["".join(one + chance.choice(_COMMON) * (chance.random() < 0.1) for one in text) for text in answers]
        listed = [{"id": f"{number}-{place}", "text": text} for place, text in enumerate(own)]
        yield {"id": str(number), "title": "", "text": post, "answers": listed}


def measure(posts: int) -> tuple[int, dict[str, float]]:
    """Rows of the release, and CPU seconds of each command."""
    with tempfile.TemporaryDirectory() as folder:
        home, scratch = Path(folder) / "home", Path(folder)
        home.mkdir()
        (home / "gongqing.toml").write_text("[release]\nleft_out = 0.5\n")  # posts of the same sentences are alike
        with (scratch / "posts.jsonl").open("w") as lines:
            lines.writelines(json.dumps(post, ensure_ascii=False) + "\n" for post in _posts(posts))
        (scratch / "posts.toml").write_text(MAPPING)
        mapping = ("--mapping", str(scratch / "posts.toml"), "--as", "posts")
        gongqing(home, "import", "mapped", str(scratch / "posts.jsonl"), *mapping)
        gongqing(home, "refresh")
        seconds = {
            "release": gongqing(home, "release", "v1", "--allow", "not_from_a_model"),
            "export folder": gongqing(home, "export", "folder", str(scratch / "one")),
            "export folder, texts read again": 0.0,
            "export jsonl": gongqing(home, "export", "jsonl", str(scratch / "lines"), "--for", "openai"),
        }
        shutil.rmtree(home / "readings")
        seconds["export folder, texts read again"] = gongqing(home, "export", "folder", str(scratch / "two"))
        shards = [pl.read_parquet(path) for path in sorted((home / "releases" / "v1").glob("*/*.parquet"))]
        before = time.process_time()
        for number, shard in enumerate(shards):
            shard.write_parquet(scratch / f"{number}.parquet")
        seconds["polars write_parquet"] = time.process_time() - before
        return sum(map(len, shards)), seconds


def main() -> None:
    """Measures every size and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--posts", type=int, nargs="+", default=[1000, 4000])
    table = Table(title="A release, and what leaves it")
    for name in ("rows", "", "CPU s", "rows a CPU-second", "× polars write_parquet"):
        table.add_column(name, justify="right" if name else "left")
    for posts in parser.parse_args().posts:
        rows, seconds = measure(posts)
        plain = seconds["polars write_parquet"]
        for name, spent in seconds.items():
            table.add_row(f"{rows:,}", name, f"{spent:.2f}", f"{rows / spent:,.0f}", f"{spent / plain:.1f}")
        table.add_section()
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
