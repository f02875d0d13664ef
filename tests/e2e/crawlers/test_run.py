"""The entry of a crawl: windows, going on, what a second crawl asks for, and how it ends."""

import json
import signal
import subprocess
import sys
from datetime import date

import pytest
from crawl_runs import NOW, ROOT, begin, command, crawl, day, environment, post_ids, rows_of, wait_for
from tiny_site import HTML, TinySite
from troubled_replica import Replica
from xinli_pages import UNREADABLE, question, site_of

IDS = range(100841600, 100841620)


def lists(paths: list[str]) -> list[str]:
    return [path for path in paths if path.startswith("/qa?")]


def test_a_window_gives_the_posts_of_its_days_and_no_others(clean_replica, tmp_path):
    truth = {post["ids"]["xinli001"]: day(post) for post in clean_replica.posts()}
    run = crawl(tmp_path / "job", clean_replica.url, "2025-05-14", "2025-05-16")
    wanted = {i for i, posted in truth.items() if date(2025, 5, 14) <= posted <= date(2025, 5, 16)}
    assert len(wanted) > 10
    assert set(run.by_id) == wanted
    # What the list itself dates outside is not requested: at most the posts beside the window are.
    paths = clean_replica.log.paths
    assert len(post_ids(paths)) <= len(wanted) + 25
    assert len(lists(paths)) < len(truth) / 10
    empty = crawl(tmp_path / "empty", clean_replica.url, "2024-05-14", "2024-05-16")
    assert (empty.rows, empty.summary["nothing_new"]) == ([], True)
    assert (empty.job / "stats.json").exists()


def test_a_crawl_a_day_later_asks_for_lists_and_new_or_changed_posts_alone(tmp_path):
    with Replica(posts=200, now=NOW, days=10) as replica:
        first = crawl(tmp_path / "first", replica.url)
        came = replica.tick(days=1, posts=7, answers=5)
        truth = {post["number"]: post["ids"]["xinli001"] for post in replica.posts()}
        expected = {truth[number] for number in {*came["new"], *came["changed"]}}
        replica.reset()
        now = "2025-05-21T12:00+08:00"
        seen = tmp_path / "first" / "seen.jsonl"
        second = crawl(tmp_path / "second", replica.url, "2025-01-01", "2025-05-21", "--seen", str(seen), now=now)
        paths = replica.log.paths
    assert sorted(post_ids(paths)) == sorted(expected)
    assert len(expected) >= 10
    assert len(lists(paths)) == second.summary["list_pages"] <= len(truth) / 10 + 1
    assert set(second.by_id) == expected
    assert second.summary["posts"] == {
        "listed": len(truth), "fetched": len(expected), "unchanged": len(truth) - len(expected)
    }  # fmt: skip
    assert {*first.by_id, *second.by_id} == set(truth.values())


def test_ids_to_be_taken_down_are_never_requested(clean_replica, tmp_path):
    gone = [post["ids"]["xinli001"] for post in clean_replica.posts()[3:9]]
    takedown = tmp_path / "takedown.txt"
    takedown.write_text("\n".join(f"xinli001:{i}" for i in gone), encoding="utf-8")
    run = crawl(tmp_path / "job", clean_replica.url, "2025-05-18", "2025-05-20", "--takedown", str(takedown))
    paths = clean_replica.log.paths
    assert run.rows
    assert not any(i in path for path in paths for i in gone)
    assert run.summary["posts"]["takedown"] == len(gone)


def test_a_bound_on_the_posts_is_kept_and_is_an_end_like_another(clean_replica, tmp_path):
    run = crawl(tmp_path, clean_replica.url, "2025-01-01", "2025-05-20", "--max-items", "7")
    assert (len(run.rows), run.summary["finish_reason"]) == (7, "max_items")
    fates = run.summary["posts"]
    assert fates["fetched"] == run.summary["items"] == 7
    assert fates["left"] == fates["listed"] - 7
    assert len(clean_replica.log.paths) < 20


def test_a_wrong_request_ends_with_two_and_asks_for_nothing(clean_replica, tmp_path):
    arguments = command(tmp_path, clean_replica.url, "--base-url", "http://192.0.2.1", "--delays", "on")
    ran = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "GONGQING_CRAWL_CONTACT" in ran.stderr
    assert ran.stderr.startswith("error: ")  # and nothing before it, of Scrapy's or anyone's
    assert "Traceback" not in ran.stderr
    assert clean_replica.log.paths == []


