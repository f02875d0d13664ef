"""Walks over ids: what no list reaches, politely and to their end, with ids that are gone."""

import json
from pathlib import Path

import pytest
from crawl_runs import NOW, Run, begin, command, crawl, day, environment, fork, post_ids, rows_of, wait_for
from tiny_site import HTML, TinySite
from troubled_replica import Replica
from xinli_pages import UNREADABLE, question

from samples.replica.xinli001 import FIRST_QID

IDS = range(100841600, 100841620)
ALL = f"{IDS[0]}-{IDS[-1]}"


def walk(job: Path, url: str, ids: str, *more: str, code: int = 0) -> Run:
    """A walk over ids of all days, unless `more` names some."""
    ended, out, log = fork(command(job, url, "--ids", ids, *more), environment())
    assert ended == code, log
    return Run(ended, json.loads(out), rows_of(job), log, job)


def test_a_walk_brings_every_post_of_its_ids_and_counts_those_that_are_gone(clean_replica, tmp_path):
    first, last = FIRST_QID + 101, FIRST_QID + 230  # beyond the last post of the replica
    run = walk(tmp_path, clean_replica.url, f"{first}-{last}")
    truth = {post["ids"]["xinli001"] for post in clean_replica.posts() if post["number"] > 100}
    assert set(run.by_id) == truth
    assert run.summary["posts"] == {"listed": 130, "fetched": len(truth), "gone": 130 - len(truth)}
    assert (run.summary["finish_reason"], run.summary["errors"], run.summary["list_ended_first"]) == (
        "finished",
        {},
        False,
    )
    paths = clean_replica.log.paths
    assert sorted(map(int, post_ids(paths))) == list(range(first, last + 1))
    assert not any(path.startswith("/qa?") for path in paths), "no list"
    assert clean_replica.log.most_at_once == 1


def test_a_window_far_back_is_found_by_halving_and_walked_to_its_end(tmp_path):
    with Replica(posts=1500, now=NOW, days=60) as replica:
        ids, days = f"{FIRST_QID + 1}-{FIRST_QID + 1500}", ("2025-04-10", "2025-04-11")
        run = crawl(tmp_path, replica.url, *days, "--ids", ids)
        wanted = {post["ids"]["xinli001"] for post in replica.posts() if str(day(post)) in days}
        requested = post_ids(replica.log.paths)
        assert not any(path.startswith("/qa?") for path in replica.log.paths)
    assert set(run.by_id) == wanted
    assert len(wanted) > 30
    assert len(requested) < len(wanted) + 50, "of 1,500 posts, and without any of 150 pages of lists"
    assert (run.summary["finish_reason"], run.summary["ids"]) == ("finished", ids)


@pytest.mark.drill("kill")
def test_a_walk_that_was_killed_goes_on_and_requests_no_page_twice(tmp_path):
    with Replica(posts=120, now=NOW, days=10) as replica:
        replica.server.trouble.slow_seconds = 0.05
        ids = ("--ids", f"{FIRST_QID + 1}-{FIRST_QID + 130}")
        process = begin(tmp_path, replica.url, *ids)
        wait_for(lambda: len(rows_of(tmp_path)) >= 30)
        process.kill()
        process.communicate()
        replica.server.trouble.slow_seconds = 0
        n_before = len(rows_of(tmp_path))
        run = crawl(tmp_path, replica.url, "2025-01-01", "2025-05-20", *ids)
        requested = [path for path in replica.log.paths if path != "/robots.txt"]
    assert len(run.by_id) == 120
    assert run.summary["posts"] == {"listed": 130, "fetched": 120 - n_before, "had": n_before, "gone": 10}
    assert len(requested) - len(set(requested)) <= 1, "the one that was under way"


def test_a_walk_that_meets_no_post_at_all_fails(tmp_path):
    with TinySite({}) as site:
        run = walk(tmp_path, site.url, ALL, code=1)
        assert len(site.requested) == 1 + len(IDS)
    assert run.summary["finish_reason"] == "nothing_read"
    assert run.summary["posts"] == {"listed": 20, "gone": 20}


def test_an_id_that_leads_to_another_page_is_gone_and_a_page_that_cannot_be_read_is_an_error(tmp_path):
    pages = {f"/qa/{i}": question(i) for i in IDS[:15]}
    pages |= {f"/qa/{i}": (302, {"Location": "/qa"}, b"") for i in IDS[15:]}
    pages |= {"/qa": UNREADABLE, f"/qa/{IDS[3]}": UNREADABLE}
    with TinySite(pages) as site:
        run = walk(tmp_path, site.url, ALL)
    assert run.summary["posts"] == {"listed": 20, "fetched": 14, "gone": 5, "lost": 1}
    assert run.summary["errors"] == {"unknown_layout": 1}


def test_a_walk_stops_where_it_is_refused_and_where_robots_forbids_it(tmp_path):
    with TinySite({f"/qa/{i}": (403, HTML, b"no") for i in IDS}) as site:
        run = walk(tmp_path / "0", site.url, ALL, code=1)
        assert (run.summary["finish_reason"], run.summary["blocked"]) == ("blocked", "refusals")
        assert len(site.requested) <= 7
    robots = (200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /qa/\n")
    with TinySite({"/robots.txt": robots}) as site:
        window = ("--from", "2025-04-01", "--until", "2025-04-02")
        run = walk(tmp_path / "1", site.url, "1000-9000", *window, code=1)
        assert run.summary["finish_reason"] == "robots_forbidden"
        assert site.requested == ["/robots.txt"]
