"""Every saved page gives the record beside it."""

import json
import re
from datetime import UTC, datetime

import pytest
from parsel import Selector
from saved_pages import SavedPage, plain, saved_pages

from crawlers.pages import discourse, discuz, douban_group, nodebb, xinli001
from crawlers.records import UnknownLayout

PAGES = saved_pages()
ENGINES = (xinli001, discuz, discourse, nodebb, douban_group)
NOW = datetime(2025, 3, 14, tzinfo=UTC)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_gives_the_record_beside_it_without_hands_and_faces(page: SavedPage):
    """No avatar, no link to a profile, no province of an IP address leaves a parser."""
    assert plain(page.parse(page.source())) == page.gives
    record = json.dumps(page.gives, ensure_ascii=False)
    for private in ("avatar", "/people/", "/user/", "space&uid", "home.php", "虚构省", "<", "username", "虚构用户"):
        assert private not in record


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_of_one_engine_is_unknown_to_the_others(page: SavedPage):
    for engine in ENGINES:
        if engine.__name__.endswith(f".{page.engine}"):
            continue
        body = json.loads(page.source()) if page.is_json else Selector(text=page.source())
        with pytest.raises(UnknownLayout):
            getattr(engine, page.read)(body, page.url, page.fetched_at)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
@pytest.mark.parametrize("read", ["list_page", "post_page"])
@pytest.mark.parametrize("body", [None, "", 3, [], {}, {"topic_list": 3}, {"posts": {}}, [[[[]]]]])
def test_body_that_is_no_page(engine, read, body):
    with pytest.raises(UnknownLayout):
        getattr(engine, read)(body, "https://www.example.org/", NOW)


def test_links_of_a_list_that_all_lead_to_another_host_are_counted():
    lists = [page for page in PAGES if page.read == "list_page" and not page.is_json]
    assert lists
    for page in lists:
        elsewhere = re.sub(r'href="(?:https?://[^/"]+)?/?', 'href="https://elsewhere.example.net/', page.source())
        page_list = page.parse(elsewhere)
        assert page_list.posts == ()
        assert page_list.refused >= len(page.gives["posts"])
