"""Discuz! X3.x: saved pages, a real one read where it lies, and what a board does to hide its words."""

from datetime import UTC, datetime

import pytest
from parsel import Selector
from saved_pages import changed, page_named

from crawlers.pages import discuz
from crawlers.records import PageError, UnknownLayout

URL = "https://bbs.example.org/forum.php?mod=viewthread&tid=520"
NOW = datetime(2023, 5, 22, 1, 5, tzinfo=UTC)


def test_real_thread_gives_its_question_and_its_answers(shared):
    """The one page of Discuz! among the pages of the shared data (X3.3, the default template with a skin)."""
    path = shared / "html" / "8cf0af42df35f70b52aaa5a62143146bf0743093a3cef6e94c25b218c89d6640.html"
    url = "https://csolbbs.tiancity.com/forum.php?mod=viewthread&tid=38672#lastpost"
    page = discuz.post_page(Selector(text=path.read_text(encoding="utf-8")), url, datetime(2024, 5, 26, tzinfo=UTC))
    assert (page.question.source_id, page.question.url) == ("38672", url.partition("#")[0])
    assert (len(page.question.title), page.question.topic) == (9, "建议反馈")
    assert page.question.posted.at == datetime(2024, 4, 5, 15, 20, 45, tzinfo=UTC)
    assert len(page.question.description.split("\n")) == 4
    assert page.n_answers == len(page.answers) == 3
    assert [answer.source_id for answer in page.answers] == ["53885", "53888", "53937"]
    assert [answer.posted.precision for answer in page.answers] == ["second"] * 3
    words = "".join([page.question.description, *(answer.text for answer in page.answers)])
    assert not any(noise in words for noise in ("来自", "贵州", "四川", "发表于", "举报", "审核通过", "积分"))


def test_other_real_forums_are_unknown_layouts(shared):
    others = [path for path in sorted((shared / "html").glob("*.html")) if not path.name.startswith("8cf0af42")]
    assert others
    for path in others:
        for read in (discuz.list_page, discuz.post_page):
            with pytest.raises(UnknownLayout):
                read(Selector(text=path.read_text(encoding="utf-8")), URL, NOW)


def test_a_hidden_question_is_an_error():
    page = page_named("discuz_thread")
    source = page.source()
    start, end = source.index('<td class="t_f" id="postmessage_9001">'), source.index('<div class="pattl">')
    hidden = '<td><div class="locked">提示: 作者被禁止或删除</div></td></tr></tbody></table>'
    with pytest.raises(PageError, match="hidden"):
        page.parse(source[:start] + hidden + source[end:])


def test_time_is_that_of_the_words_where_there_is_no_title():
    words = changed("discuz_thread", 'title="2023-5-21 12:33"', "").question.posted
    assert (words.text, words.at) == ("昨天 12:33", datetime(2023, 5, 21, 4, 33, tzinfo=UTC))


def test_rewritten_and_plain_addresses_name_the_same_thread():
    page, rewritten = page_named("discuz_thread"), "https://bbs.example.org/thread-520-1-{}.html"
    urls = {rewritten.format(3): rewritten.format(1), URL + "&extra=page%3D1": URL, URL + "&page=1&mobile=no": URL}
    for url, plain in urls.items():
        question = discuz.post_page(Selector(text=page.source()), url, page.fetched_at).question
        assert (question.source_id, question.url) == ("520", plain)


def test_gbk_read_as_utf8_is_an_error_and_no_rubbish():
    page = page_named("discuz_thread_page2_gbk")
    for encoding in ("utf-8", "latin-1"):
        with pytest.raises(PageError):
            page.parse(page.bytes().decode(encoding, "replace"))


def test_message_of_the_board_is_an_error():
    page = Selector(text='<div id="messagetext" class="alert_error"><p>抱歉，指定的主题不存在</p></div>')
    for read in (discuz.list_page, discuz.post_page):
        with pytest.raises(PageError, match="message") as error:
            read(page, URL, NOW)
        assert not isinstance(error.value, UnknownLayout)


def test_first_page_whose_first_message_is_gone_is_no_question():
    page = page_named("discuz_thread")
    source = page.source()
    start, end = source.index('<div id="post_9001">'), source.index('<div id="post_9002">')
    with pytest.raises(PageError, match="first message"):
        page.parse(source[:start] + source[end:])


def test_thread_that_can_not_be_believed():
    for old, new in (
        ('id="postmessage_9001"', 'id="postmessage_9004"'),
        ('<div id="post_9002">', ""),
        ("发表于", "·¢±íÓÚ"),
        ('id="post_9004"', 'id="post_9002"'),
    ):
        with pytest.raises(PageError):
            changed("discuz_thread", old, new)
