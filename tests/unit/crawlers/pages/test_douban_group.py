"""Douban groups: comments are answers, quotes are not, and provinces stay on the page."""

import pytest
from saved_pages import page_named

from crawlers.records import PageError


def changed(name: str, old: str, new: str):
    page = page_named(name)
    assert old in page.source()
    return page.parse(page.source().replace(old, new))


def test_month_and_day_of_last_year():
    posts = page_named("douban_group_list").gives["posts"]
    assert posts[2]["active"]["at"] == "2024-12-30T14:40:00+00:00"


def test_list_shows_the_last_comment_and_not_the_time_of_posting():
    assert all(post["posted"] is None and post["active"] for post in page_named("douban_group_list").gives["posts"])


def test_popular_comments_are_not_read_twice():
    page = page_named("douban_group_topic")
    assert page.source().count('data-cid="3300001"') == 2
    assert [answer["source_id"] for answer in page.gives["answers"]] == ["3300001", "3300002"]


def test_quote_is_not_the_answer():
    assert page_named("douban_group_topic").gives["answers"][1]["text"] == "干杯"


def test_province_behind_a_time_is_cut_off():
    assert page_named("douban_group_topic").gives["answers"][0]["posted"]["said"] == "2025-01-01 21:05:10"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id="3300002" data-cid="3300002"', 'data-cid="3300001"'),
        ('data-cid="3300002"', 'data-cid=""'),
        ("隔着屏幕碰个杯吧。</p>", "隔着屏幕碰个杯吧。<span class='pubtime'>x</span></p>"),
        ('class="create-time">2025-01-01 20:11:32', 'class="create-time">虚构省'),
        ("topic-richtext", "richtext"),
        ("<h1>", "<h1>两个</h1><h1>"),
    ],
)
def test_topic_that_can_not_be_believed(old, new):
    with pytest.raises(PageError):
        changed("douban_group_topic", old, new)
