"""Every engine of the replica shows the same posts, in lists and pages of the sites' sizes, with the sites' noise.

That each post comes back whole through our spiders is tested in tests/e2e/crawlers/test_spiders.py.
"""

import os
import re
import signal
import subprocess
import sys
import urllib.request

from pipelines.settings import ROOT
from samples.replica.page import NOTE


def _with_answers(posts, low, high=10_000):
    return next(post for post in posts if low <= len(post["answers"]) <= high)


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
    topics = fetch("/discourse/latest.json").json["topic_list"]
    assert (len(topics["topics"]), topics["more_topics_url"][-6:]) == (30, "page=1")
    category = fetch("/nodebb/api/category/2/xinli?page=2").json
    assert (len(category["topics"]), category["pagination"]["next"]) == (20, {"page": 3, "active": True})
    titles = fetch("/douban/group/example/discussion?start=0").page.css("td.title a[title]")
    assert len(titles) == 25
    assert any(link.css("::text").get() != link.attrib["title"] for link in titles), "cut"


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


def test_further_answers_stand_on_further_pages(posts, fetch):
    post = _with_answers(posts, 21, 60)
    path = f"/discourse/t/{post['ids']['discourse']}"
    stream = fetch(f"{path}.json").json["post_stream"]
    assert (len(stream["posts"]), len(stream["stream"])) == (20, 1 + len(post["answers"]))
    query = "&".join(f"post_ids[]={number}" for number in stream["stream"][20:22])
    more = fetch(f"{path}/posts.json?{query}").json["post_stream"]["posts"]
    assert [one["id"] for one in more] == stream["stream"][20:22]
    page = fetch(f"/nodebb/api/topic/{post['ids']['nodebb']}/topic?page=2").json
    assert [str(one["pid"]) for one in page["posts"]] == [a["ids"]["nodebb"] for a in post["answers"][19:39]]
    crowded = _with_answers(posts, 101)
    comments = fetch(f"/douban/group/topic/{crowded['ids']['douban']}/?start=100").page.css("li[data-cid]")
    assert [each.attrib["data-cid"] for each in comments] == [a["ids"]["douban"] for a in crowded["answers"][100:]]


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
