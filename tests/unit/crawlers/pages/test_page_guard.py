"""The link to the next page: by its mark, its label, or its number, and never a silent end."""

import pytest

from crawlers import html
from crawlers.pages import discuz, douban_group, guard, xinli001
from crawlers.records import PageError

HERE = "https://example.org/qa?page=2&sort=id"
NEXT = "https://example.org/qa?page=3"


def next_link(markup: str, url: str = HERE, engine=xinli001, n_pages: int | None = None) -> str | None:
    page = html.parsed(f"<html><body>{markup}</body></html>")
    return guard.next_link(page.root, engine.SELECTORS["next"], url, engine._place, n_pages)


LINKED = {
    "rel in the head of a page": "<link rel='next' href='/qa?page=3'>",
    "rel on a link": "<a rel='nofollow next' href='/qa?page=3'>前进</a>",
    "a label": "<div class='page'><a href='/qa?page=3'>下一页</a></div>",
    "a label with an arrow": "<nav><a href='/qa?page=3'>下页 ></a></nav>",
    "a label in traditional characters": "<div class='pg'><a href='/qa?page=3'>下一頁</a></div>",
    "an arrow beside the last page": "<nav><a href='/qa?page=3'>›</a><a href='/qa?page=40'>»</a></nav>",
    "numbers": "<div class='pages'><a href='/qa?page=1'>1</a><b>2</b><a href='/qa?page=3'>3</a></div>",
    "numbers beside a script": "<nav><a href='/qa?page=3'>3</a><a href='javascript:go(3)'>下一页</a></nav>",
}  # fmt: skip
LAST = {
    "nothing": "<p>到底了</p>",
    "earlier numbers": "<nav><a href='/qa?page=1'>1</a><b>2</b></nav>",
    "a link that is disabled": "<nav><a href='/qa?page=1'>1</a><li class='disabled'><a href='#'>下一页</a></li></nav>",
    "a link to itself": "<nav><a href='/qa?page=2'>下一页</a></nav>",
    "the next article": "<a rel='next' href='/qa/100841600'>下一篇</a>",
    "an arrow within a page that is called one": (
        f"<div class='page-wrap'>{'<a href=/user/7>x</a>' * 60}<a href='javascript:;'>›</a></div>"
    ),
    "an arrow of a slide show": "<div class='slides'><a href='javascript:;'>›</a></div>",
    "what a person pasted": "<div class='text'><nav><a href='/qa?page=9'>9</a></nav></div>",
    "the pager of comments": "<div class='cm'><p class='pg'><a href='javascript:;' class='nxt'>下一页</a></p></div>",
}
NOWHERE = {
    "a script": "<nav><a href='javascript:go(3)'>下一页</a></nav>",
    "an anchor": "<nav><a href='#' onclick='go(3)'>下一页</a></nav>",
    "no address": "<nav><a href='http://['>»</a></nav>",
    "pages without the next": "<nav><a href='/qa?page=1'>1</a><a href='/qa?page=40'>40</a></nav>",
    "two other places": "<ul class='pagination'><a rel='next' href='/a'>a</a><a rel='next' href='/b'>b</a></ul>",
}


def test_the_next_page_is_found_by_its_mark_its_label_or_its_number():
    assert {name: next_link(markup) for name, markup in LINKED.items()} == dict.fromkeys(LINKED, NEXT)


def test_the_last_page_has_none():
    assert {name: next_link(markup) for name, markup in LAST.items()} == dict.fromkeys(LAST)


@pytest.mark.parametrize("name", NOWHERE)
def test_a_pager_that_cannot_be_followed_is_an_error_and_no_end(name: str):
    with pytest.raises(PageError, match="the next page"):
        next_link(NOWHERE[name])


def test_pages_that_a_page_states_and_does_not_link_are_an_error():
    for url in ("https://bbs.example.org/forum-2-1.html", "https://bbs.example.org/forum.php?mod=forumdisplay&fid=2"):
        assert next_link("", url, discuz, n_pages=1) is None
        with pytest.raises(PageError, match="missing"):
            next_link("", url, discuz, n_pages=2)


def test_addresses_of_each_engine_say_what_they_show_and_which_page():
    thread, board = "https://bbs.example.org/thread-5-2-1.html", "https://bbs.example.org/forum-5-3.html"
    plain = "https://bbs.example.org/forum.php?mod=viewthread&tid=5&page=2&extra=page%3D1"
    topic = "https://www.douban.com/group/topic/5/"
    assert discuz._place(thread) == discuz._place(plain) == ("thread 5", 2)
    assert discuz._place(board) == ("forum 5", 3)
    assert [douban_group._place(f"{topic}{start}")[1] for start in ("", "?start=100", "?start=200")] == [0, 1, 2]
    assert douban_group._place("https://www.douban.com/group/tree/discussion?start=25")[1] == 1
