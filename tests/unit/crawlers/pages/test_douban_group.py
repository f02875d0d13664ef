"""Douban groups: comments are answers, quotes are not, and provinces stay on the page."""

import pytest
from saved_pages import changed

from crawlers.records import PageError


def test_topic_that_can_not_be_believed():
    for old, new in (
        ('id="3300002" data-cid="3300002"', 'data-cid="3300001"'),
        ('class="create-time">2025-01-01 20:11:32', 'class="create-time">虚构省'),
        ("topic-richtext", "richtext"),
        ("<h1>", "<h1>两个</h1><h1>"),
    ):
        with pytest.raises(PageError):
            changed("douban_group_topic", old, new)


def test_a_comment_that_can_not_be_believed_costs_itself_alone():
    whole = {answer.source_id for answer in changed("douban_group_topic", "", "").answers}
    for old, new in (
        ('data-cid="3300002"', 'data-cid=""'),
        ("隔着屏幕碰个杯吧。</p>", "隔着屏幕碰个杯吧。<span class='pubtime'>x</span></p>"),
    ):
        page = changed("douban_group_topic", old, new)
        assert page.n_unread == 1
        assert len(whole - {answer.source_id for answer in page.answers}) == 1
