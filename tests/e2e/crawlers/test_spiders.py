"""Every engine, on the replica: a crawl gives every post with all its answers, and nothing of its writers."""

import json
import re
from datetime import datetime

import polars as pl
import pytest
from crawl_runs import KEY, crawl, site_file

from crawlers.dates import day_of
from schemas.posts import RawPosts

BOARDS = '[{ id = "2", topic = "情绪" }, { id = "36" }]'
# Engine, folder of the replica, lines of the site's file.
ENGINES = {
    "discuz": ("discuz", "/discuz", {"boards": BOARDS}),
    "discuz, gbk, rewritten addresses": ("discuz", "/discuz-gbk", {"boards": BOARDS, "rewritten_urls": "true"}),
    "discourse": ("discourse", "/discourse", {}),
    "nodebb": ("nodebb", "/nodebb", {}),
    "douban_group": ("douban_group", "/douban", {"boards": '[{ id = "tree" }]'}),
}


def check(rows: list[dict], truth: list[dict], engine: str) -> None:
    """Every post is there with its own words and all its answers, but those that a forum hides from guests."""
    site = "xinli001" if engine == "xinli001" else "forum"
    expected = {post["ids"][site]: post for post in truth}
    assert {row["source_id"] for row in rows} == set(expected)
    assert len(rows) == len(expected)
    for row in rows:
        post = expected[row["source_id"]]
        shown = [a for a in post["answers"] if engine in ("xinli001", "douban_group") or not a["hidden"]]
        assert row["title"] == " ".join(post["title"].split())
        # An empty line between two paragraphs is the site's, and how wide a space is.
        assert row["description"].split() == post["description"].split(), row["source_id"]
        texts = {answer["answer_id"].rsplit("/", 1)[1]: answer["text"].split() for answer in row["answers"]}
        assert texts == {answer["ids"][site]: answer["text"].split() for answer in shown}, row["source_id"]
        assert len(texts) == len(row["answers"])


@pytest.mark.parametrize("layout", ["2023", "2020"])
def test_xinli001_in_both_layouts(replica, tmp_path, layout):
    replica.server.layout = layout
    run = crawl(tmp_path, replica.url)
    truth = replica.posts()
    check(run.rows, truth, "xinli001")
    assert {row["layout"] for row in run.rows} == {f"xinli001_{layout}"}
    for post in truth:
        row = run.by_id[post["ids"]["xinli001"]]
        assert row["posted_at"][:10] <= row["fetched_at"][:10]
        assert day_of(datetime.fromisoformat(row["posted_at"])) == day_of(datetime.fromisoformat(post["posted_at"]))
        assert row["topic"] == post["topic"]
    assert run.summary["posts"] == {"listed": len(truth), "fetched": len(truth)}
    assert run.summary["errors"] == run.summary["refused"] == {}


@pytest.mark.parametrize("name", ENGINES)
def test_forums(replica, tmp_path, name):
    engine, folder, keys = ENGINES[name]
    run = crawl(tmp_path / "job", replica.url + folder, source=site_file(tmp_path, engine, **keys))
    check(run.rows, replica.posts(), engine)
    assert run.summary["errors"] == {}
    assert engine != "discuz" or "情绪" in {row["topic"] for row in run.rows}


def test_the_rows_are_those_of_raw_posts_and_hold_nothing_of_their_writers(replica, tmp_path):
    run = crawl(tmp_path, replica.url)
    table = pl.DataFrame(run.rows, infer_schema_length=None).with_columns(
        pl.col("posted_at", "fetched_at").str.to_datetime(time_zone="UTC"),
        pl.col("answers").list.eval(
            pl.element().struct.with_fields(pl.field("posted_at").str.to_datetime(time_zone="UTC"))
        ),
    )
    RawPosts.validate(table, cast=True)
    text = json.dumps(run.rows, ensure_ascii=False)
    assert not re.search(r"/user/|/expert/|avatar|incognito|IP属地|href|<br|<p", text)
    authors = {row["author"] for row in run.rows} | {a["author"] for row in run.rows for a in row["answers"]}
    assert all(author is None or re.fullmatch(r"u_[0-9a-f]{16}", author) for author in authors)
    assert len(authors) > 5
    assert KEY not in run.log
    log_and_stats = run.log + (run.job / "stats.json").read_text(encoding="utf-8")
    assert not any(row["title"] in log_and_stats for row in run.rows)
