"""Xinli001: two layouts, and the checks of a page."""

from datetime import UTC, datetime

import pytest
from parsel import Selector
from saved_pages import changed, page_named

from crawlers.pages import xinli001
from crawlers.records import PageError, UnknownLayout

NOW = datetime(2023, 12, 5, 16, 2, tzinfo=UTC)
URL = "https://www.xinli001.com/qa/100841638?page=1"


def test_title_or_links_that_moved_are_an_unknown_layout():
    for name, old, new in (("question", "<h1>升职之后反而睡不着</h1>", "<h2>升职</h2>"), ("list", "<a ", "<b ")):
        with pytest.raises(UnknownLayout):
            changed(f"xinli001_2023_{name}", old, new)


def test_list_behind_the_last_page_is_empty():
    page = Selector(text='<div id="left"><ul class="content"></ul></div>')
    assert xinli001.list_page(page, "https://www.xinli001.com/qa?page=501", NOW).posts == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("11个回答", "很多回答"),
        ('data-question-id="100841638"', 'data-question-id="100841639"'),
        ("</h1>", ""),
        ("<span>2023-12-04</span>", "<span>很久以前</span>"),
        ("<span>2023-12-04</span>", "<span>2033-12-04</span>"),
        ('<ul class="content-ans">', '<ul class="other">'),
        ("<h1>升职之后反而睡不着</h1>", "<h1> </h1>"),
        ("我笑着请了，", "<p>我笑着请了，"),  # ends the paragraph that it stands in
        ("<h1>", "<h1>升</h1><h1>"),
    ],
)
def test_page_that_can_not_be_believed_is_an_error_without_words(old, new):
    with pytest.raises(PageError) as error:
        changed("xinli001_2023_question", old, new)
    assert "第二段" not in str(error.value)


def test_answer_that_can_not_be_believed_costs_itself_alone():
    for old, new, cost in (
        (
            '<span class="answer_zan" data-answer-id="6004613">',
            '<span class="answer_zan" data-answer-id="6004612">',
            "6004613",
        ),
        ('class="text"><p>第一条', 'class="words"><p>第一条', "6004612"),
        ("第一条回答。</p>", "第一条回答。</p><p class='created_time'>昨天</p>", "6004612"),
    ):
        page = changed("xinli001_2023_question", old, new)
        assert page.n_unread == 1
        assert {"6004612", "6004613"} - {answer.source_id for answer in page.answers} == {cost}


def test_page_cut_off_within_an_answer_is_an_error():
    page = page_named("xinli001_2023_question")
    with pytest.raises(PageError):
        page.parse(page.source().partition("与第一条无关")[0])


def test_address_of_a_post_is_without_notes_of_where_the_reader_came_from():
    page = page_named("xinli001_2020_list")
    links = {post.url for post in page.parse(page.source().replace("?from=shouye", "?gen=2020&amp;from=x")).posts}
    assert "https://www.xinli001.com/qa/100571290?gen=2020" in links


def test_link_that_leads_elsewhere_is_counted_and_not_listed():
    for href in ("https://elsewhere.example.net/qa/1", "file:///etc/hostname", "javascript:void(0)", "http://["):
        page = changed("xinli001_2023_list", "/qa/100841638?page=1&amp;from=houye-dh", href)
        assert [post.source_id for post in page.posts] == ["100841637", "100841630"]
        assert page.refused == 2


def test_tags_of_both_layouts_and_with_or_without_the_class_of_2020():
    marked, plain = 'class="label detail-tag"', 'class="tag-list"'
    three = f"<ul {marked}><li>职业</li><li>职业倦怠</li><li>职业</li>"
    links, own = "<ul><li><a href='/qa'>职业</a></li><li><a> 职业倦怠\n</a></li>", "<ul><li>先请客</li><li>再蹲着</li>"
    for name, old, new, tags in (
        ("2020", marked, marked, ("人际", ("舍友同学", "冲突"))),
        ("2020", marked, plain, ("人际", ("舍友同学", "冲突"))),
        ("2023", marked, marked, ("职业", ("职业倦怠",))),
        ("2023", f"<ul {marked}>", "<ul>", ("职业", ("职业倦怠",))),
        ("2023", three, links, ("职业", ("职业倦怠",))),
        ("2023", three, own, (None, ())),
        ("2023", f"{three}</ul>", "", (None, ())),
    ):
        question = changed(f"xinli001_{name}_question", old, new).question
        assert (question.topic, question.subtopics) == tags, new
    with pytest.raises(PageError, match="runs on"):  # a list within the seeker's paragraph ends it
        changed("xinli001_2023_question", three, f"{own}</ul>{three}")


def test_unreadable_time_of_an_answer_costs_the_time_and_not_the_answer():
    answers = changed("xinli001_2023_question", "5分钟前", "不久").answers
    assert [answer.posted is None for answer in answers] == [False, True]


def test_selectors_of_a_skin_replace_the_default_ones():
    page = page_named("xinli001_2023_list")
    body = Selector(text=page.source().replace('class="content"', 'class="questions"'))
    skin = {**xinli001.SELECTORS, "list": "#left ul.questions", "list_post": "ul.questions > li"}
    assert len(xinli001.list_page(body, page.url, page.fetched_at, skin).posts) == 3
