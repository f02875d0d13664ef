"""What a crawl could not get, or could not keep: it says so, it stops in time, and the next one gets it."""

import json
import subprocess

import pytest
from crawl_runs import ROOT, command, crawl, environment, one_day, post_ids, rows_of, seen, site_file
from saved_pages import page_named
from tiny_site import HTML, Page, TinySite
from xinli_pages import listed, long_post, question, site_of

from crawlers.pages.xinli001 import LATEST

IDS = range(100841600, 100841620)
JSON = {"Content-Type": "application/json"}
FAILED: Page = (500, HTML, b"failed")


def changed(page: Page, old: str, new: str) -> Page:
    """A page with a part replaced, where it stands last."""
    status, headers, body = page
    before, part, after = body.rpartition(old.encode())
    assert part
    return status, headers, before + new.encode() + after


# Answers.


def test_a_post_that_states_answers_and_holds_none_is_an_error_and_no_row(tmp_path):
    pages = {"/qa": listed((IDS[0], 3), (IDS[1], 1))}
    pages |= {f"/qa/{IDS[0]}": question(IDS[0], states=3), f"/qa/{IDS[1]}": question(IDS[1], n_answers=1)}
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url)
        assert post_ids(site.requested).count(str(IDS[0])) == 2  # once more, past the cache
    assert set(run.by_id) == {str(IDS[1])}
    assert run.summary["errors"] == {"page": 1}
    assert run.summary["posts"] == {"listed": 2, "fetched": 1, "lost": 1}
    assert run.summary["answers"] == {"stated": 1, "found": 1, "missing": 0}
    assert "the page states answers and holds none" in run.log
    assert len(list((tmp_path / "unknown").iterdir())) == 1
    assert seen(tmp_path)[str(IDS[0])]["unread"] is True


def test_answers_on_the_second_page_alone_and_an_image_alone_are_no_error(tmp_path):
    """Only a post of whose answers not one is there is an error."""
    pages = {"/qa": listed((IDS[0], 9), (IDS[1], 1))}
    pages[f"/qa/{IDS[1]}"] = changed(question(IDS[1], n_answers=1), "回答0</div>", "<img src='x'></div>")
    pages[f"/qa/{IDS[0]}"] = question(IDS[0], more=True, states=9)
    pages[f"/qa/{IDS[0]}?page=2"] = question(IDS[0], n_answers=2, page=2)
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url)
    assert {i: len(row["answers"]) for i, row in run.by_id.items()} == {str(IDS[0]): 2, str(IDS[1]): 0}
    assert run.summary["answers"] == {"stated": 10, "found": 3, "missing": 7}
    assert run.summary["errors"] == {}


def test_pages_of_answers_without_a_pager_are_counted(tmp_path):
    with TinySite(long_post(IDS[0], 40, n_pages=4)) as site:
        run = one_day(tmp_path, site.url)
    assert [len(row["answers"]) for row in run.rows] == [40]
    assert run.summary["answers"] == run.summary["answers_of_long_posts"] == {"stated": 40, "found": 40, "missing": 0}


@pytest.mark.parametrize("beyond", ["the first page once more", "no such page"])
def test_a_crawl_that_brings_10_of_195_answers_fails_and_reads_them_once_they_can_be_read(tmp_path, beyond):
    pages = long_post(IDS[0], 195, n_pages=1)
    if beyond == "no such page":
        pages[f"/qa/{IDS[0]}?page=2"] = (404, HTML, b"nothing here")
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url, code=1)
        assert run.summary["finish_reason"] == "answers_missing"
        assert run.summary["answers"] == {"stated": 195, "found": 10, "missing": 185}
        assert run.summary["nothing_new"] is False
        assert "185 of the 195 answers that pages state are missing" in run.log
        assert not (tmp_path / "stats.json").exists()
        assert len(site.requested) == 4  # robots.txt, the list, the post, and what is beyond it
        assert one_day(tmp_path, site.url, code=1).summary["finish_reason"] == "answers_missing", "nor the second time"
        pages |= long_post(IDS[0], 195, n_pages=19)
        again = one_day(tmp_path, site.url)
    assert len(again.by_id[str(IDS[0])]["answers"]) == 190
    assert again.summary["answers"] == {"stated": 195, "found": 190, "missing": 5}, "few are no sign"


