"""Forums on Discourse: JSON; a topic comes with its first twenty posts, and the others are asked for by their ids."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from urllib.parse import urlencode

from crawlers.pages import discourse
from crawlers.sites import Board
from crawlers.spiders.base import Draft, ForumSpider, Reader

_AT_ONCE = 20  # as many as a first page has


class DiscourseSpider(ForumSpider):
    """A forum on Discourse."""

    list_page: ClassVar[Reader] = discourse.list_page
    post_page: ClassVar[Reader] = discourse.post_page
    json = True

    def lists(self) -> Iterator[tuple[Board | None, str]]:
        """The categories (`slug/id` or `id`), or the latest of all of them."""
        for board in self.site.boards:
            yield board, f"{self.options.base_url}/c/{board.id}.json"
        if not self.site.boards:
            yield None, f"{self.options.base_url}/latest.json"

    def more(self, draft: Draft) -> tuple[str, Callable[..., Any]] | None:
        """The next twenty posts of the topic."""
        ids, draft.more_ids = draft.more_ids[:_AT_ONCE], draft.more_ids[_AT_ONCE:]
        if not ids:
            return None
        query = urlencode([("post_ids[]", i) for i in ids])
        return f"{self.options.base_url}/t/{draft.listed.source_id}/posts.json?{query}", self.parse_post
