"""The replica over HTTP: its lists, its robots.txt, its clock, its command line.

That each post comes back whole through our spiders is tested in tests/e2e/crawlers/test_spiders.py.
"""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest
from parsel import Selector
from troubled_replica import Replica

from pipelines.settings import ROOT
from samples.replica.page import NOTE, xinli001_time
from samples.replica.world import SAMPLES, read_posts

NOW = datetime(2025, 5, 27, 4, tzinfo=UTC)


def fetch(url: str):
    return urllib.request.urlopen(url, timeout=30)


@pytest.fixture(scope="module")
def replica():
    with Replica(posts=60, now=NOW.isoformat()) as running:
        yield running


def test_a_list_has_the_size_and_the_order_of_the_site_and_says_that_it_is_invented(replica):
    with fetch(replica.url + "/qa?page=2&sort=id") as answer:
        assert answer.headers["Set-Cookie"].startswith("acw_tc="), "offered, and not to be taken"
        body = answer.read().decode()
    newest = Selector(body).css("ul.content > li > p.title a[href*='/qa/']::attr(href)").re(r"/qa/(\d+)")
    assert newest == [post["ids"]["xinli001"] for post in replica.posts()[10:20]]
    assert NOTE in body


def test_an_unknown_address_is_a_404(replica):
    for path in ("/", "/qa/1", "/qa/x", "/qa/999999999999999999999", "/elsewhere"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(replica.url + path)


def test_robots_txt_is_its_own(replica):
    replica.server.crawl_delay, replica.server.disallow = 2.5, ["/x"]
    with fetch(replica.url + "/robots.txt") as answer:
        lines = answer.read().decode().splitlines()
    assert {"Crawl-delay: 2.5", "Disallow: /user/", "Disallow: /x", "Disallow: /discourse/admin/"} <= set(lines)


def test_from_the_command_line_it_prints_its_address_and_ends_in_order():
    code = "import runpy, socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]; s.close(); "
    code += "import sys; sys.argv = ['replica', '--port', str(port)]; "
    code += "runpy.run_module('samples.replica', run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with fetch(f"{url}/robots.txt") as answer:
            assert b"Crawl-delay: 1" in answer.read()
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 0


def test_the_samples_come_as_they_are_in_their_file():
    posts = read_posts()
    assert len(posts) == len(SAMPLES.read_text(encoding="utf-8").splitlines())
    first = posts[1]
    assert (first.key, first.topic, first.posted_at) == ("p002", "成长", datetime(2025, 3, 1, 13, 50, tzinfo=UTC))
    assert (first.coming[0].recommended, first.coming[0].author_role) == (True, "professional")
    assert posts[0].notice


def test_what_is_later_than_the_clock_is_not_there():
    """At ten in the evening of 1 March p001 and p002 are there; the answers to p002 come in the next ten hours."""
    with Replica(now="2025-03-01T22:00+08:00") as replica:
        assert [(post["number"], len(post["answers"])) for post in replica.posts()] == [(2, 0), (1, 0)]
        changes = replica.tick(days=1)
        assert changes["changed"] == [2]
        assert changes["new"] == list(range(3, len(replica.posts()) + 1)) != []


def test_times_are_written_as_the_site_writes_them():
    """Now is noon in Shanghai."""
    ago = {timedelta(seconds=30): "刚刚", timedelta(minutes=34): "34分钟前", timedelta(hours=3): "3小时前"}
    ago |= {timedelta(hours=13): "昨天 23:00", timedelta(days=2): "2025-05-25"}
    assert {time: xinli001_time(NOW - time, NOW) for time in ago} == ago