def test_a_lost_pager_is_seen_among_many_posts_of_few_answers_and_its_site_may_be_allowed_it(tmp_path):
    """Of 79 answers 12 are missing, less than a fifth: all of them of the one post that has more than a page."""
    others = {f"/qa/{i}": question(i, n_answers=3) for i in IDS[1:]}
    pages = long_post(IDS[0], 22, n_pages=1) | others | {"/qa": listed(*((i, 3) for i in IDS))}
    with TinySite(pages) as site:
        run = one_day(tmp_path / "strict", site.url, code=1)
        assert run.summary["answers"] == {"stated": 79, "found": 67, "missing": 12}
        assert run.summary["answers_of_long_posts"] == {"stated": 22, "found": 10, "missing": 12}
        assert one_day(tmp_path / "lax", site.url, "--missing-share", "0.6").summary["items"] == 20


AT = "2025-05-20T01:00:00.000Z"


def discourse(posts_count: int, *posts: int, topic: int = 5, words: str = "文字") -> Page:
    """A topic of which these numbers are shown; `words`: those of the last."""
    stream = [{"id": 50 + n, "post_number": n, "user_id": 7, "created_at": AT, "cooked": "<p>文字</p>"} for n in posts]
    stream[-1]["cooked"] = f"<p>{words}</p>"
    page = {"id": topic, "title": "题目", "posts_count": posts_count}
    page["post_stream"] = {"posts": stream, "stream": [post["id"] for post in stream]}
    return 200, JSON, json.dumps(page).encode()


def topics(*ids: int, more: str | None = None) -> Page:
    rows = [{"id": i, "posts_count": 3, "highest_post_number": 3, "created_at": AT, "last_posted_at": AT} for i in ids]
    return 200, JSON, json.dumps({"topic_list": {"topics": rows, "more_topics_url": more}}).encode()


DEEP = "<div>" * 20_000 + "说了很多" + "</div>" * 20_000


@pytest.mark.drill("site")
def test_a_question_whose_words_or_answers_are_missing_is_unread_and_an_answer_costs_itself_alone(tmp_path):
    """A parser that leaves away what is too deep or behind the end: what is left would look like the whole text."""
    pages = {"/latest.json": topics(5, 6, 7, 8), "/t/7.json": discourse(3, 1, topic=7)}
    pages["/t/5.json"] = discourse(1, 1, topic=5, words=DEEP)
    pages["/t/6.json"] = discourse(2, 1, 2, topic=6, words="前</p></html><p>后")
    pages["/t/8.json"] = discourse(3, 1, 2, topic=8)
    with TinySite(pages) as site:
        run = one_day(tmp_path / "job", site.url, source=site_file(tmp_path, "discourse"), code=None)
    assert {i: len(row["answers"]) for i, row in run.by_id.items()} == {"6": 0, "8": 1}
    assert run.summary["errors"] == {"answer": 1, "page": 2}
    assert run.summary["answers"] == {"stated": 3, "found": 1, "missing": 2}
    assert run.summary["posts"] == {"listed": 4, "fetched": 2, "lost": 2}
    left = seen(tmp_path / "job")
    assert {i for i, line in left.items() if line.get("unread")} == {*"57"}
    assert left["6"]["fingerprint"] is None, "the next crawl reads it again, with a better reader or none"
    assert "说了很多" not in run.log


def test_markup_that_cannot_be_read_costs_the_answer_that_it_was_pasted_into(tmp_path):
    page = page_named("xinli001_2020_question")
    whole = [answer["source_id"] for answer in page.gives["answers"]]
    body = (
        page.source()
        .replace("先开口的人", "<h2>先开口</h2></div></li></ul>的人")
        .replace("我也和室友", "<!-- 我也和室友")
    )
    number = page.gives["question"]["source_id"]
    pages = {"/qa": listed((int(number), 12)), f"/qa/{number}": (200, HTML, body.encode())}
    with TinySite(pages) as site:
        run = crawl(tmp_path, site.url, "2025-05-20", "2025-05-20", now="2025-05-21T12:00+08:00")
    [row] = run.rows
    ids = [answer["answer_id"].rpartition("/")[2] for answer in row["answers"]]
    assert ids == whole[:-1]
    assert row["answers"][1]["text"].startswith("先开口\n的人，不等于输了的人。")
    assert run.summary["errors"] == {"answer": 1}
    assert len(list((tmp_path / "unknown").iterdir())) == 1


