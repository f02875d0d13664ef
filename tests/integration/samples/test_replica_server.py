"""The replica as a server: its own process, its robots.txt, its log of requests, and what goes wrong on purpose."""

import gzip
import http.client
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from replica_http import get

from samples.replica import Replica

ROOT = Path(__file__).resolve().parents[3]


def _answers(url):
    try:
        return get(url).status == 200
    except OSError:
        return False


def _gone(url):
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if not _answers(url):
            return True
        time.sleep(0.05)
    return False


def test_it_runs_from_start_to_stop():
    replica = Replica(posts=3)
    replica.start()
    assert replica.start() is replica
    assert _answers(f"{replica.url}/qa")
    replica.stop()
    replica.stop()
    assert _gone(f"{replica.url}/qa")


def test_it_dies_with_who_started_it():
    code = """
import time
from samples.replica import Replica
print(Replica(posts=3).start().url, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with parent:
        url = parent.stdout.readline().strip()
        assert _answers(f"{url}/qa")
        parent.kill()
    assert _gone(f"{url}/qa")


def test_from_the_command_line_it_says_where_it_is_and_ends_in_order():
    command = [sys.executable, "-m", "samples.replica", "--port", "0", "--posts", "3"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        url = process.stdout.readline().strip()
        assert "Crawl-delay: 1" in get(f"{url}/robots.txt").body.decode()
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 0


def test_a_replica_that_can_not_start_says_why(tmp_path):
    with pytest.raises(RuntimeError, match=r"did not start(.|\n)*No such file"):
        Replica(file=tmp_path / "none.jsonl").start()


def test_robots_txt_is_its_own(troubled, ask):
    assert "Crawl-delay" not in ask("/robots.txt").body.decode()
    troubled.robots(crawl_delay=2.5, disallow="/qa/100841601,/x")
    text = ask("/robots.txt").body.decode()
    troubled.robots(0, "")
    assert "Crawl-delay: 2.5\n" in text
    assert {"Disallow: /user/", "Disallow: /x", "Disallow: /discourse/admin/"} <= set(text.splitlines())
    assert "Disallow: /qa/\n" not in text
    assert "Crawl-delay" not in ask("/robots.txt").body.decode()


def test_the_log_has_every_request_and_no_switch(troubled, ask):
    troubled.requests(reset=True)
    ask("/robots.txt")
    ask("/qa?page=2&sort=id")
    troubled.posts()
    log = troubled.requests()
    assert log["paths"] == ["/robots.txt", "/qa?page=2&sort=id"]
    assert (log["count"], log["pages"], log["with_cookies"], log["most_at_once"]) == (2, 1, 0, 1)
    assert log["times"] == sorted(log["times"])
    assert log["user_agents"][0].startswith("Python-urllib")


def test_cookies_are_offered_and_those_who_take_them_are_counted(troubled, ask):
    troubled.requests(reset=True)
    cookie = ask("/qa").headers["Set-Cookie"]
    assert cookie.startswith("acw_tc=")
    parts = urlsplit(troubled.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    connection.request("GET", "/qa", headers={"Cookie": cookie.split(";")[0]})
    connection.getresponse().read()
    connection.close()
    assert troubled.requests()["with_cookies"] == 1


@pytest.mark.parametrize(
    ("kind", "status", "sign"),
    [
        ("arg1", 200, b"arg1='"),
        ("slider", 302, b""),
        ("503", 302, b""),
        ("captcha", 302, b""),
        ("403", 403, b""),
        ("429", 429, b""),
        ("empty", 200, b'id="left"'),
    ],
)
def test_a_challenge_stands_for_every_page_but_robots_txt(troubled, ask, kind, status, sign):
    troubled.challenge(kind=kind)
    for path in ("/qa", "/discuz/forum-2-1.html", "/discourse/latest.json"):
        got = ask(path)
        assert got.status == status
        assert sign in got.body
        assert b"xst" not in got.body
    assert ask("/robots.txt").status == 200
    troubled.challenge(on=False)
    assert b'class="title"' in ask("/qa").body


def test_redirects_of_walls_lead_where_the_real_ones_lead(troubled, ask):
    troubled.challenge(kind="503", times=2)
    where = ask("/qa").headers["Location"]
    assert where.endswith("/503-error.html")
    assert ask(where).status == 200
    assert ask("/qa").status == 302
    assert ask("/qa").status == 200
    troubled.challenge(kind="slider")
    assert "u_atoken=" in ask("/qa").headers["Location"]


def test_a_challenge_can_wait(troubled, ask):
    troubled.challenge(kind="403", after=2)
    assert [ask("/qa").status for _ in range(4)] == [200, 200, 403, 403]


def test_slow_pages_come_late(troubled, ask):
    troubled.slow(0.3)
    start = time.monotonic()
    ask("/qa")
    assert time.monotonic() - start >= 0.3


def test_broken_pages_are_a_share_of_all_and_asking_again_helps(troubled, ask, posts):
    troubled.broken(rate=0.5, kind="500")
    paths = [f"/qa/{post['ids']['xinli001']}" for post in posts[:60]]
    first = [ask(path).status for path in paths]
    assert 15 <= first.count(500) <= 45
    assert set(first) == {200, 500}
    again = [ask(path).status for path in paths]
    assert any(a == 500 and b == 200 for a, b in zip(first, again, strict=True))


def test_cut_pages_are_whole_answers_with_half_a_page(troubled, ask, posts):
    path = f"/qa/{posts[0]['ids']['xinli001']}"
    whole = ask(path).body
    troubled.broken(rate=1, kind="cut")
    half = ask(path)
    assert half.status == 200
    assert whole.startswith(half.body)
    assert len(half.body) < len(whole)


def test_dropped_connections_promise_more_than_they_send(troubled, ask):
    troubled.broken(rate=1, kind="drop")
    with pytest.raises(http.client.IncompleteRead):
        ask("/qa")


def test_hostile_links_stand_on_top_of_the_first_list_page(troubled, ask):
    assert b"other-host" not in ask("/qa").body
    troubled.hostile(mb=1)
    links = ask("/qa").page.css("p.title > span > a::attr(href)").getall()
    assert links[0].startswith("http://other-host.example.com/")
    assert links[1].startswith("file:")
    assert links[2].startswith("data:")
    assert b"other-host" not in ask("/qa?page=2").body
    kinds = [ask(link) for link in links[4:12]]
    assert [got.status for got in kinds] == [302, 200, 200, 200, 302, 302, 200, 200]


def test_hostile_pages_do_what_they_are_called(troubled, ask):
    troubled.hostile(mb=2)
    hostile = "/_replica/hostile/"
    there = ask(f"{hostile}loop").headers["Location"]
    back = ask(there).headers["Location"]
    assert (there, ask(back).headers["Location"]) == (f"{hostile}loop?turn=a", there)
    bomb = ask(f"{hostile}bomb")
    assert bomb.headers["Content-Encoding"] == "gzip"
    assert len(gzip.decompress(bomb.body)) > 500 * len(bomb.body)
    assert len(ask(f"{hostile}big").body) > 1_900_000
    assert b"<!ENTITY host SYSTEM" in ask(f"{hostile}entity").body
    assert ask(f"{hostile}redirect-file").headers["Location"].startswith("file:")
    assert "example.com" in ask(f"{hostile}redirect-offsite").headers["Location"]
    assert ask(f"{hostile}endless?page=7").page.css("a[rel=next]::attr(href)").get() == f"{hostile}endless?page=8"


@pytest.mark.parametrize(
    ("switch", "options"),
    [("challenge", {"kind": "x"}), ("broken", {"kind": "x"}), ("layout", {"layout": "x"}), ("slow", {"seconds": "x"})],
)
def test_a_wrong_option_is_refused(replica, switch, options):
    query = "&".join(f"{key}={value}" for key, value in options.items())
    got = get(f"{replica.url}/_replica/{switch}?{query}")
    assert got.status == 400
    assert got.json["error"]


def test_an_unknown_switch_is_told_the_known_ones(replica):
    got = get(f"{replica.url}/_replica/nonsense")
    assert got.status == 404
    assert "tick" in got.json["error"]


def test_a_tick_shows_on_the_pages():
    with Replica(posts=160, now=datetime.fromisoformat("2025-05-27T12:00:00+08:00")) as replica:
        before = get(f"{replica.url}/qa").page.css("p.title > span > a::attr(href)").get()
        told = replica.tick(days=1, posts=2, answers=3)
        after = get(f"{replica.url}/qa").page.css("p.title > span > a::attr(href)").getall()
        assert len(told["new"]) == 2
        assert after[2] == before
        assert replica.ask("state")["now"].startswith("2025-05-28")
        changed = {post["number"]: post for post in replica.posts()}[told["changed"][0]]
        page = get(f"{replica.url}/discourse/t/{changed['ids']['discourse']}.json").json
        assert page["posts_count"] == 1 + len(changed["answers"])


def test_new_posts_arrive_as_time_goes():
    with Replica(posts=20, arrivals=1200) as replica:
        deadline = time.monotonic() + 15
        while len(replica.posts()) < 23 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(replica.posts()) >= 23
        assert get(f"{replica.url}/qa").page.css("p.label > span::text").get().endswith("刚刚")


def test_there_can_be_thousands_of_posts():
    with Replica(posts=2000) as replica:
        assert replica.ask("state")["posts"] == 2000
