"""What one crawl leaves for the next: late answers, pages that can not be read, lists that were empty for a while."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from crawl_runs import NOW, Run, begin, crawl, post_ids, rows_of, seen, wait_for
from tiny_site import HTML, TinySite
from troubled_replica import Replica
from xinli_pages import UNREADABLE, listed, question, site_of

from crawlers import settings

IDS = range(100841600, 100841620)


def night(folder: Path, url: str, number: int, **named: Any) -> Run:
    """The crawl of one night, which knows what the one before it saw."""
    before = folder / str(number - 1) / "seen.jsonl"
    known = ("--seen", str(before)) if before.exists() else ()
    return crawl(folder / str(number), url, "2025-05-20", "2025-05-20", *known, **named)


# Late answers.


@pytest.mark.drill("kill")
@pytest.mark.parametrize("keep_pages_days", ["7", "30"])
def test_an_answer_that_came_before_a_killed_job_went_on_is_fetched_by_the_next_crawl(tmp_path, keep_pages_days):
    """With their pages too old, the lists that are read again show the answer; with them kept, the next crawl's do."""
    with Replica(posts=60, now=NOW, days=10) as replica:
        replica.server.trouble.slow_seconds = 0.05
        process = begin(tmp_path / "0", replica.url)
        wait_for(lambda: len(rows_of(tmp_path / "0")) >= 30)
        assert process.poll() is None
        process.kill()
        process.communicate()
        replica.server.trouble.slow_seconds = 0
        had = {row["source_id"]: len(row["answers"]) for row in rows_of(tmp_path / "0")}
        came = replica.tick(days=9, answers=12)
        later = "2025-05-29T12:00+08:00"
        options = ("--keep-pages-days", keep_pages_days)
        first = crawl(tmp_path / "0", replica.url, "2025-01-01", "2025-05-20", *options, now=later)
        ids = {post["number"]: post["ids"]["xinli001"] for post in replica.posts()}
        late = {ids[number] for number in came["changed"]} & had.keys()
        assert late
        assert all(len(first.by_id[i]["answers"]) == had[i] for i in late)  # the journal is not gone over again
        known = ("--seen", str(tmp_path / "0" / "seen.jsonl"))
        second = crawl(tmp_path / "1", replica.url, "2025-01-01", "2025-05-20", *known, now=later)
        truth = {post["ids"]["xinli001"]: len(post["answers"]) for post in replica.posts()}
    assert late <= set(second.by_id)
    both = {**first.by_id, **second.by_id}
    assert {i: len(row["answers"]) for i, row in both.items()} == truth


def test_a_page_that_is_older_than_the_list_does_not_count_as_read_by_it(tmp_path):
    """The page was kept and the post not written; the list, read again, shows an answer that the page has not."""
    source_id = IDS[0]
    pages = {"/qa": listed((source_id, 1)), f"/qa/{source_id}": question(source_id, n_answers=1)}
    with TinySite(pages) as site:
        crawl(tmp_path / "0", site.url, "2025-05-20", "2025-05-20")
        (tmp_path / "0" / "stats.json").unlink()
        (tmp_path / "0" / "items.jsonl").unlink()
        pages |= {"/qa": listed((source_id, 2)), f"/qa/{source_id}": question(source_id, n_answers=2)}
        with sqlite3.connect(tmp_path / "0" / "pages.sqlite") as store:
            store.execute("DELETE FROM pages WHERE url LIKE '%/qa?%'")
        store.close()
        run = crawl(tmp_path / "0", site.url, "2025-05-20", "2025-05-20", now="2025-05-20T13:00+08:00")
        assert [len(row["answers"]) for row in run.rows] == [1]
        again = night(tmp_path, site.url, 1, now="2025-05-20T14:00+08:00")
    assert [len(row["answers"]) for row in again.rows] == [2]


def test_pages_of_a_job_are_gone_after_the_days_that_they_are_kept_for(tmp_path):
    source_id = IDS[0]
    pages = {"/qa": listed((source_id, 0)), f"/qa/{source_id}": question(source_id)}
    later = "2025-05-22T13:00+08:00"  # two days and an hour
    with TinySite(pages) as site:
        for days, n_pages in (("3", 0), ("2", 2)):
            job = tmp_path / days
            crawl(job, site.url, "2025-05-20", "2025-05-20")
            (job / "stats.json").unlink()
            (job / "items.jsonl").unlink()
            site.requested.clear()
            crawl(job, site.url, "2025-05-20", "2025-05-20", "--keep-pages-days", days, now=later)
            assert len(site.requested) == 1 + n_pages, days


# Pages that can not be read.


def test_posts_that_could_not_be_read_are_requested_every_night_and_spoil_none(tmp_path):
    """Five posts among fifteen good ones; in the quiet night they are all that there is to fetch. Links of a list that
    lead elsewhere are counted and spoil none either.
    """
    broken = set(IDS[::4])
    pages = site_of(IDS, dict.fromkeys(broken, UNREADABLE))
    pages["/qa"] = listed(*((i, 0) for i in IDS), links=("http://192.0.2.1/qa/1", "javascript:void(0)"))
    with TinySite(pages) as site:
        first = night(tmp_path, site.url, 0)
        assert first.summary["errors"] == {"unknown_layout": 5}
        assert first.summary["posts"] == {"listed": 20, "fetched": 15, "lost": 5}
        assert {i for i, line in seen(first.job).items() if line.get("unread")} == {str(i) for i in broken}
        assert first.summary["list_ended_first"] is True
        assert "a list ended before anything older than 2025-05-20" in first.log

        for number in (1, 2):
            site.requested.clear()
            quiet = night(tmp_path, site.url, number)
            assert (quiet.summary["finish_reason"], quiet.summary["nothing_new"]) == ("finished", True)
            assert (quiet.summary["errors"], quiet.summary["refused"]) == ({}, {"offsite": 2})
            assert quiet.summary["posts"] == {"listed": 20, "unchanged": 15, "unread_before": 5}
            assert set(post_ids(site.requested)) == {str(i) for i in broken}
            assert len(site.requested) == 1 + 1 + 5

        healed = min(broken)
        pages[f"/qa/{healed}"] = question(healed)
        assert set(night(tmp_path, site.url, 3).by_id) == {str(healed)}
        fifth = night(tmp_path, site.url, 4)
    assert fifth.summary["posts"] == {"listed": 20, "unchanged": 16, "unread_before": 4}