def test_of_a_topic_of_douban_the_list_states_the_comments(tmp_path):
    def row(i: int) -> str:
        cells = "<td class='r-count'>2</td><td class='time'>05-20 10:00</td>"
        return f"<tr><td class='title'><a href='/group/topic/{i}/'>题目</a></td>{cells}</tr>"

    topic = "<h1>题目</h1><div id='topic-content'><span class='create-time'>2025-05-20 09:00:00</span>"
    topic += "<div class='topic-richtext'><p>正文</p></div><i></i></div>"
    comments = "<ul id='comments'><li data-cid='71'><p class='reply-content'>评论</p><i></i></li></ul>"
    inner = {"/group/tree/discussion": f"<table class='olt'>{row(5)}{row(6)}</table>"}
    inner |= {"/group/topic/5/": f"{topic}<i></i>", "/group/topic/6/": f"{topic}{comments}<i></i>"}
    pages = {path: (200, HTML, f"<html><body>{page}</body></html>".encode()) for path, page in inner.items()}
    with TinySite(pages) as tiny:
        site = site_file(tmp_path, "douban_group", boards='[{ id = "tree" }]')
        run = one_day(tmp_path / "job", tiny.url, source=site)
    assert run.summary["errors"] == {"page": 1}
    assert set(run.by_id) == {"6"}


# Failures of the server.


def test_a_crawl_that_lost_many_posts_is_not_done_and_the_same_command_goes_on(tmp_path):
    failing = set(IDS[::3])
    assert len(failing) == 7  # of twenty, and never five in a row
    with TinySite(pages := site_of(IDS, dict.fromkeys(failing, FAILED))) as site:
        run = one_day(tmp_path, site.url, code=1)
        assert run.summary["finish_reason"] == "too_many_lost"
        assert run.summary["posts"] == {"listed": 20, "fetched": 13, "lost": 7}
        assert run.summary["nothing_new"] is False
        assert not (tmp_path / "stats.json").exists()
        pages |= {f"/qa/{i}": question(i) for i in failing}
        site.requested.clear()
        again = one_day(tmp_path, site.url)
        assert set(post_ids(site.requested)) == {str(i) for i in failing}
    assert again.summary["finish_reason"] == "finished"
    assert set(again.by_id) == {str(i) for i in IDS}


def test_busy_is_a_failure_of_the_server_and_a_legal_refusal_is_not(tmp_path):
    """What the server failed to give stays new; what it refused is remembered as unread, until it fails to come."""
    statuses = dict(zip(IDS, (503, 408, 451), strict=False))
    with TinySite(pages := site_of(IDS, {i: (status, HTML, b"x") for i, status in statuses.items()})) as site:
        run = one_day(tmp_path / "0", site.url)
        assert run.summary["errors"] == {f"http_{status}": 1 for status in statuses.values()}
        assert [i for i, line in seen(run.job).items() if line.get("unread")] == [str(IDS[2])]
        pages |= {f"/qa/{IDS[0]}": question(IDS[0]), f"/qa/{IDS[1]}": question(IDS[1]), f"/qa/{IDS[2]}": FAILED}
        second = one_day(tmp_path / "1", site.url, "--seen", str(run.job / "seen.jsonl"))
    assert second.summary["posts"] == {"listed": 20, "fetched": 2, "unchanged": 17, "lost": 1}
    assert second.summary["errors"] == {"http_500": 1}
    assert second.summary["nothing_new"] is False


def test_a_server_that_fails_for_every_post_is_not_requested_all_of_them(tmp_path):
    with TinySite(site_of(IDS, dict.fromkeys(IDS, FAILED))) as site:
        run = one_day(tmp_path, site.url, code=1)
        assert len(set(post_ids(site.requested))) <= 6  # five, and what was under way
    assert run.summary["finish_reason"] == "too_many_lost"
    assert run.summary["posts"] == {"listed": 20, "lost": 5, "left": 15}


# Lists.


