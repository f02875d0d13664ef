"""What a person pasted into an answer costs at most that answer, never the page or the answers after it."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saved_pages import page_named

from crawlers.markup import close
from crawlers.records import PostPage

# Page, the words of the answer into which something is pasted, its id.
PLACES = {
    "xinli001_2020_question": ("那只杯子装着的不只是水。", "5710093"),
    "xinli001_2023_question": ("第一条回答。", "6004612"),
    "discuz_thread": ("我以前也这样。", "9002"),
}
LABEL = '<div class="label"><span class="follow" data-user-id="1"><a>关注</a></span></div>'
KEPT = {
    "headings": "<h1>一</h1><h2>二</h2><h6>六</h6>",
    "classes of the page": '<p class="text">一</p><div class="title">二</div><div class="text">三</div>',
    "a tag that is not closed": "<div>一<span>二",
    "tags that close nothing": "一</div>二</p></span>三",
    "the end of an answer": "一</div></li></ul>二",
    "the end of a table": "一</td></tr></table></div>二",
    "the end of the page": "一</div></div></body></html>二",
    "another page": "<!DOCTYPE html><html><head><title>题</title></head><body><p>一</p></body></html>",
    "half a table": "<table><tr><td>一",
    "a list": "<ul><li>一<li>二",
    "a remark": "一<!-- </div></li> -->二",
    "a script": "一<script>document.write('</div></li>')</script>二",
}
UNREAD = {
    "what the page writes under an answer": LABEL,
    "the end of an answer, and another begun": f"一</div>{LABEL}</li><li>二",
    "a remark without an end": "一<!-- 二",
    "a script without an end": "一<script>二",
    "a text field without an end": "一<textarea>二",
    "half a tag": '一<div class="x',
    "a great depth": "<div>" * 30_000 + "一" + "</div>" * 30_000,
    "a great depth that is not closed": "<b>" * 30_000,
    "half an answer": '<li><p class="user"><a href="/user/7">甲</a></p>一',
    "an answer": '</div></li><li><p class="user">甲</p><div class="text">一</div><div class="label">'
    '<span class="answer_zan" data-answer-id="7"></span></div></li>',
    "two answers of the page": 2 * f'<li><p class="user">甲</p><div class="text">一</div>{LABEL}</li>',
    "a message": '<div id="post_7"><td class="t_f" id="postmessage_7">一</td></div>',
}  # fmt: skip


def pasted(name: str, markup: str) -> PostPage:
    page, (words, _) = page_named(name), PLACES[name]
    assert page.source().count(words) == 1
    return page.parse(page.source().replace(words, words + markup))


def others(page: PostPage, name: str) -> list:
    """All that the page gives but that answer."""
    return [page.question, page.next_urls, *(one for one in page.answers if one.source_id != PLACES[name][1])]


def text_of(page: PostPage, name: str) -> str | None:
    return next((one.text for one in page.answers if one.source_id == PLACES[name][1]), None)


@pytest.mark.parametrize("name", PLACES)
def test_pasted_markup_costs_at_most_the_answer(name: str):
    whole, words = pasted(name, ""), PLACES[name][0]
    for kind, markup in {**KEPT, **UNREAD}.items():
        page = pasted(name, markup)
        assert others(page, name) == others(whole, name), kind
        text = text_of(page, name)
        if kind in KEPT:
            shown = re.sub(r"<!--.*?-->|<script>.*?</script>|<title>.*?</title>|<[^>]*>", "", markup)
            assert text is not None, kind
            assert "".join(text.split()).startswith(words + shown), kind
            assert page.n_unread == 0, kind
        elif text is not None:  # a part of another site's page is none of this one's
            assert (kind == "a message") is not name.startswith("discuz")
            assert any(part in markup for part in ("label", "post_", "user"))
            assert page.n_unread == 0, kind
        else:
            assert page.n_unread >= 1, kind


SOUP = [
    f"<{end}{tag}>"
    for end, tag in product(
        ("", "/"), ["a", "b", "p", "div", "span", "h1", "h2", "ul", "ol", "li", "table", "tr", "td", "blockquote"]
    )
]


@given(st.lists(st.sampled_from([*SOUP, "字", "<br>", '<div class="text">', '<p class="title">']), max_size=40))
def test_whatever_tags_are_pasted_no_word_of_anybody_is_lost_unseen(pieces: list[str]):
    for name in PLACES:
        page = pasted(name, "".join(pieces))
        assert others(page, name) == others(pasted(name, ""), name)
        text = text_of(page, name)
        if text is None:  # a cell without its table ends the one in which Discuz! puts a message
            assert name.startswith("discuz")
            assert page.n_unread == 1
            continue
        assert text.count("字") == pieces.count("字") + PLACES[name][0].count("字")


def test_a_text_that_is_closed_is_unchanged():
    for markup in ("", "一<br>二", "<p class='x'>一</p><img src='a'>", "<P>一</p>", "1 < 2", "<!-- 一 --><b>二</b>"):
        assert close(markup) == markup
