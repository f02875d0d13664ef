"""What a reader sees of a node."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlers.html import DEEPEST, LONGEST_TEXT, base, find, followed, fragment, link, number, parsed, readable, words

tags = st.sampled_from(["p", "div", "br", "b", "span", "ul", "li", "td", "table", "font", "a", "blockquote"])
pieces = st.one_of(
    st.text("甲乙 a\n\t\xa0&<>", max_size=6), tags.map("<{}>".format), tags.map("</{}>".format), st.just("<!-- c -->")
)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>一</p>\n\n<p>二</p>", "一\n二"),
        ("<p>一</p><p><br></p><p>二</p>", "一\n\n二"),
        ("一<br>二<br/>三", "一\n二\n三"),
        ("一<br><br><br><br>二", "一\n\n二"),
        ("<div>一<div>二</div>三</div>", "一\n二\n三"),
        ("一<b>二</b>三", "一二三"),
        ("first\n  second", "first second"),
        ("第一\n   第二", "第一第二"),
        ("a&nbsp;&amp;&lt;b", "a &<b"),
        ("一<!-- 二 -->三", "一三"),
        ("一<script>二</script><style>三</style>四", "一四"),
        ('一<font class="a jammer">x<b>y</b></font>二', "一二"),
        ('一<span style="color:red; DISPLAY : none">x</span>二', "一二"),
        ("一<i hidden>x</i>二", "一二"),
        ('一<img src="x.png" alt="x">二', "一二"),
        ("<p> </p>", ""),
    ],
)
def test_readable(markup, text):
    assert readable(fragment(f"<div>{markup}</div>")) == text


def test_line_ends_as_they_were_typed():
    node = find(fragment("<p>一\r\n二\n\n\n\n三<br>\n四</p>"), "p")[0]
    assert readable(node, keep_lines=True) == "一\n二\n\n三\n四"
    assert readable(node) == "一二三\n四"


def test_a_hidden_node_is_read_when_asked_for_and_dropped_ones_leave_what_stands_behind_them():
    assert readable(find(fragment('<div style="display:none">一</div>'), "div")[0]) == "一"
    node = fragment('<div><div class="quote">别人的话<p>还有</p></div>自己的话</div>')
    assert readable(node, drop="div.quote") == "自己的话"


def test_text_is_bounded():
    with pytest.raises(ValueError, match="more than"):
        readable(fragment("长" * (LONGEST_TEXT + 1)))
    assert len(words(fragment("长" * (LONGEST_TEXT + 1)))) == 1000


@pytest.mark.parametrize("tags", [20, DEEPEST - 10])
def test_a_text_beneath_many_tags_is_read(tags):
    assert readable(fragment("<div>" * tags + "底" + "</div>" * tags + "<p>后</p>")) == "底\n后"


@pytest.mark.parametrize("before", ["", "</x>" * 5000, "<a <b>&#xfffffff;" * 200])
@pytest.mark.parametrize("tags", [2047, 20_000])
def test_what_the_parser_does_not_read_to_its_end_is_refused(before, tags):
    """lxml leaves the rest of such a page away, and tells of no error where there were a hundred before."""
    markup = f"<p>前</p>{before}" + "<div>" * tags + "底" + "</div>" * tags
    for read in (fragment, parsed):
        with pytest.raises(ValueError, match="not read to its end"):
            read(markup)


def test_markup_that_goes_on_behind_its_end_is_refused():
    with pytest.raises(ValueError, match="goes on"):
        fragment("<p>前</p></html><p>后</p>")
    assert readable(fragment("<p>前</p></html>\n<!-- 后 -->")) == "前"
    assert readable(fragment("<!-- 后 -->")) == ""


@settings(max_examples=200)
@given(st.lists(pieces, max_size=30))
def test_whatever_the_markup_lines_are_clean(parts):
    text = readable(fragment("<div>" + "".join(parts) + "</div>"), drop="blockquote")
    assert text == text.strip()
    assert "\n\n\n" not in text
    assert all(line == " ".join(line.split()) for line in text.split("\n"))
    assert not {"\x00", "\r", "\t", "\xa0"} & set(text)


def test_number():
    values = {"3个回答": 3, "赞 (12)": 12, "1,204": 1204, "1.2万": 12_000, "3 萬": 30_000, "有用": None, "9" * 50: None}
    assert {text: number(text) for text in values} == values


def test_link():
    site = "https://a.example.org"
    targets = {"/qa/1?page=2": f"{site}/qa/1?page=2", "thread-1-1-1.html": f"{site}/bbs/thread-1-1-1.html"}
    targets["//b.example.org/x"] = "https://b.example.org/x"
    nowhere = ("javascript:void(0);", "file:///x", "data:text/html,x", "http://[", "http://a:99999999/", "//\ud800.com")
    targets |= dict.fromkeys((*nowhere, "http://", "", None))
    assert {href: link(href, f"{site}/bbs/forum.php") for href in targets} == targets


def test_base_of_a_page():
    here = "https://a.example.org/x/y"
    for base_tag, target in (("/bbs/", "https://a.example.org/bbs/"), ("javascript:x", here), ("", here)):
        assert base(fragment(f'<base href="{base_tag}"><p>x</p>'), here) == target


def test_what_a_page_was_cut_off_in_nothing_follows():
    whole = fragment("<ul><li><p>一</p></li><li>二</li></ul>")
    assert followed(find(whole, "p")[0])
    assert not followed(find(fragment("<ul><li><p>一"), "p")[0])
