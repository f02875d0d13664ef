"""Every engine shows the same posts in its own markup, whole, and in pages that can be followed to the end."""

import re
from datetime import UTC, datetime
from urllib.parse import urljoin

import pytest
from replica_http import get

from samples.replica import xinli001
from samples.replica.page import NOTE, Asked
from samples.replica.posts import Post
from samples.replica.world import World

NEXT = {
    "xinli001": "//ul[@class='pagination']/li/a[text()='»']/@href",
    "discuz": "//div[@class='pg'][1]/a[@class='nxt']/@href",
    "douban": "//span[@class='next']/a/@href",
}

NOISE = "@class='jammer' or @class='quote' or @class='pstatus' or contains(@style, 'none')"


def _pages(url, engine):
    """The page at `url` and all that follow it."""
    pages = []
    while url:
        got = get(url)
        assert got.status == 200, url
        pages.append(got.page)
        base = got.page.css("base::attr(href)").get() or url
        following = got.page.xpath(NEXT[engine]).get()
        url = urljoin(base, following) if following else None
    return pages


def _texts(nodes):
    """The readable lines of each node: what the writer said, without what the site hides in it."""
    texts = []
    for node in nodes:
        said = node.xpath(f".//text()[not(ancestor::*[{NOISE}])]").getall()
        lines = [line.strip() for line in "\n".join(said).split("\n")]
        texts.append([line for line in lines if line])
    return texts


def _lines(text):
    return [line.strip() for line in text.split("\n") if line.strip()]


def _with_answers(posts, low, high=10_000):
    return next(post for post in posts if low <= len(post["answers"]) <= high)


@pytest.mark.parametrize("layout", ["2020", "2023"])
def test_xinli001_lists_all_posts_newest_first(replica, posts, layout):
    url = (
        f"{replica.url}/qa?page=1&type=question&object_name=last&title=&level2_tag=0&sort=id&from=houye-dh&gen={layout}"
    )
    pages = _pages(url, "xinli001")
    hrefs = [
        page.css("ul.content > li > p.title a[href*='/qa/']:not(:has(strong))::attr(href)").getall() for page in pages
    ]
    assert {len(page) for page in hrefs[:-1]} == {10}
    assert [re.search(r"/qa/(\d+)", href)[1] for page in hrefs for href in page] == [
        p["ids"]["xinli001"] for p in posts
    ]
    assert pages[1].css("ul.pagination a::attr(href)").re_first("sort=id")


