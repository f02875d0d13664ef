"""Every engine of the replica shows the same posts, in lists and pages of the sites' sizes, with the sites' noise.

That each post comes back whole through our spiders is tested in tests/e2e/crawlers/test_spiders.py.
"""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from parsel import Selector
from troubled_replica import Replica

from pipelines.settings import ROOT
from samples.replica.page import NOTE


@pytest.fixture(scope="module")
def replica():
    """A replica of 640 posts whose clock stands still."""
    with Replica(posts=640, now="2025-05-27T12:00:00+08:00") as running:
        yield running


@pytest.fixture(scope="module")
def posts(replica):
    """What the replica has, newest first."""
    return replica.posts()


@pytest.fixture
def fetch(replica):
    def get(path):
        try:
            response = urllib.request.urlopen(replica.url + path, timeout=30)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            text = response.read().decode(response.headers.get_content_charset() or "utf-8")
        return SimpleNamespace(status=response.status, headers=response.headers, text=text, page=Selector(text))

    return get


def test_lists_have_the_size_and_the_order_of_the_site(posts, fetch):
    def activity(post):
        return max([post["posted_at"], *(answer["posted_at"] for answer in post["answers"])]), post["number"]

    assert fetch("/qa").headers["Set-Cookie"].startswith("acw_tc="), "offered, and not to be taken"
    newest = fetch("/qa?page=2&sort=id").page.css("ul.content > li > p.title a[href*='/qa/']::attr(href)")
    assert newest.re(r"/qa/(\d+)") == [post["ids"]["xinli001"] for post in posts[10:20]]
    active = [post["ids"]["discuz"] for post in sorted(posts, key=activity, reverse=True) if post["board"] == "2"]
    for path, links in (("forum-2-1.html", "thread-"), ("forum.php?mod=forumdisplay&fid=2&page=1", "forum.php?mod=")):
        page = fetch(f"/discuz/{path}").page
        assert page.css("tbody[id^='normalthread_']::attr(id)").re(r"\d+") == active[:20]
        assert all(link.startswith(links) for link in page.css("th a.s.xst::attr(href)").getall())
    topics = json.loads(fetch("/discourse/latest.json").text)["topic_list"]
    assert (len(topics["topics"]), topics["more_topics_url"][-6:]) == (30, "page=1")
    category = json.loads(fetch("/nodebb/api/category/2/xinli?page=2").text)
    assert (len(category["topics"]), category["pagination"]["next"]) == (20, {"page": 3, "active": True})
    titles = fetch("/douban/group/example/discussion?start=0").page.css("td.title a[title]")
    assert len(titles) == 25
    assert any(link.css("::text").get() != link.attrib["title"] for link in titles), "cut"


def test_discuz_makes_reading_hard(posts, fetch):
    """Jammers, hidden spans, quotes, notes of edits: all of them somewhere; what GBK lacks is a character reference."""
    missing = {"font.jammer", "span[style*=none]", "div.quote", "i.pstatus", "div.locked", "em[id^=authorposton] span"}
    for post in posts[:60]:
        page = fetch(f"/discuz/thread-{post['ids']['discuz']}-1-1.html").page
        missing -= {css for css in missing if page.css(css)}
    assert missing == set()
    odd = next(post for post in posts if post["title"].encode("gbk", "ignore").decode("gbk") != post["title"])
    response = fetch(f"/discuz-gbk/thread-{odd['ids']['discuz']}-1-1.html")
    assert response.headers.get_content_charset() == "gbk"
    assert response.page.css("#thread_subject::text").get() == odd["title"]


def test_every_page_says_that_it_is_invented(posts, fetch):
    ids = posts[0]["ids"]
    for path in ("/qa", f"/qa/{ids['xinli001']}", "/discuz/forum-2-1.html", "/douban/group/topic/" + ids["douban"]):
        assert NOTE in fetch(path).text
    for path in ("/discourse/latest.json", f"/nodebb/api/topic/{ids['nodebb']}"):
        assert json.loads(fetch(path).text)["replica"] == "everything here is invented"


def test_an_unknown_address_is_a_404(fetch):
    paths = ["/", "/qa/1", "/qa/x", "/qa/999999999999999999999", "/discuz/index.php", "/discourse/t/1.json",
             "/elsewhere", "/nodebb/api/topic/x", "/douban/group/topic/5/", "/discourse/c/x/999.json"]  # fmt: skip
    assert {path: fetch(path).status for path in paths} == dict.fromkeys(paths, 404)
    for path in ("/discuz/thread-99999999-1-1.html", "/discuz/forum-77-1.html"):
        response = fetch(path)
        assert (response.status, len(response.page.css("#messagetext"))) == (200, 1), "as Discuz says it"


def test_from_the_command_line_it_prints_its_address_and_ends_in_order():
    code = "import runpy, socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]; s.close(); "
    code += "import sys; sys.argv = ['replica', '--port', str(port)]; "
    code += "runpy.run_module('samples.replica', run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        with urllib.request.urlopen(f"{url}/robots.txt", timeout=30) as answer:
            assert b"Crawl-delay: 1" in answer.read()
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 0
