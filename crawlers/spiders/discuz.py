"""Boards on Discuz! X3: each board is a list in the order of the last message, threads stuck on top first."""

from collections.abc import Iterator
from typing import ClassVar

from crawlers.pages import discuz
from crawlers.sites import Board
from crawlers.spiders.base import ForumSpider, Reader


class DiscuzSpider(ForumSpider):
    """A forum on Discuz! X3."""

    list_page: ClassVar[Reader] = discuz.list_page
    post_page: ClassVar[Reader] = discuz.post_page

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The boards, in the form of address that the site uses."""
        form = "forum-{}-1.html" if self.site.rewritten_urls else "forum.php?mod=forumdisplay&fid={}&page=1"
        for board in self.site.boards:
            yield board, f"{self.options.base_url}/{form.format(board.id)}"