def numbers(path: str, page: int) -> str:
    links = (f"<a href='{path}?page={n}'>{n}</a>" for n in (1, 2, 3) if n != page)
    return f"<div class='pagenavi'><b>{page}</b>{''.join(links)}</div>"


def labelled(path: str, page: int) -> str:
    """The links of the pages are a script's, but that to the next."""
    following = f"<a href='{path}?page={page + 1}'>下一页 ›</a>" if page < 3 else "<a class='disabled'>下一页 ›</a>"
    return f"<div class='paging'><a href='javascript:go(1)'>1</a>{following}</div>"


PAGERS = {
    "rel": lambda path, page: f"<link rel='next' href='{path}?page={page + 1}'>" if page < 3 else "",
    "label": labelled,
    "numbers": numbers,
    "none": lambda path, page: "",
    "filled by a script": lambda path, page: "<ul class='pagination'></ul>",
}


COUNTED = ("none", "filled by a script")


def three_pages(pager: str, ids: range) -> dict[str, Page]:
    pages = {f"/qa/{i}": question(i) for i in ids}
    for n in (1, 2, 3):
        address = "/qa" if n == 1 else LATEST.replace("page=1", f"page={n}") if pager in COUNTED else f"/qa?page={n}"
        pages[address] = listed(*((i, 0) for i in ids[10 * n - 10 : 10 * n]), pager=PAGERS[pager]("/qa", n))
    return pages


@pytest.mark.parametrize("pager", PAGERS)
def test_every_post_of_a_list_comes_whatever_its_pager_is(tmp_path, pager):
    ids = range(100841600, 100841630)
    with TinySite(three_pages(pager, ids)) as site:
        run = one_day(tmp_path, site.url)
        assert sum("/qa?" in path for path in site.requested) == 4, "none of these says which is the last"
    assert set(run.by_id) == {str(i) for i in ids}
    assert run.summary["posts"]["fetched"] == 30


@pytest.mark.parametrize("beyond", [(404, HTML, b"nothing here"), listed(pager="")], ids=["no page", "empty"])
def test_a_list_without_a_pager_ends_where_there_is_no_further_page(tmp_path, beyond):
    pages = three_pages("none", range(100841600, 100841630))
    pages[LATEST.replace("page=1", "page=4")] = beyond
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url)
    assert (run.summary["items"], run.summary["errors"], run.summary["list_ended_first"]) == (30, {}, True)


def test_a_pager_that_a_script_turns_is_an_error_and_no_end(tmp_path):
    pager = "<ul class='pagination'><li><a href='javascript:go(2)'>下一页</a></li></ul>"
    with TinySite({"/qa": listed((IDS[0], 0), pager=pager)}) as site:
        assert one_day(tmp_path, site.url, code=1).summary["finish_reason"] == "list_failed"


def test_a_board_that_states_195_threads_and_shows_10_makes_the_crawl_fail(tmp_path):
    """NodeBB states how many topics a category has; here nothing leads to its second page."""
    topics = [{"tid": i, "postcount": 1, "timestampISO": AT, "lastposttimeISO": AT} for i in range(1, 11)]
    pages = {"/api/category/2": (200, JSON, json.dumps({"topics": topics, "topic_count": 195}).encode())}
    for i in range(1, 11):
        post = {"pid": i, "uid": 7, "content": "<p>文字</p>", "timestampISO": AT}
        topic = {"tid": i, "mainPid": i, "title": "题目", "postcount": 1, "posts": [post]}
        pages[f"/api/topic/{i}"] = (200, JSON, json.dumps(topic).encode())
    with TinySite(pages) as site:
        forum = site_file(tmp_path, "nodebb", boards='[{ id = "2" }]')
        run = one_day(tmp_path / "job", site.url, source=forum, code=1)
        assert run.summary["finish_reason"] == "posts_missing"
        assert run.summary["list_posts"] == {"stated": 195, "found": 10, "missing": 185}
        pages["/api/category/2"] = (200, JSON, json.dumps({"topics": topics, "topic_count": 12}).encode())
        assert len(one_day(tmp_path / "other", site.url, source=forum).rows) == 10


def leading_on(page: Page, address: str) -> Page:
    return changed(page, "</body>", f"<ul class='pagination'><a href='{address}'>»</a></ul></body>")


