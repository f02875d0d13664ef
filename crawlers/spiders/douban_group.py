"""Groups of Douban: each is a list in the order of the last comment."""

from collections.abc import Iterator
from typing import ClassVar

from crawlers.pages import douban_group
from crawlers.sites import Board
from crawlers.spiders.base import ForumSpider, Reader


class DoubanGroupSpider(ForumSpider):
    """Groups of Douban."""

    list_page: ClassVar[Reader] = douban_group.list_page
    post_page: ClassVar[Reader] = douban_group.post_page

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The groups."""
        for board in self.site.boards:
            yield board, f"{self.options.base_url}/group/{board.id}/discussion?start=0"
