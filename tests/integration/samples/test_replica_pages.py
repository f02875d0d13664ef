"""Every engine of the replica shows the same posts, in lists and pages of the sites' sizes, with the sites' noise.

That each post comes back whole through our spiders is tested in tests/e2e/crawlers/test_spiders.py.
"""

import os
import re
import signal
import subprocess
import sys

import pytest
from replica_http import get

from pipelines.settings import ROOT
from samples.replica.page import NOTE


def _with_answers(posts, low, high=10_000):
    return next(post for post in posts if low <= len(post["answers"]) <= high)


@pytest.mark.parametrize("layout", ["2020", "2023"])
def test_xinli001_lists_ten_a_page_newest_first(replica, posts, fetch, layout):
    replica.layout(layout)
    for number in (1, 2):
        page = fetch(f"/qa?page={number}&sort=id").page
        hrefs = page.css("ul.content > li > p.title a[href*='/qa/']:not(:has(strong))::attr(href)").getall()
        shown = posts[10 * (number - 1) : 10 * number]
        assert [re.search(r"/qa/(\d+)", href)[1] for href in hrefs] == [post["ids"]["xinli001"] for post in shown]
        assert page.css("ul.pagination a::attr(href)").re_first("sort=id")


@pytest.mark.parametrize("start", ["forum-2-1.html", "forum.php?mod=forumdisplay&fid=2&page=1"])
def test_discuz_lists_a_board_by_last_message(posts, fetch, start):
    def activity(post):
        return max([post["posted_at"], *(answer["posted_at"] for answer in post["answers"])]), post["number"]

    page = fetch(f"/discuz/{start}").page
    board = sorted((post for post in posts if post["board"] == "2"), key=activity, reverse=True)
    ids = page.css("tbody[id^='normalthread_']::attr(id)").re(r"\d+")
    assert ids == [post["ids"]["discuz"] for post in board[:20]]
    links = page.css("th a.s.xst::attr(href)").getall()
    assert all(link.startswith("thread-" if "html" in start else "forum.php?mod=viewthread") for link in links)


def test_discuz_makes_reading_hard(posts, fetch):
    """Jammers, hidden spans, quotes, notes of edits: all of them somewhere."""
    noise = {"font.jammer", "span[style*=none]", "div.quote", "i.pstatus", "div.locked", "em[id^=authorposton] span"}
    missing = set(noise)
    for post in posts[:60]:
        page = fetch(f"/discuz/thread-{post['ids']['discuz']}-1-1.html").page
        missing -= {css for css in missing if page.css(css)}
    assert missing == set()


def test_gbk_boards_say_so_and_lose_nothing(posts, fetch):
    """What GBK has no place for stands as a character reference."""
    odd = [post for post in posts if post["title"].encode("gbk", "ignore").decode("gbk") != post["title"]]
    assert odd
    response = fetch(f"/discuz-gbk/thread-{odd[0]['ids']['discuz']}-1-1.html")
    assert response.headers.get_content_charset() == "gbk"
    assert b'charset=gbk"' in response.body
    assert response.page.css("#thread_subject::text").get() == odd[0]["title"]


def test_discuz_says_that_there_is_nothing_with_status_200(fetch):
    for path in ("/discuz/thread-99999999-1-1.html", "/discuz/forum-77-1.html"):
        response = fetch(path)
        assert response.status == 200
        assert response.page.css("#messagetext")


def test_discourse_shows_twenty_posts_and_the_others_by_id(posts, fetch):
    topics = fetch("/discourse/latest.json").json["topic_list"]
    assert len(topics["topics"]) == 30
    assert topics["more_topics_url"].endswith("page=1")
    post = _with_answers(posts, 21, 60)
    path = f"/discourse/t/{post['ids']['discourse']}"
    stream = fetch(f"{path}.json").json["post_stream"]
    assert len(stream["posts"]) == 20
    assert len(stream["stream"]) == 1 + len(post["answers"])
    query = "&".join(f"post_ids[]={number}" for number in stream["stream"][20:22])
    more = fetch(f"{path}/posts.json?{query}").json["post_stream"]["posts"]
    assert [one["id"] for one in more] == stream["stream"][20:22]


def test_nodebb_shows_twenty_a_page(posts, fetch):
    answer = fetch("/nodebb/api/category/2/xinli?page=2").json
    assert len(answer["topics"]) == 20
    assert answer["pagination"]["next"] == {"page": 3, "active": True}
    post = _with_answers(posts, 20, 60)
    answer = fetch(f"/nodebb/api/topic/{post['ids']['nodebb']}/topic?page=2").json
    assert [str(one["pid"]) for one in answer["posts"]] == [a["ids"]["nodebb"] for a in post["answers"][19:39]]


def test_douban_cuts_titles_and_shows_a_hundred_comments_a_page(posts, fetch):
    page = fetch("/douban/group/example/discussion?start=0").page
    assert all(re.fullmatch(r"\d\d-\d\d \d\d:\d\d", when) for when in page.css("td.time::text").getall())
    titles = page.css("td.title a[title]")
    assert len(titles) == 25
    assert any(link.css("::text").get() != link.attrib["title"] for link in titles)
    post = _with_answers(posts, 101)
    page = fetch(f"/douban/group/topic/{post['ids']['douban']}/?start=100").page
    comments = page.css("ul#comments > li[data-cid]::attr(data-cid)").getall()
    assert comments == [answer["ids"]["douban"] for answer in post["answers"][100:]]


def test_every_page_says_that_it_is_invented(posts, fetch):
    ids = posts[0]["ids"]
    for path in ("/qa", f"/qa/{ids['xinli001']}", "/discuz/forum-2-1.html", "/douban/group/topic/" + ids["douban"]):
        assert NOTE in fetch(path).body.decode()
    for path in ("/discourse/latest.json", f"/nodebb/api/topic/{ids['nodebb']}"):
        assert fetch(path).json["replica"] == "everything here is invented"


def test_an_unknown_address_is_a_404(fetch):
    paths = ["/", "/qa/1", "/qa/x", "/qa/999999999999999999999", "/discuz/index.php", "/discourse/t/1.json",
             "/elsewhere", "/nodebb/api/topic/x", "/douban/group/topic/5/", "/discourse/c/x/999.json"]  # fmt: skip
    assert {path: fetch(path).status for path in paths} == dict.fromkeys(paths, 404)


def test_robots_txt_is_its_own(replica, fetch):
    replica.robots(crawl_delay=2.5, disallow="/qa/100841601,/x")
    lines = fetch("/robots.txt").body.decode().splitlines()
    replica.robots()
    assert {"Crawl-delay: 2.5", "Disallow: /user/", "Disallow: /x", "Disallow: /discourse/admin/"} <= set(lines)
    assert "Crawl-delay" not in fetch("/robots.txt").body.decode()


def test_from_the_command_line_it_prints_its_address_and_ends_in_order():
    code = "import runpy, socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]; s.close(); "
    code += "import sys; sys.argv = ['replica', '--port', str(port), '--posts', '3']; "
    code += "runpy.run_module('samples.replica', run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
        assert "Crawl-delay: 1" in get(f"{url}/robots.txt").body.decode()
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 0
