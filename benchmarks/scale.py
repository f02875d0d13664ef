"""What a refresh costs at 10,000, 100,000 and 1,000,000 posts: CPU, wall, memory and disk of each stage.

    python -m benchmarks.scale [--posts N …] [--keep FOLDER]

The posts are recombined from the sentences of ../shared/data/real_posts, in the lengths of these: a thousand posts a
day, every other one with an answer, two in a hundred a copy of another with a few characters changed. Beside them a
fifth as many dialogues, recombined from SMILE. Each stage that needs no model runs in a process of its own: first on
everything, then after one more day of a thousand posts, then after one post is erased. A million take two hours: in a
folder that is kept, a run that was broken off goes on where it was. The last line of each size is
the share that these cost of the full run; the last lines hold the exponents between the sizes (1: the cost grows as the
corpus does).
"""

import argparse
import datetime as dt
import gzip
import json
import math
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from random import Random

import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import ROOT, SHARED
from pipelines.core.home import Home
from pipelines.core.stage import Stage
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request
from pipelines.settings import Settings
from pipelines.store.store import Store
from schemas.dialogues import ImportedDialogues
from schemas.posts import RawPosts

RESULTS = Path(__file__).parent / "results" / "scale.json"
A_DAY = 1_000  # posts
FIRST_DAY = dt.datetime(2020, 1, 1, 4, tzinfo=dt.UTC)
_SENTENCE = re.compile(r"[^。！？!?\n]+[。！？!?\n]*")


@dataclass(frozen=True)
class Cost:
    """Of one process: CPU seconds, wall seconds, peak memory in MB, and what it added to the disk, in MB.

    Pages of files are not counted: the kernel takes them back where others need the room.
    """

    cpu: float
    wall: float
    memory: float
    disk: float


@cache
def _sentences() -> tuple[list[str], list[int]]:
    """The sentences of all real posts, and how many each of them has."""
    with gzip.open(SHARED / "real_posts" / "posts.jsonl.gz", "rt") as lines:
        posts = [json.loads(line) for line in lines]
    passages = [_SENTENCE.findall(f"{post['title']}\n{post['description']}") for post in posts]
    return [sentence for passage in passages for sentence in passage], [len(passage) for passage in passages]


def _text(random: Random, sentences: list[str], length: int) -> str:
    return "".join(random.choice(sentences) for _ in range(length))


def _changed(random: Random, text: str) -> str:
    at = random.randrange(len(text))
    return text[:at] + "呢" + text[at + 1 :]


def day_of_posts(day: int, n: int = A_DAY) -> pl.DataFrame:
    """`n` rows of `raw_posts` of a day, always the same ones."""
    sentences, lengths = _sentences()
    random, texts = Random(day), list[str]()
    for _ in range(n):
        copied = texts and random.random() < 0.02
        text = _changed(random, random.choice(texts)) if copied else _text(random, sentences, random.choice(lengths))
        texts.append(text)
    at = FIRST_DAY + dt.timedelta(days=day)
    rows = []
    for number, text in enumerate(texts):
        source_id = f"{day * A_DAY + number:09d}"
        answer = {
            "answer_id": f"made:{source_id}/1",
            "author": f"{random.randrange(10**4):032x}",
            "author_role": "member",
            "text": _text(random, sentences, 2 * random.choice(lengths)),
            "posted_at": at,
            "likes": 0,
            "recommended": False,
            "spans": [],
        }
        title, _, body = text.partition("\n")
        rows.append(
            {
                "post_id": f"made:{source_id}",
                "source": "made",
                "source_id": source_id,
                "title": title[:60],
                "description": body or text,
                "subtopics": [],
                "posted_at": at,
                "posted_at_precision": "day",
                "fetched_at": at,
                "lang": "zh",
                "origin": "human",
                "lineage": [],
                "licence": "MIT",
                "consent": "public_licence",
                "answers": [answer] if number % 2 else [],
            }
        )
    return pl.DataFrame(rows, schema=RawPosts.polars_schema())


def _spoken() -> list[str]:
    """The turns of the dialogues of SMILE."""
    with tarfile.open(SHARED / "zh_multiturn" / "smile_raw.tar.gz") as members:
        files = [members.extractfile(member) for member in sorted(members, key=lambda one: one.name) if member.isfile()]
        return [turn["content"] for file in files if file is not None for turn in json.loads(file.read())]


def dialogues(n: int) -> pl.DataFrame:
    """`n` rows of `imported_dialogues` of eight turns, always the same ones."""
    random, spoken, rows = Random(n), _spoken(), []
    for number in range(n):
        turns: list[dict[str, object]] = [
            {
                "role": ("seeker", "supporter")[place % 2],
                "text": random.choice(spoken),
                "strategies": [],
                "source_strategies": [],
                "origin": "human",
                "media": [],
            }
            for place in range(8)
        ]
        source_id = f"{number:09d}"
        rows.append(
            {
                "dialogue_id": f"told:{source_id}",
                "source": "told",
                "source_id": source_id,
                "lang": "zh",
                "turns": turns,
                "n_rounds": 4,
                "modality": "text",
                "attributes": [],
                "licence": "CC0-1.0",
                "consent": "public_licence",
                "lineage": [],
            }
        )
    return pl.DataFrame(rows, schema=ImportedDialogues.polars_schema())


def write_day(home: Path, day: int) -> None:
    """The posts of a day, as a crawl would leave them."""
    place = f"made@{(FIRST_DAY + dt.timedelta(days=day)).date()}"
    Store(Home(home).data).write("raw_posts", day_of_posts(day), partition=place)


