"""Forums on NodeBB: every page has a twin in JSON under /api; lists are in the order of the last post."""

from collections.abc import Iterator
from typing import ClassVar

from crawlers.pages import nodebb
from crawlers.sites import Board
from crawlers.spiders.base import ForumSpider, Reader


class NodebbSpider(ForumSpider):
    """A forum on NodeBB."""

    list_page: ClassVar[Reader] = nodebb.list_page
    post_page: ClassVar[Reader] = nodebb.post_page
    json = True

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The categories, or what is recent in all of them."""
        for board in self.site.boards:
            yield board, f"{self.options.base_url}/api/category/{board.id}"
        if not self.site.boards:
            yield None, f"{self.options.base_url}/api/recent"