@pytest.mark.parametrize("layout", ["2020", "2023"])
def test_xinli001_shows_a_question_and_all_its_answers(replica, posts, layout):
    post = _with_answers(posts, 11, 30)
    pages = _pages(f"{replica.url}/qa/{post['ids']['xinli001']}?page=1&from=houye-dh&gen={layout}", "xinli001")
    assert len(pages) == -(-len(post["answers"]) // 10)
    assert _texts(pages[0].css("div.content > p.text")) == [_lines(post["description"])]
    answers = [answer for page in pages for answer in page.css("ul.content-ans > li")]
    assert _texts([answer.css("div.text")[0] for answer in answers]) == [_lines(a["text"]) for a in post["answers"]]
    for answer, true in zip(answers, post["answers"], strict=True):
        assert answer.css("span.answer_zan::attr(data-answer-id)").get() == true["ids"]["xinli001"]
        assert answer.css(".answer_zan font::text").get() == str(true["likes"])
        link = answer.css("p.user > a::attr(href)").get()
        assert ("/expert/" in link) == (true["author_role"] == "professional")
        assert ("javascript" in link) == (true["author_role"] == "unknown")


def test_xinli001s_app_has_the_question_alone(ask, posts):
    post = posts[3]
    data = ask(f"/qaQuestion/detail?id={post['ids']['xinli001']}").json["data"]
    assert (data["title"], data["content"]) == (post["title"], post["description"])


def test_an_unknown_layout_has_nothing_of_the_known_ones(ask, posts):
    for path in ("/qa?page=1&gen=unknown", f"/qa/{posts[0]['ids']['xinli001']}?gen=unknown"):
        page = ask(path).page
        assert page.css("#app")
        assert not page.css("#left, ul, h1, .title")


def test_layouts_can_be_mixed(troubled, ask, posts):
    troubled.layout("mixed")
    kinds = [bool(ask(f"/qa/{post['ids']['xinli001']}").page.css("div.title h1")) for post in posts[:6]]
    troubled.layout("2023")
    assert sorted(kinds) == [False] * 3 + [True] * 3


@pytest.mark.parametrize("start", ["forum-2-1.html", "forum.php?mod=forumdisplay&fid=2&page=1"])
@pytest.mark.parametrize("folder", ["discuz", "discuz-gbk"])
def test_discuz_lists_a_board_by_last_message(replica, posts, folder, start):
    pages = _pages(f"{replica.url}/{folder}/{start}", "discuz")
    ids = [id_ for page in pages for id_ in page.css("tbody[id^='normalthread_']::attr(id)").re(r"\d+")]
    board = [post for post in posts if post["board"] == "2"]
    by_activity = sorted(
        board,
        key=lambda post: (max([post["posted_at"], *(a["posted_at"] for a in post["answers"])]), post["number"]),
        reverse=True,
    )
    assert ids == [post["ids"]["discuz"] for post in by_activity]
    links = pages[0].css("th a.s.xst::attr(href)").getall()
    assert all(link.startswith("thread-" if "html" in start else "forum.php?mod=viewthread") for link in links)


def test_discuz_sticks_notices_on_top_of_the_first_page(ask, posts):
    page = ask("/discuz/forum-36-1.html").page
    rows = page.css("#threadlisttableid > tbody::attr(id)").getall()
    notices = {f"stickthread_{post['ids']['discuz']}" for post in posts if post["notice"]}
    assert set(rows[: rows.index("separatorline")]) == notices
    assert not ask("/discuz/forum-36-2.html").page.css("tbody[id^='stickthread_']")


@pytest.mark.parametrize("folder", ["discuz", "discuz-gbk"])
@pytest.mark.parametrize("form", ["thread-{}-1-1.html", "forum.php?mod=viewthread&tid={}&extra=page%3D1"])
def test_discuz_shows_a_thread(replica, posts, folder, form):
    post = _with_answers([post for post in posts if any(a["hidden_in_forums"] for a in post["answers"])], 10)
    pages = _pages(f"{replica.url}/{folder}/{form.format(post['ids']['discuz'])}", "discuz")
    shown = [a for a in post["answers"] if not a["hidden_in_forums"]]
    bodies = [body for page in pages for body in page.css("td.t_f")]
    assert _texts(bodies) == [_lines(post["description"]), *(_lines(a["text"]) for a in shown)]
    assert sum(len(page.css("div.locked")) for page in pages) == len(post["answers"]) - len(shown)
    assert pages[0].css("#thread_subject::text").get() == post["title"]
    ids = [body.attrib["id"] for body in bodies[1:]]
    assert ids == [f"postmessage_{a['ids']['discuz']}" for a in shown]


def test_discuz_makes_reading_hard(ask, posts):
    """Jammers, hidden spans, quotes, notes of edits: all of them somewhere."""
    found = set()
    for post in posts[:60]:
        page = ask(f"/discuz/thread-{post['ids']['discuz']}-1-1.html").page
        names = (
            "font.jammer",
            "span[style*=none]",
            "div.quote",
            "i.pstatus",
            "div.locked",
            "em[id^=authorposton] span",
        )
        found |= {name for name in names if page.css(name)}
    assert len(found) == 6


def test_gbk_boards_say_so_and_lose_nothing(ask, posts):
    """What GBK has no place for stands as a character reference."""
    odd = [p for p in posts if any(_not_in_gbk(text) for text in (p["title"], p["description"]))]
    assert odd
    for post in odd:
        got = ask(f"/discuz-gbk/thread-{post['ids']['discuz']}-1-1.html")
        assert got.headers.get_content_charset() == "gbk"
        assert b'charset=gbk"' in got.body
        assert _texts(got.page.css("td.t_f"))[0] == _lines(post["description"])
        assert got.page.css("#thread_subject::text").get() == post["title"]


def _not_in_gbk(text):
    return text.encode("gbk", "ignore").decode("gbk") != text


def test_discuz_says_that_there_is_nothing_with_status_200(ask):
    for path in ("/discuz/thread-99999999-1-1.html", "/discuz/forum-77-1.html"):
        got = ask(path)
        assert got.status == 200
        assert got.page.css("#messagetext")


def test_discourse_lists_and_shows_topics(replica, ask, posts):
    listed, path = [], "/discourse/latest.json"
    while path:
        topics = ask(path).json["topic_list"]
        listed += topics["topics"]
        more = topics.get("more_topics_url")
        path = "/discourse" + more.replace("?", ".json?", 1) if more else None
    assert {str(topic["id"]) for topic in listed} == {post["ids"]["discourse"] for post in posts}
    assert len(listed) == len(posts)
    rest = [topic for topic in listed if not topic["pinned"]]
    assert [t["last_posted_at"] for t in rest] == sorted((t["last_posted_at"] for t in rest), reverse=True)

    post = _with_answers(posts, 21, 60)
    topic = ask(f"/discourse/t/{post['ids']['discourse']}.json").json
    stream = topic["post_stream"]
    assert len(stream["posts"]) == 20
    assert len(stream["stream"]) == 1 + len(post["answers"])
    rest = "&".join(f"post_ids[]={number}" for number in stream["stream"][20:40])
    more = ask(f"/discourse/t/{post['ids']['discourse']}/posts.json?{rest}").json["post_stream"]["posts"]
    shown = [*stream["posts"], *more]
    assert [p["post_number"] for p in shown] == list(range(1, len(shown) + 1))
    assert [str(p["id"]) for p in shown[1:]] == [a["ids"]["discourse"] for a in post["answers"][: len(shown) - 1]]


def test_nodebb_lists_and_shows_topics(ask, posts):
    listed, page = [], 1
    while page:
        answer = ask(f"/nodebb/api/category/2/xinli?page={page}").json
        listed += answer["topics"]
        following = answer["pagination"]["next"]
        page = following["page"] if following["active"] else None
    assert sorted(str(topic["tid"]) for topic in listed) == sorted(post["ids"]["nodebb"] for post in posts)
    post = _with_answers(posts, 20, 60)
    answer = ask(f"/nodebb/api/topic/{post['ids']['nodebb']}/topic?page=2").json
    assert [str(p["pid"]) for p in answer["posts"]] == [a["ids"]["nodebb"] for a in post["answers"][19:39]]
    assert ask(f"/nodebb/api/topic/{post['ids']['nodebb']}?page=99").status == 404


def test_douban_lists_and_shows_topics(replica, posts):
    pages = _pages(f"{replica.url}/douban/group/example/discussion?start=0", "douban")
    links = [
        href for page in pages for href in page.css("table.olt tr:not(.th) td.title a[title]::attr(href)").getall()
    ]
    assert sorted(re.findall(r"topic/(\d+)", " ".join(links))) == sorted(post["ids"]["douban"] for post in posts)
    assert all(re.fullmatch(r"\d\d-\d\d \d\d:\d\d", when) for when in pages[0].css("td.time::text").getall())
    titles = pages[0].css("td.title a[title]")
    assert any(link.css("::text").get() != link.attrib["title"] for link in titles)

    post = _with_answers(posts, 101)
    pages = _pages(f"{replica.url}/douban/group/topic/{post['ids']['douban']}/", "douban")
    assert len(pages) == 2
    comments = [comment for page in pages for comment in page.css("ul#comments > li[data-cid]")]
    assert [comment.attrib["data-cid"] for comment in comments] == [a["ids"]["douban"] for a in post["answers"]]
    assert _texts([comment.css("p.reply-content")[0] for comment in comments]) == [
        _lines(a["text"]) for a in post["answers"]
    ]


def test_every_page_says_that_it_is_invented(ask, posts):
    ids = posts[0]["ids"]
    for path in ("/qa", f"/qa/{ids['xinli001']}", "/discuz/forum-2-1.html", "/douban/group/topic/" + ids["douban"]):
        assert NOTE in ask(path).body.decode()
    for path in ("/discourse/latest.json", f"/nodebb/api/topic/{ids['nodebb']}"):
        assert ask(path).json["replica"] == "everything here is invented"


@pytest.mark.parametrize(
    "path",
    ["/", "/qa/1", "/qa/x", "/qa/999999999999999999999", "/discuz/index.php", "/discourse/t/1.json", "/elsewhere",
     "/nodebb/api/topic/x", "/douban/group/topic/5/", "/discourse/c/x/999.json"],
)  # fmt: skip
def test_what_there_is_not_is_a_404(ask, path):
    assert ask(path).status == 404


def test_texts_are_escaped():
    now = datetime(2025, 5, 27, tzinfo=UTC)
    evil = '<script>alert("&")</script>\'"'
    world = World([Post("x", evil, evil, evil, (evil,), evil, now)], now)
    page = xinli001.respond(world, Asked(f"/qa/{xinli001.FIRST_QID + 1}", {}, "", "http://127.0.0.1", now), "2023")
    assert page is not None
    assert b"<script>" not in page.body
