"""Where a crawl of a site begins."""

import pytest

from crawlers.errors import RequestRefused
from crawlers.pages import discourse, discuz, douban_group, nodebb, xinli001
from crawlers.sites import Site
from crawlers.spiders.base import list_paths

PATHS = {
    discourse: ["/c/2.json", "/c/about/36.json"],
    nodebb: ["/api/category/2", "/api/category/about/36"],
    discuz: ["/forum.php?mod=forumdisplay&fid=2&page=1", "/forum.php?mod=forumdisplay&fid=about/36&page=1"],
    douban_group: ["/group/2/discussion?start=0", "/group/about/36/discussion?start=0"],
    xinli001: [xinli001.LATEST],  # it has no boards
}


def _site(engine, **more):
    return Site.model_validate(
        {
            "name": "forum",
            "title": "A forum",
            "engine": engine.__name__.rpartition(".")[2],
            "base_url": "https://forum.example",
            "licence": "unknown",
            "consent": "not_asked",
            "robots": {"known": False},
            **more,
        }
    )


@pytest.mark.parametrize("engine", PATHS, ids=lambda engine: engine.__name__)
def test_each_board_has_a_list(engine):
    site = _site(engine, boards=[{"id": "2"}, {"id": "about/36"}])
    assert [path for _, path in list_paths(site, engine)] == PATHS[engine]


@pytest.mark.parametrize("engine", [discourse, nodebb, xinli001], ids=lambda engine: engine.__name__)
def test_without_boards_the_list_of_all_posts_is_read(engine):
    assert list_paths(_site(engine), engine) == [(None, engine.LATEST)]


@pytest.mark.parametrize("engine", [discuz, douban_group], ids=lambda engine: engine.__name__)
def test_a_crawl_without_any_list_is_refused(engine):
    with pytest.raises(RequestRefused, match="names no board"):
        list_paths(_site(engine), engine)
