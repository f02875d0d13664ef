"""One night after another: the second fetches lists and what is new, and nothing else."""

import datetime as dt
import re
from pathlib import Path

from crawl_home import Home
from troubled_replica import Replica

from crawlers.window import day_of


def test_the_crawl_of_the_next_day_asks_for_lists_and_for_posts_that_are_new_or_have_new_answers(tmp_path: Path):
    with Replica(posts=220, now="2025-05-20 02:40", days=6) as replica:
        home, today = Home(tmp_path, replica), dt.date(2025, 5, 20)
        first = home.crawl(today - dt.timedelta(days=6), today - dt.timedelta(days=1), "2025-05-20T02:40:00+08:00")
        held = set(home.rows()["source_id"])
        replica.requests(reset=True)
        came = replica.tick(days=1, posts=12, answers=5)
        second = home.crawl(today - dt.timedelta(days=5), today, came["now"])
        paths = replica.requests()["paths"]

        posts = {post["ids"]["xinli001"]: post for post in replica.posts()}
        fresh = {name for name, post in posts.items() if name not in held or post["number"] in came["changed"]}
        wanted = {
            name
            for name in fresh
            if today - dt.timedelta(days=5) <= day_of(dt.datetime.fromisoformat(posts[name]["posted_at"])) <= today
        }
        lists = [path for path in paths if path.startswith("/qa?")]
        pages = [match[1] for match in (re.match(r"/qa/(\d+)", path) for path in paths) if match]
        print(  # noqa: T201 - the issue wants it seen
            f"day N: {first['pages']} pages, {first['items']} posts; day N+1: {len(paths)} requests: robots.txt, "
            f"{len(lists)} lists, {len(pages)} pages of {len(set(pages))} posts ({len(wanted)} of the window are new "
            f"or have new answers)"
        )
        assert len(paths) == 1 + len(lists) + len(pages)
        assert second["items"] == len(wanted) > len(came["new"])
        # Lists do not date their posts: those of this morning, after the window, are looked at to find its end.
        assert wanted <= set(pages) <= fresh
        assert len(set(pages) - wanted) <= 2
        assert len(lists) <= 2 + len(held) // 10
        assert len(paths) < first["pages"] / 2