def test_stopped_in_order_and_gone_on_with(clean_replica, tmp_path):
    clean_replica.server.trouble.slow_seconds = 0.02
    process = begin(tmp_path, clean_replica.url)
    wait_for(lambda: len(rows_of(tmp_path)) >= 20)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert json.loads(output)["finish_reason"] == "shutdown"
    stopped = json.loads((tmp_path / "stopped.json").read_bytes())
    clean_replica.server.trouble.slow_seconds = 0
    run = crawl(tmp_path, clean_replica.url)
    assert stopped.keys() == run.summary.keys()
    assert len(run.rows) == len(run.by_id) == len(clean_replica.posts())
    assert not (tmp_path / "stopped.json").exists()


def test_broken_pages_are_requested_again_and_cost_no_post(tmp_path):
    """Each of twenty first fails: an error of the server, a page that is cut, a connection that breaks."""
    pages = site_of(IDS, {i: question(i, n_answers=2) for i in IDS})
    for i in IDS:
        *_, body = whole = pages[f"/qa/{i}"]
        half, broken_off = body[: len(body) * 2 // 3], {"Content-Length": str(len(body)), "Connection": "close"}
        failures = ((500, HTML, b"failed"), (200, HTML, half), (200, {**HTML, **broken_off}, half))
        pages[f"/qa/{i}"] = [failures[i % 3], whole]
    with TinySite(pages) as site:
        run = crawl(tmp_path, site.url)
    assert run.summary["retries"] > 0
    assert (run.summary["posts"], run.summary["errors"]) == ({"listed": 20, "fetched": 20}, {})
    assert {len(row["answers"]) for row in run.rows} == {2}


def test_an_unknown_layout_stops_the_crawl_with_the_pages_saved_and_never_an_empty_row(tmp_path):
    """Of a list at once; of posts before the whole list was requested."""
    for name, pages in {"list": {"/qa": UNREADABLE}, "posts": site_of(IDS, dict.fromkeys(IDS, UNREADABLE))}.items():
        with TinySite(pages) as site:
            run = crawl(tmp_path / name, site.url, code=1)
            assert len(set(post_ids(site.requested))) <= 8  # five posts of twenty, and what was under way
        assert (run.summary["finish_reason"], run.rows) == ("unknown_layout", [])
        n_unknown = run.summary["errors"]["unknown_layout"]
        assert n_unknown == len(list((run.job / "unknown").iterdir())) >= (1 if name == "list" else 5)
        assert not (run.job / "stats.json").exists()


# A crawl in which our own code fails, at the place that the module named does.
BROKEN = """
import sys
from crawlers import run
from crawlers.job import Job
from crawlers.spiders import base

def once(made):
    failed = []
    def fails(*given, **named):
        if not failed:
            failed.append(True)
            raise OSError("no room")
        return made(*given, **named)
    return fails

{patch}
sys.exit(run.main(sys.argv[1:]))
"""


DAYS = ("--from", "2025-05-19", "--until", "2025-05-20")


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        ("Job.append = once(Job.append)", "unwritten"),
        ("base.row_of = once(base.row_of)", "unexpected"),
        ("Job.finish = once(Job.finish)", "unwritten"),
    ],
)
def test_what_our_own_code_loses_makes_the_crawl_fail_and_comes_with_the_next_run(
    clean_replica, tmp_path, patch, reason
):
    job, [_, _, _, *arguments] = tmp_path / "job", command(tmp_path / "job", clean_replica.url, *DAYS)
    broken = subprocess.run(
        [sys.executable, "-c", BROKEN.format(patch=patch), *arguments],
        cwd=ROOT, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert broken.returncode == 1, broken.stderr
    assert json.loads(broken.stdout)["finish_reason"] == reason
    assert not (job / "stats.json").exists()
    n_before = len(rows_of(job))
    if reason == "unwritten":
        assert "Traceback" not in broken.stderr
    if "append" in patch:  # at once: what else comes could not be kept either
        assert "unwritten (no room) at " in broken.stderr
        assert n_before <= 1  # what was under way
    again = crawl(job, clean_replica.url, "2025-05-19", "2025-05-20")
    truth = {post["ids"]["xinli001"] for post in clean_replica.posts() if str(day(post)) in DAYS}
    assert again.by_id.keys() >= truth
    assert again.summary["posts"].get("had", 0) == n_before
    assert len(again.rows) >= n_before + ("finish" not in patch)
