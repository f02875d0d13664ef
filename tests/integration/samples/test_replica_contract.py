"""The selectors that crawlers of the real Xinli001 use (spec/crawling.md §1.2) find their elements on the replica."""

from datetime import UTC, datetime, timedelta
from functools import cache

from parsel import Selector

from samples.replica import xinli001
from samples.replica.page import PageRequest
from samples.replica.world import Answer, Post, World

NOW = datetime(2025, 5, 27, 4, tzinfo=UTC)


def _question(k: int) -> Post:
    at = NOW - timedelta(minutes=60 - k)
    answers = [Answer(f"第{n}条\n第二段", f"member-{n}", "member", at, n, n == 1) for n in range(1, 24)]
    return Post(f"q{k}", f"题目{k}", f"正文{k}", "成长", ("自我成长",), None, at, coming=answers)


@cache
def _page(path: str, layout: str) -> Selector:
    world = World([_question(k) for k in range(23)], NOW)
    path, _, query = path.partition("?")
    request = PageRequest(path, dict(part.split("=") for part in query.split("&")), query, "http://127.0.0.1", NOW)
    page = xinli001.respond(world, request, layout)
    assert page is not None
    return Selector(page.body.decode())


LIST, DETAIL = "/qa?page=1", f"/qa/{xinli001.FIRST_QID + 7}?page=1"
# Page, layout, selector, how many elements it matches: the 23 of public crawlers, then tags, writers and badges.
SELECTORS = [
    (LIST, "2023", '//*[@id="left"]/ul/li/p/span/a/@href', 10),
    (LIST, "2023", '//ul[@class="content"]/li', 10),
    (LIST, "2023", '//ul[@class="content"]/li[1]//p[@class="title"]/span/a/text()', 1),
    (LIST, "2023", './/p[@class="title"]/span/a', 10),
    (LIST, "2023", '//a[text()="»"]/@href', 1),
    (LIST, "2020", "#main #left .content li", 10),
    (DETAIL, "2023", "div.title h1::text", 1),
    (DETAIL, "2023", "div#answer-text::attr(data-question-id)", 1),
    (DETAIL, "2023", '//*[@id="left"]/div[1]/p[2]/text()', 1),
    (DETAIL, "2023", '//*[@id="left"]/ul/li', 10),
    (DETAIL, "2023", './/span[@class="absoulte-img"]/a/text()', 1),
    (DETAIL, "2023", './/p[@class="read-capacity"]/span[1]/text()', 1),
    (DETAIL, "2023", './/div[@class="title"]/strong/text()', 1),
    (DETAIL, "2023", './/*[@id="left"]/div[1]/ul//li/text()', 2),
    (DETAIL, "2023", './/ul[@class="content-ans"]/li', 10),
    (DETAIL, "2023", './/ul[@class="content-ans"]/li[1]//span[@class="answer_zan"]/a/font/text()', 1),
    (DETAIL, "2023", './/p[@class="created_time"]/text()', 10),
    (DETAIL, "2020", ".content > .title > span::text", 1),
    (DETAIL, "2020", ".content .text", 1),
    (DETAIL, "2020", ".title strong::text", 1),
    (DETAIL, "2020", "li .label", 10),
    (DETAIL, "2020", "p.text", 1),
    (DETAIL, "2020", "a.jumpA::attr(href)", 10),
    (DETAIL, "2023", './/*[@id="left"]/div[1]/ul/li', 2),
    (DETAIL, "2020", "ul.label.detail-tag > a > li", 2),
    (DETAIL, "2023", './/*[@id="left"]//div[@class="title"]/a', 1),
    (DETAIL, "2023", './/div[@class="content"]/p[@class="text"]', 1),
    (DETAIL, "2023", './/p[@class="user"]/a', 10),
    (DETAIL, "2023", './/p/span[@class="help"]', 10),
    (DETAIL, "2020", ".answer_zan font", 10),
    (DETAIL, "2020", "font.comment_num", 10),
    (DETAIL, "2020", "div.recommend-icon > i.yxlicon.icon-tuijian", 1),
    (DETAIL, "2020", "span.honor-icon", 10),
    (DETAIL, "2023", "div.hug[data-objectid] > p > span", 1),
    (DETAIL, "2023", "div.collect[data-question-id] > p > a > font", 1),
]  # fmt: skip


def test_real_crawlers_selectors_match():
    for path, layout, query, n_expected in SELECTORS:
        page = _page(path, layout)
        assert len(page.xpath(query) if "/" in query else page.css(query)) == n_expected, (layout, query)


def test_texts_are_escaped():
    evil = '<script>alert("&")</script>\'"'
    world = World([Post("x", evil, evil, evil, (evil,), evil, NOW)], NOW)
    path = f"/qa/{xinli001.FIRST_QID + 1}"
    page = xinli001.respond(world, PageRequest(path, {}, "", "http://127.0.0.1", NOW), "2023")
    assert page is not None
    assert b"<script>" not in page.body