def _size(folder: Path) -> float:
    """MB of all files, one that several versions share counted once."""
    files = {status.st_ino: status.st_size for path in folder.rglob("*") if (status := path.stat()) and path.is_file()}
    return sum(files.values()) / 1e6


def _watched(home: Path, *arguments: str) -> Cost:
    """The cost of a process that does nothing else."""
    before, started = _size(home), time.monotonic()
    command = [sys.executable, "-m", "benchmarks.scale", "--home", str(home), *arguments]
    environment = {**os.environ, "GONGQING_AUTHOR_KEY": "of the benchmark alone"}
    process, memory = subprocess.Popen(command, cwd=ROOT, env=environment), 0.0
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        memory = max(memory, _anonymous(process.pid))
        time.sleep(0.05)
    _, status, usage = ended
    if status:
        raise SystemExit(f"{' '.join(arguments)} failed")
    wall = time.monotonic() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall, memory, _size(home) - before)


def _anonymous(process: int) -> float:
    """MB that a process holds now, without pages of files; 0 where it has ended."""
    found = re.search(r"RssAnon:\s*(\d+) kB", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1e3 if found else 0.0


class Measuring:
    """A home, and beside it a file of what was measured there, by run and step: what stands in it is not done again."""

    def __init__(self, folder: Path) -> None:
        self.home, self._file = folder / "home", folder / "costs.json"
        self.home.mkdir(parents=True, exist_ok=True)

    def costs(self) -> dict[str, dict[str, Cost]]:
        """What is measured so far."""
        read = json.loads(self._file.read_text()) if self._file.exists() else {}
        return {run: {name: Cost(**cost) for name, cost in of.items()} for run, of in read.items()}

    def once(self, run: str, name: str, work: Callable[[], Cost | None]) -> None:
        """Does a step of a run, and writes down what it cost."""
        costs = self.costs()
        if name in costs.setdefault(run, {}):
            return
        if (cost := work()) is not None:
            costs[run][name] = cost
            self._file.write_text(
                json.dumps({run: {name: asdict(one) for name, one in of.items()} for run, of in costs.items()})
            )

    def refresh(self, run: str) -> None:
        """Runs each stage that needs no model and no people."""
        for stage in STAGES:
            if not stage.asks or stage.structural:
                self.once(run, stage.name, partial(self._stage, stage))

    def _stage(self, stage: Stage) -> Cost | None:
        cost = _watched(self.home, "--stage", stage.name)
        return cost if Runner(Store(Home(self.home).data), Settings()).status(stage).waits is None else None


def measure(folder: Path, posts: int) -> dict[str, dict[str, Cost]]:
    """What a full run costs, one after another day, and one after an erasure, by stage."""
    measuring, days = Measuring(folder), posts // A_DAY
    store = Store(Home(measuring.home).data)
    for day in range(len(store.current("raw_posts")), days):
        write_day(measuring.home, day)
    if not store.current("imported_dialogues"):
        store.write("imported_dialogues", dialogues(posts // 5), partition="told")
    measuring.refresh("all")
    write_day(measuring.home, days)
    measuring.refresh("a day more")
    measuring.once("a post erased", "erasing", lambda: _watched(measuring.home, "--erase", f"made:{posts // 2:09d}"))
    measuring.refresh("a post erased")
    return measuring.costs()


def _total(costs: dict[str, Cost]) -> Cost:
    every = list(costs.values())
    memory = max(cost.memory for cost in every)
    return Cost(sum(one.cpu for one in every), sum(one.wall for one in every), memory, sum(one.disk for one in every))


def _table(posts: int, costs: dict[str, dict[str, Cost]]) -> Table:
    table = Table(title=f"{posts:,} posts, {posts // 5:,} dialogues")
    for name in ("stage", "CPU s", "wall s", "MB", "disk MB", "a day more: CPU s", "disk MB", "a post erased: CPU s"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for stage in (*costs["a post erased"], "together"):
        full, day, erased = (_total(of) if stage == "together" else of.get(stage) for of in costs.values())
        table.add_row(
            stage,
            *(f"{full.cpu:.1f} {full.wall:.1f} {full.memory:,.0f} {full.disk:,.1f}".split() if full else [""] * 4),
            *(f"{day.cpu:.1f} {day.disk:,.1f}".split() if day else [""] * 2),
            f"{erased.cpu:.1f}" if erased else "",
        )
    whole = _total(costs["all"]).cpu
    shares = [f"{_total(costs[run]).cpu / whole:.1%}" for run in ("a day more", "a post erased")]
    table.add_row("of a full run", "", "", "", "", shares[0], "", shares[1])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--posts", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--keep", type=Path, help="a folder in which what was measured stays")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--erase", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.erase:
        erase(arguments.home, Request((arguments.erase,)))
        return
    if arguments.stage:
        runner = Runner(Store(Home(arguments.home).data), Settings())
        runner.refresh(next(stage for stage in STAGES if stage.name == arguments.stage))
        return
    measured = {}
    for posts in arguments.posts:
        with tempfile.TemporaryDirectory() as folder:
            measured[posts] = measure((arguments.keep or Path(folder)) / str(posts), posts)
        Console().print(_table(posts, measured[posts]))
    for few, many in pairwise(arguments.posts):
        ratio = _total(measured[many]["all"]).cpu / _total(measured[few]["all"]).cpu
        Console().print(f"{few:,} → {many:,}: CPU grows with exponent {math.log(ratio) / math.log(many / few):.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    written = {
        str(posts): {run: {stage: asdict(cost) for stage, cost in of.items()} for run, of in costs.items()}
        for posts, costs in measured.items()
    }
    RESULTS.write_text(json.dumps({"machine": platform.processor(), "costs": written}, indent=1) + "\n")


if __name__ == "__main__":
    main()
