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
BOARDS = [{"id": "2"}, {"id": "about/36"}]
SITE = {
    **{"name": "forum", "title": "A forum", "base_url": "https://forum.example", "licence": "unknown"},
    **{"consent": "not_asked", "robots": {"known": False}},
}


@pytest.mark.parametrize("engine", PATHS, ids=lambda engine: engine.__name__)
def test_each_board_has_a_list_and_without_boards_there_must_be_one_of_all_posts(engine):
    site = Site.model_validate({**SITE, "engine": engine.__name__.rpartition(".")[2]})
    assert [
        path for _, path in list_paths(site.model_validate({**site.model_dump(), "boards": BOARDS}), engine)
    ] == PATHS[engine]
    if engine.LATEST is not None:
        assert list_paths(site, engine) == [(None, engine.LATEST)]
    else:
        with pytest.raises(RequestRefused, match="names no board"):
            list_paths(site, engine)
