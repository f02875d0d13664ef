"""The questions of Xinli001: one list, sorted by id, which is the order of posting."""

from collections.abc import Iterator
from typing import ClassVar

from crawlers.pages import xinli001
from crawlers.sites import Board
from crawlers.spiders.base import ForumSpider, Reader

# What the site's own "newest" tab asks for, without its note of where the reader came from.
_NEWEST = "/qa?page=1&type=question&object_name=last&title=&level2_tag=0&sort=id"


class Xinli001Spider(ForumSpider):
    """壹心理问答."""

    list_page: ClassVar[Reader] = xinli001.list_page
    post_page: ClassVar[Reader] = xinli001.post_page
    ordered = True

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The list of newest questions."""
        yield None, self.options.base_url + _NEWEST
