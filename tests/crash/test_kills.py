"""Killed with SIGKILL at any moment and started again: the same posts, none twice, little requested twice."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from crawl_runs import NOW, ROOT, command, crawl, environment
from troubled_replica import Replica

WINDOW = ("--from", "2025-01-01", "--until", "2025-05-20")


def killed(job: Path, url: str, written: float, seconds: float) -> bool:
    """Starts the crawl, kills it `seconds` after its journal has grown by so many bytes; False: it was done before."""
    journal = job / "items.jsonl"
    target = _size(journal) + written
    process = subprocess.Popen(
        command(job, url, *WINDOW), cwd=ROOT, env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while _size(journal) < target and process.poll() is None:
        time.sleep(0.005)
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def in_order(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: row["source_id"])


def compare(replica: Replica, folder: Path, kills: int, seed: int) -> None:
    """A crawl that is left alone, and one that is killed so often, each from nothing."""
    replica.requests(reset=True)
    alone = crawl(folder / "alone", replica.url)
    undisturbed = replica.requests(reset=True)["count"]
    assert {row["source_id"] for row in alone.rows} == {post["ids"]["xinli001"] for post in replica.posts()}

    chance = random.Random(seed)
    job = folder / "killed"
    whole = _size(alone.job / "items.jsonl")
    sizes = []
    for number in range(kills):
        # One in five as it starts, the others anywhere in their work.
        early = number % 5 == 4
        written = 0.0 if early else chance.uniform(0, 1.6 * whole / kills)
        assert killed(job, replica.url, written, chance.uniform(0, 1.2 if early else 0.03)), "done before all kills"
        sizes.append(_size(job / "items.jsonl"))
    again = crawl(job, replica.url)
    disturbed = replica.requests()["count"]

    assert len(again.rows) == len(again.by_id)
    assert in_order(again.rows) == in_order(alone.rows)
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > kills / 2  # the kills did fall into the work
    assert disturbed <= 1.3 * undisturbed, (disturbed, undisturbed)
    print(f"requests: {undisturbed} undisturbed, {disturbed} with {kills} kills, {disturbed / undisturbed:.3f} ×")  # noqa: T201


@pytest.mark.drill("kill")
def test_a_crawl_that_is_killed_five_times_gives_what_one_gives_that_is_left_alone(tmp_path):
    with Replica(posts=220, now=NOW, days=10) as replica:
        compare(replica, tmp_path, kills=5, seed=1)


@pytest.mark.drill("kill")
def test_killed_while_a_post_is_written_the_post_is_fetched_again(tmp_path):
    with Replica(posts=40, now=NOW, days=10) as replica:
        alone = crawl(tmp_path / "alone", replica.url)
        job = tmp_path / "job"
        crawl(job, replica.url)
        # As the process would have left it: whole lines, half a line, not over.
        (job / "stats.json").unlink()
        journal = job / "items.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:20]) + lines[20][: len(lines[20]) // 2])
        replica.requests(reset=True)
        again = crawl(job, replica.url)
        assert replica.requests()["paths"] == ["/robots.txt"]  # the pages were there
    assert in_order(again.rows) == in_order(alone.rows)
    assert journal.read_bytes().splitlines(keepends=True)[:20] == lines[:20]
