"""What E's reward pays for, with an encoder trained here: human answers, and hacks, to questions that it has not seen.

    python -m benchmarks.reward_model [--folds N] [--first N] [--hidden N…] [--epochs N] [--windows first]

The 100 questions of PsyQA in ../shared/data are made into `rm_triplets` by the toolkit (without a model, and so without
negatives by emotion), fold by fold: a tenth tests, a tenth chooses T, the rest trains a tiny encoder of `--hidden`
numbers a vector.
What is paid is what `pipelines.rewards.contrastive` says with the encoder's own service behind it, for E eq. 6 as it is
printed (`paper`) and with our guard (`guarded`). `--epochs 0` shows
the start, before anything is learnt but how often tokens stand in texts. Needs `.venv-train`.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import polars as pl
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import ROOT, SHARED
from pipelines.flow.runner import Runner
from pipelines.flow.stages import STAGES
from pipelines.ingest.import_file import import_file
from pipelines.rewards.contrastive import MOST_ECHOED, QUOTED, Reading, answer_reward, echoed, unquoted
from pipelines.rewards.format import coe, section
from pipelines.rewards.services import ENCODER, close
from pipelines.settings import Settings, make_author_key
from pipelines.store import Store
from pipelines.train.embedding import Windows
from pipelines.trainsets.triplets import triplets
from schemas.reasoning import COE_TAGS, Coe
from schemas.tables import TABLES

RESULTS = Path(__file__).parent / "results" / "reward_model.json"
PSYQA = SHARED / "zh_qa" / "PsyQA_example.json"
PYTHON = ROOT / ".venv-train" / "bin" / "python"
TENTHS = 10
OTHERS = 5  # answers to other questions, for each question
GENERIC = (
    "抱抱你，你已经很棒了。一切都会好起来的，要相信自己。给自己一点时间，慢慢来，加油！",
    "我能感受到您现在很难受。您并不孤单，这不是您的错。愿您被温柔以待，祝您早日走出来。",
    "每个人都会遇到困难，重要的是爱自己。先好好休息，和信任的人聊一聊，必要时可以寻求专业的帮助。",
)
LABELS = {
    "sibling": "another human answer to the question",
    "positive": "the answer that was the positive",
    "echo": "echo of the question",
    "quoted": "a quotation of the question, then generic comfort",
    "in_pieces": "the same quotation in pieces of seven characters",
    "generic": "generic comfort",
    "other_answer": "a human answer to another question",
}


def made(home: Path) -> Store:
    """A store with the questions, and what is judged of them."""
    make_author_key(home)
    store = Store(home / "data")
    import_file(store, home, "psyqa", PSYQA)
    needed = ("clean_posts", "clean_dialogues", "unique")
    for stage in STAGES:
        if stage.name in needed:
            Runner(store, Settings()).run(stage)
    return store


def split(store: Store, fold: int) -> pl.DataFrame:
    """`splits` anew: the groups of the posts dealt into tenths, in the order of their ids' digests."""
    groups = pl.col("group_id").hash(seed=7).rank("ordinal") % TENTHS
    named = {fold % TENTHS: "test", (fold + 1) % TENTHS: "validation"}
    posts = store.read("unique_posts").select("group_id").unique(maintain_order=True).collect()
    return posts.with_columns(
        split=groups.cast(pl.Int64).replace_strict(named, default="train", return_dtype=pl.String)
    )


def written(store: Store, fold: int, folder: Path) -> pl.DataFrame:
    """The triplets of a fold as files, and all of them."""
    posts = store.read("unique_posts").collect()
    topics, emotions = (TABLES[name].create_empty() for name in ("topics", "emotions"))
    kept, _ = triplets(posts, split(store, fold), topics, emotions, Settings().training)
    for name in ("train", "validation"):
        pq.write_table(kept.filter(split=name).to_arrow(), folder / f"{name}.parquet")
    return kept


def trained(folder: Path, hidden: int, epochs: int, windows: str) -> dict[str, object]:
    train = str(folder / "train.parquet")
    _run("pipelines.train.tiny_encoder", folder / "start", train, "--hidden", hidden)
    options = {"train": train, "validation": str(folder / "validation.parquet"), "start": str(folder / "start")}
    options |= {"out": str(folder / "model"), "epochs": epochs, "rate": 1e-3, "windows": windows}
    (folder / "config.json").write_text(json.dumps(options), encoding="utf-8")
    said = _run("pipelines.train.contrastive", folder / "config.json", folder / "metrics.jsonl")
    return json.loads(said)


