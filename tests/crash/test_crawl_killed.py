"""`gongqing crawl` killed with SIGKILL, parent and child, as it starts, crawls, or writes: the table is the same."""

import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from troubled_replica import Replica

from pipelines.settings import ROOT
from pipelines.store import Store
from samples.replica.posts import invent

N_POSTS = 300
FIRST, LAST = dt.date(2025, 3, 1), dt.date(2025, 3, 10)
# The command itself, but without delays: it has no such option, for no site is ever crawled without.
COMMAND = (
    "import sys; from pathlib import Path; from pipelines.cli.making import crawl_window; "
    "crawl_window(Path(sys.argv[1]), 'replica', sys.argv[2], sys.argv[3], base_url=sys.argv[4], delays=False)"
)


def some_posts(path: Path) -> Path:
    """Posts of ten days, long enough ago for the pages to give each a whole date, whenever they are read."""
    chance = random.Random(7)
    start = dt.datetime.combine(FIRST, dt.time(), tzinfo=dt.timezone(dt.timedelta(hours=8)))
    lines = []
    for index in range(N_POSTS):
        post = invent(7, index, start + dt.timedelta(days=10 * chance.random()))
        answers = [
            {name: getattr(one, name) for name in ("text", "author", "author_role", "likes", "recommended")}
            | {"posted_at": one.posted_at.isoformat()}
            for one in post.coming
        ]
        fields = {name: getattr(post, name) for name in ("title", "description", "topic", "subtopics", "author")}
        lines.append({"id": post.key, **fields, "posted_at": post.posted_at.isoformat(), "answers": answers})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def start(home: Path, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(home), str(FIRST), str(LAST), url],
        cwd=ROOT,
        env={**os.environ, "GONGQING_HOME": str(home), "GONGQING_AUTHOR_KEY": "a key for the tests alone"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def crawled(home: Path, url: str) -> None:
    process = start(home, url)
    _, words = process.communicate()
    assert process.returncode == 0, words.decode()


def killed(home: Path, url: str, when: Callable[[], bool], seconds: float) -> bool:
    """Starts the command and kills its whole group so long after `when` holds; False: it was done before."""
    process = start(home, url)
    while not when() and process.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    done = process.poll() is not None
    if not done:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return not done


def journals(home: Path) -> int:
    """Bytes of all posts that were fetched."""
    return sum(path.stat().st_size for path in home.glob("crawl/replica/*/*/items.jsonl"))


def ends(home: Path) -> int:
    """How many crawls have come to their end, collected or not."""
    return len(list(home.glob("crawl/replica/*/*/stats.json")))


def table(home: Path) -> pl.DataFrame:
    return Store(home / "data").read("raw_posts").collect().drop("fetched_at").sort("post_id")


@pytest.mark.drill("kill")
@pytest.mark.slow
def test_a_command_that_is_killed_at_any_moment_gives_the_table_of_one_that_is_left_alone(tmp_path: Path):
    alone, home, chance = tmp_path / "alone", tmp_path / "killed", random.Random(3)
    with Replica(file=some_posts(tmp_path / "posts.jsonl")) as replica:
        crawled(alone, replica.url)
        undisturbed = replica.requests(reset=True)["count"]
        assert table(alone).height == N_POSTS
        whole = journals(alone)

        assert killed(home, replica.url, lambda: True, chance.uniform(0, 2)), "as it starts"
        for _ in range(5):
            target, soon = journals(home) + chance.uniform(0, whole / 5), chance.uniform(0, 0.05)
            assert killed(home, replica.url, lambda n=target: journals(home) > n, soon), "as it crawls"
        for _ in range(2):
            before, soon = ends(home), chance.uniform(0, 0.2)
            assert killed(home, replica.url, lambda n=before: ends(home) > n, soon), "as it writes"
        crawled(home, replica.url)
        disturbed = replica.requests()["count"]

    killed_table = table(home)
    assert killed_table["post_id"].is_unique().all()
    assert killed_table.equals(table(alone))
    places = Store(alone / "data").partitions("raw_posts")
    assert Store(home / "data").partitions("raw_posts") == places
    assert len(places) == 10
    print(f"requests: {undisturbed} undisturbed, {disturbed} disturbed, {disturbed / undisturbed:.3f} ×")  # noqa: T201
    assert disturbed <= 1.3 * undisturbed