def test_a_linked_page_of_a_list_that_is_empty_stops_the_crawl(tmp_path):
    pages = {"/qa": leading_on(listed((IDS[0], 0)), "/qa?page=2"), "/qa?page=2": listed()}
    pages[f"/qa/{IDS[0]}"] = question(IDS[0])
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url, code=1)
        assert site.requested.count("/qa?page=2") == 2
        assert (run.summary["finish_reason"], run.summary["blocked"]) == ("blocked", "emptiness")
        pages |= {"/qa?page=2": listed((IDS[1], 0)), f"/qa/{IDS[1]}": question(IDS[1])}
        assert set(one_day(tmp_path, site.url).by_id) == {str(i) for i in IDS[:2]}


def test_an_empty_page_behind_the_window_ends_the_list(tmp_path):
    ending = changed(listed((IDS[1], 0), (IDS[0], 0)), "2025-05-20", "2025-05-19")
    pages = {"/qa": leading_on(ending, "/qa?page=2")}
    pages |= {"/qa?page=2": listed(), f"/qa/{IDS[1]}": question(IDS[1])}
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url)
        assert "/qa?page=2" in site.requested
    assert set(run.by_id) == {str(IDS[1])}


def test_the_last_page_of_a_list_in_json_may_be_empty(tmp_path):
    pages = {"/latest.json": topics(5, more="/latest?page=1"), "/latest.json?page=1": topics()}
    pages["/t/5.json"] = discourse(3, 1, 2, 3)
    with TinySite(pages) as site:
        run = one_day(tmp_path / "job", site.url, source=site_file(tmp_path, "discourse"))
        assert "/latest.json?page=1" in site.requested
    assert set(run.by_id) == {"5"}


def test_a_page_of_a_list_whose_links_all_lead_elsewhere_makes_the_crawl_fail(tmp_path):
    pages = {"/qa": leading_on(listed((IDS[0], 0)), "/qa?page=2"), f"/qa/{IDS[0]}": question(IDS[0])}
    pages["/qa?page=2"] = listed(links=("http://192.0.2.1/qa/1", "http://192.0.2.1/qa/2"))
    with TinySite(pages) as site:
        run = one_day(tmp_path, site.url, code=1)
    assert run.summary["finish_reason"] == "list_failed"
    assert run.summary["errors"] == {"page": 1}


# Storage.


@pytest.mark.drill("disk")
def test_a_crawl_that_can_write_no_more_pages_stops_at_once_and_goes_on_once_there_is_room(clean_replica, tmp_path):
    """No file may grow beyond a bound, which is what a full disk is to the store of pages, the largest of them."""
    arguments = command(tmp_path, clean_replica.url, "--from", "2025-01-01", "--until", "2025-05-20")
    ran = subprocess.run(
        ["bash", "-c", 'ulimit -f 48; exec "$@"', "crawl", *arguments],
        cwd=ROOT, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 1
    summary = json.loads(ran.stdout)
    assert (summary["finish_reason"], summary["blocked"]) == ("unwritten", None)
    assert ran.stderr.count("pages.sqlite") == 1
    assert "Traceback" not in ran.stderr
    count = len(clean_replica.log.paths)
    assert count < 60
    assert summary["pages"] == count
    whole = crawl(tmp_path, clean_replica.url)
    assert len(whole.rows) == len(whole.by_id) == len(clean_replica.posts())
    assert len(rows_of(tmp_path)) == len(whole.rows)


# Addresses in the log.


@pytest.mark.parametrize(("there", "counted"), [((200, JSON, b"[]"), "unknown_layout"), ((500, JSON, b""), "http_500")])
def test_the_log_names_the_address_that_we_requested_and_not_that_with_the_title(tmp_path, there, counted):
    pages = {"/latest.json": topics(5, 6), "/t/5.json": (301, {"Location": "/t/my-own-sorrow/5.json"}, b"")}
    pages["/t/my-own-sorrow/5.json"] = there
    with TinySite(pages) as site:
        run = one_day(tmp_path / "job", site.url, source=site_file(tmp_path, "discourse"), code=None)
    assert run.summary["errors"] == {counted: 1}
    assert "/t/5.json" in run.log
    assert "sorrow" not in run.log