def _run(module: str, *arguments: object) -> str:
    command = [str(PYTHON), "-m", module, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return ran.stdout


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The encoder's service, as long as the block lasts."""
    command = [str(PYTHON), "-m", "pipelines.train.encoder", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as service:
        os.environ[ENCODER] = json.loads(service.stdout.readline())["address"]
        try:
            yield
        finally:
            del os.environ[ENCODER]  # a variable of a run that nobody else may inherit
            service.stdin.close()


def tried(posts: list[dict], positives: dict[str, str]) -> list[tuple[str, str, str]]:
    """What is tried on the questions of a test split: kind, question, answer."""
    found = []
    for place, post in enumerate(posts):
        question = post["text"]
        for answer in post["answers"]:
            kind = "positive" if answer["answer_id"] == positives[post["post_id"]] else "sibling"
            found.append((kind, question, answer["text"]))
        found.append(("echo", question, question))
        for comfort in GENERIC:
            found.append(("generic", question, comfort))
            quoted = question[: len(comfort) // 2]
            found.append(("quoted", question, quoted + comfort))
            pieces = (quoted[at : at + QUOTED - 1] for at in range(0, len(quoted), QUOTED - 1))
            found.append(("in_pieces", question, "呢".join(pieces) + comfort))
        for step in range(1, OTHERS + 1):
            other = posts[(place + step) % len(posts)]
            if other["group_id"] != post["group_id"]:
                found.append(("other_answer", question, other["answers"][step % len(other["answers"])]["text"]))
    return found


async def paid(tries: list[tuple[str, str, str]]) -> dict[str, list[dict[str, float]]]:
    found = defaultdict(list)
    for kind, question, answer in tries:
        rewards = {one: await answer_reward(question, answer, one) for one in get_args(Reading)}
        similarity = rewards["guarded"].similarity
        found[kind].append({one: reward.r_answer for one, reward in rewards.items()} | {"similarity": similarity})
    await close()
    return found


def costs() -> dict[str, float]:
    """Seconds for a megabyte over a thousand times those for a kilobyte: the dearest of several adversarial texts."""
    pieces = ("<answer>", "<", "</answer>", "<answer><", "好", "答案" * 3 + "<")
    work = {
        "format": coe,
        "answer": lambda text: section(text, "answer", COE_TAGS),
        "echo": lambda text: echoed(text, text),
        "unquoted": lambda text: unquoted(text, text),
        "whole": lambda text: coe(Coe(L1="a", L2="b", L3="c", L4="d", answer=text.replace("answer", "a")).render()),
    }
    found = {}
    for name, does in work.items():
        ratios = []
        for piece in pieces:
            small, large = (piece * (size // len(piece)) for size in (1_000, 1_000_000))
            one = min(_seconds(does, small, 300) for _ in range(5)) / 300
            ratios.append(min(_seconds(does, large, 1) for _ in range(3)) / one / 1000)
        found[name] = round(max(ratios), 2)
    return found


def _seconds(does, text: str, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        does(text)
    return time.process_time() - began


def measure(folds: range, hidden: list[int], epochs: int, windows: str, say) -> dict[str, object]:
    arms: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        store = made(Path(scratch) / "home")
        human = [
            echoed(post["text"], answer["text"])
            for post in store.read("unique_posts").collect().iter_rows(named=True)
            for answer in post["answers"]
        ]
        for size in hidden:
            passing, chosen, seconds, weights = defaultdict(list), [], [], 0
            for fold in folds:
                folder = Path(scratch) / f"{size}-{fold}"
                folder.mkdir()
                kept = written(store, fold, folder)
                began = time.monotonic()
                told = trained(folder, size, epochs, windows)
                seconds.append(time.monotonic() - began)
                chosen.append(told["threshold"])
                weights = told["weights"]
                positives = dict(kept.filter(split="test").select("made_from", "positive_id").iter_rows())
                posts = store.read("unique_posts").collect().filter(pl.col("post_id").is_in(list(positives)))
                with served(folder / "model"):
                    found = asyncio.run(paid(tried(posts.to_dicts(), positives)))
                for kind, rows in found.items():
                    passing[kind] += rows
                for reading, least in told["threshold"].items():
                    shares = {
                        kind: f"{sum(row[reading] for row in rows):.0f}/{len(rows)}" for kind, rows in found.items()
                    }
                    say(f"{size}, fold {fold}, {reading}: T {least:.3f}, paid {shares}")
            arms[str(size)] = {
                "weights": weights,
                "seconds": round(statistics.mean(seconds)),
                "threshold": [{reading: round(least, 3) for reading, least in one.items()} for one in chosen],
                "paid": {
                    kind: {
                        "n": len(rows),
                        **{one: round(statistics.mean(row[one] for row in rows), 3) for one in get_args(Reading)},
                        "similarity": round(statistics.mean(row["similarity"] for row in rows), 3),
                    }
                    for kind, rows in passing.items()
                },
                "at_five_percent": _at_five(passing),
            }
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "folds": list(folds),
        "epochs": epochs,
        "windows": windows,
        "arms": arms,
        "guard": {
            "limit": MOST_ECHOED,
            "human_answers": len(human),
            "refused": sum(one > MOST_ECHOED for one in human),
            "most": round(max(human), 3),
        },
        "megabyte_over_thousand_kilobytes": costs(),
    }


def _at_five(passing: dict[str, list[dict[str, float]]]) -> float:
    """The share of siblings above the cosine that one in twenty answers to other questions has. No T follows it."""
    others = sorted(row["similarity"] for row in passing["other_answer"])
    least = others[int(0.95 * len(others))]
    return round(statistics.mean(float(row["similarity"] > least) for row in passing["sibling"]), 3)


def printed(measured: dict[str, object]) -> Table:
    table = Table(title=f"What is paid, over {len(measured['folds'])} folds of 100 questions")
    table.add_column("")
    for size, arm in measured["arms"].items():
        for reading in get_args(Reading):
            table.add_column(f"{size}, {reading}: {arm['weights']:,} weights, {arm['seconds']} s", justify="right")
    for kind, label in LABELS.items():
        told = [arm["paid"][kind] for arm in measured["arms"].values()]
        table.add_row(label, *(f"{one[reading]:.1%} of {one['n']}" for one in told for reading in get_args(Reading)))
    at_five = (("", f"{arm['at_five_percent']:.1%}") for arm in measured["arms"].values())
    table.add_row("siblings where 5 % of others pass", *(cell for two in at_five for cell in two))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=TENTHS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--hidden", type=int, nargs="+", default=[768])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--windows", choices=get_args(Windows), default="mean")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    console = Console()
    measured = measure(
        range(given.first, given.first + given.folds), given.hidden, given.epochs, given.windows, console.print
    )
    given.results.parent.mkdir(exist_ok=True)
    given.results.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
    console.print(printed(measured), measured["guard"], measured["megabyte_over_thousand_kilobytes"])
    console.print(f"written to {given.results}")


if __name__ == "__main__":
    main()
