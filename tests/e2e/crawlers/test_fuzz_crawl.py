"""Broken pages in a crawl: each gives a right record or is counted, the crawl goes on, and no other post suffers."""

import json
import random
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from crawl_runs import NOW, rows_of, scrapy_crawl, site_file
from mutations import mutated
from troubled_replica import Replica

SHARE = 0.5  # of the pages of a kind are broken


def break_pages(replica: Replica, which: str) -> dict[str, str]:
    """Breaks a share of the pages whose address `which` matches, each always in one way; gives how, by the address."""
    broken: dict[str, str] = {}
    whole_page = replica.server.page

    def page(request: Any) -> Any:
        whole = whole_page(request)
        rng = random.Random(f"20250520\x1f{request.raw_path}")
        if whole.status != 200 or not re.search(which, request.raw_path) or rng.random() >= SHARE:
            return whole
        is_json = "json" in whole.content_type
        broken[request.raw_path], body = mutated(whole.body.decode(), rng, is_json=is_json)
        # A half of a pair, which JSON may escape, UTF-8 can not write.
        return replace(whole, body=(body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "replace"))

    replica.server.page = page  # type: ignore[method-assign]
    return broken


def bare(text: str) -> str:
    """Without white space, and without numbers: an id that takes the place of another may do so in a text too."""
    return re.sub(r"[\s\d]+", "", text)


# Engine, folder of the replica, lines of the site's file, and the addresses of posts.
ENGINES = {
    "xinli001": ("", {}, r"^/qa/\d+"),
    "discuz": ("/discuz", {"boards": '[{ id = "2" }, { id = "36" }]'}, "viewthread"),
    "discourse": ("/discourse", {}, r"/t/\d+"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_each_broken_post_is_a_right_record_or_a_counted_error(tmp_path, engine):
    folder, keys, posts = ENGINES[engine]
    with Replica(posts=260, now=NOW, days=10) as replica:
        broken = break_pages(replica, posts)
        args = {"job": str(tmp_path / "job"), "from_date": "2025-01-01", "source": site_file(tmp_path, engine, **keys)}
        # No number of unreadable posts in a row stops it.
        ran = scrapy_crawl(replica.url + folder, "-s", "CRAWL_UNREAD_MAX=100000", **args)
        truth = {post["ids"]["xinli001" if engine == "xinli001" else "forum"]: post for post in replica.posts()}
    rows = {row["source_id"]: row for row in rows_of(tmp_path / "job")}

    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "Traceback" not in ran.stderr
    summary = json.loads((tmp_path / "job" / "stats.json").read_bytes())
    assert summary["finish_reason"] == "finished"
    assert len(broken) > 100
    assert len(set(broken.values())) > 2
    # Every post is counted, and a lost one is an error; one that lacks an answer is a post.
    outcomes = Counter(summary["posts"])
    assert outcomes.pop("listed") == len(truth) == sum(outcomes.values())
    assert set(outcomes) <= {"fetched", "lost", "gone", "outside"}
    assert summary["errors"].pop("answer") > 0
    assert sum(summary["errors"].values()) + sum(summary["refused"].values()) == outcomes["lost"] > 0
    assert outcomes["fetched"] == len(rows) == summary["items"]
    # Those none of whose pages was touched are there, and some of the others.
    touched = {source_id for path in broken for source_id in re.findall(r"\d+", path)}
    assert truth.keys() - touched <= rows.keys()
    assert rows.keys() & touched
    for source_id, row in rows.items():
        post = truth[source_id]
        assert bare(row["title"]) == bare(post["title"]), source_id
        assert bare(row["description"]) == bare(post["description"]), source_id
        answers = Counter(bare(answer["text"]) for answer in row["answers"])
        shown = Counter(bare(answer["text"]) for answer in post["answers"])
        assert answers <= shown, f"{source_id}: {[broken[path] for path in broken if source_id in path]}"