def test_a_post_that_can_not_be_read_is_an_error_again_once_an_answer_came(tmp_path):
    with TinySite(pages := site_of(IDS, {IDS[0]: UNREADABLE})) as site:
        night(tmp_path, site.url, 0)
        pages["/qa"] = listed((IDS[0], 9), *((i, 0) for i in IDS[1:]))
        second = night(tmp_path, site.url, 1)
        assert second.summary["errors"] == {"unknown_layout": 1}
        assert second.summary["posts"]["lost"] == 1
        assert second.summary["finish_reason"] == "finished"  # the others are known: the lists can be read
        third = night(tmp_path, site.url, 2)
    assert third.summary["posts"]["unread_before"] == 1
    assert third.summary["nothing_new"] is True


@pytest.mark.parametrize(
    ("refusal", "counted"),
    [((403, HTML, b""), "http_403"), ((302, {"Location": "http://192.0.2.1/"}, b""), "redirect_offsite")],
)
def test_posts_that_are_refused_every_night_spoil_none_either(tmp_path, refusal, counted):
    """More of them than refusals in a row make a wall: in the first night others stand between them."""
    refused = set(IDS[::3])
    assert len(refused) > 5
    pages = site_of(IDS, dict.fromkeys(refused, refusal))
    with TinySite(pages) as site:
        first = night(tmp_path, site.url, 0)
        assert {**first.summary["errors"], **first.summary["refused"]} == {counted: len(refused)}
        quiet = night(tmp_path, site.url, 1)
    assert quiet.code == 0
    assert quiet.summary["posts"] == {"listed": 20, "unchanged": 13, "unread_before": 7}
    assert quiet.summary["nothing_new"] is True


def test_a_post_that_can_be_read_at_last_and_is_none_of_the_window_is_unread_no_more(tmp_path):
    """Until then every crawl remembers it, also one that did not look at it."""
    line = {"source_id": str(IDS[0]), "fingerprint": "0", "posted_at": None, "unread": True}
    with TinySite(pages := site_of(IDS, {IDS[0]: UNREADABLE})) as site:
        first = night(tmp_path, site.url, 0)
        known = ("--seen", str(first.job / "seen.jsonl"))
        other = crawl(tmp_path / "other", site.url, "2025-05-19", "2025-05-19", *known)
        assert seen(other.job)[str(IDS[0])] == line
        pages[f"/qa/{IDS[0]}"] = question(IDS[0], day="2025-05-18")
        second = night(tmp_path, site.url, 1)
    assert second.summary["posts"] == {"listed": 20, "outside": 1, "unchanged": 19}
    assert seen(second.job)[str(IDS[0])] == {
        "source_id": str(IDS[0]), "fingerprint": None, "posted_at": "2025-05-17T16:00:00+00:00"
    }  # fmt: skip


def test_where_nothing_at_all_could_be_read_the_crawl_fails(tmp_path):
    pages = {"/qa": listed((IDS[0], 0)), f"/qa/{IDS[0]}": UNREADABLE}
    with TinySite(pages) as site:
        assert night(tmp_path, site.url, 0, code=1).summary["finish_reason"] == "nothing_read"


def test_a_page_may_end_in_capitals_and_a_link_that_no_request_can_be_made_of_costs_one_post(tmp_path):
    (*head, broken), (*_, other) = question(IDS[0], more=True), question(IDS[1])
    pages = {IDS[0]: (*head, broken.replace(b"/qa/", b"http://a:b/")), IDS[1]: (*head, other.replace(b"</h", b"</H"))}
    with TinySite(site_of(IDS, pages)) as site:
        run = night(tmp_path, site.url, 0)
    assert run.summary["posts"] == {"listed": 20, "fetched": 19, "lost": 1}
    assert run.summary["errors"] == {"page": 1}


def test_a_thread_without_end_is_cut_and_given(tmp_path):
    """Each page of answers leads to one more: as many are read as may be, and the next night none is."""
    source_id, most = IDS[0], settings.CRAWL_POST_PAGES_MAX
    pages = {"/qa": listed((source_id, 2)), f"/qa/{source_id}": question(source_id, n_answers=2, more=True)}
    for n in range(2, most + 10):
        pages[f"/qa/{source_id}?page={n}"] = question(source_id, n_answers=2, page=n, more=True)
    with TinySite(pages) as site:
        run = night(tmp_path, site.url, 0)
        assert len(site.requested) == 1 + 1 + most
        quiet = night(tmp_path, site.url, 1)
    assert (run.summary["posts"], run.summary["errors"]) == ({"listed": 1, "cut": 1}, {})
    assert [len(row["answers"]) for row in run.rows] == [2 * most]
    assert quiet.summary["posts"] == {"listed": 1, "unchanged": 1}
