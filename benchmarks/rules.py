"""What annotating by the rules costs: each task on real posts, beside jieba's tagging of the same texts.

    python -m benchmarks.rules [--posts N] [--rounds N]

jieba's part-of-speech tagging is what a toolkit for Chinese does first and at the least. CPU seconds of one process;
every text is another one, so that no cache answers. Rounds alternate; medians. The texts are the posts of PsyQA in
../shared/data, or of samples/ without it, each with a number behind it.
"""

import argparse
import json
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import ROOT, SHARED
from pipelines.annotate.rules.answers import ANSWERS
from pipelines.ingest.importing import read

RESULTS = Path(__file__).parent / "results" / "rules.json"
PSYQA = SHARED / "zh_qa" / "PsyQA_example.json"
KEY = b"no author is looked up by this"
TAGGING = "jieba, parts of speech"
TASKS: dict[str, Callable[[str], dict[str, object]]] = {
    "topics": lambda text: {"title": None, "description": text},
    "emotions": lambda text: {"unit": "post", "text": text},
    "ecot": lambda text: {"question": text},
}


def texts(posts: int, round_: int) -> list[str]:
    """`posts` texts that no other round has."""
    if PSYQA.exists():
        rows = read("psyqa", PSYQA, data_set=None, author_key=KEY, mapping=None).kept
    else:
        mapping = ROOT / "samples" / "posts.toml"
        rows = read("mapped", ROOT / "samples" / "posts.jsonl", data_set="sample", author_key=KEY, mapping=mapping).kept
    told = [f"{row['title'] or ''}\n{row['description'] or ''}" for row in rows.iter_rows(named=True)]
    return [f"{told[n % len(told)]}\n第{round_}轮第{n}篇" for n in range(posts)]


def measure(posts: int, rounds: int) -> dict[str, object]:
    import jieba.posseg

    work: dict[str, Callable[[str], object]] = {TAGGING: lambda text: list(jieba.posseg.cut(text))}
    work |= {task: lambda text, task=task: ANSWERS[task](TASKS[task](text)) for task in TASKS}  # type: ignore[misc]
    seconds: dict[str, list[float]] = defaultdict(list)
    for round_ in range(rounds + 1):
        if round_ == 1:
            seconds.clear()  # the first one paid for lexicons
        for number, (name, does) in enumerate(work.items()):
            told = texts(posts, round_ * len(work) + number)
            began = time.process_time()
            for text in told:
                does(text)
            seconds[name].append(time.process_time() - began)
    rates = {name: round(posts / statistics.median(found), 1) for name, found in seconds.items()}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {"jieba": version("jieba")},
        "posts": posts,
        "rounds": rounds,
        "posts_per_cpu_second": rates,
        "to_tagging": {task: round(rates[task] / rates[TAGGING], 2) for task in TASKS},
    }


def printed(measured: dict[str, object]) -> Table:
    table = Table(title=f"{measured['posts']:,} posts; median of {measured['rounds']}")
    for column in ("", "posts per CPU-s", "× jieba"):
        table.add_column(column, justify="right" if column else "left")
    for name, rate in measured["posts_per_cpu_second"].items():
        table.add_row(name, f"{rate:,.0f}", str(measured["to_tagging"].get(name, "")))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    measured = measure(given.posts, given.rounds)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    Console().print(printed(measured), f"written to {RESULTS}")


if __name__ == "__main__":
    main()
