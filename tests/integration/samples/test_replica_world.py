"""The replica's posts and its clock: invented, seeded, and appearing when their time has come."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from forums.forum_page import discuz_exact, discuz_time, most_active
from invented_posts import InventedWorld, invent
from troubled_replica import Replica

from samples.replica.page import xinli001_time
from samples.replica.world import SAMPLES, read_posts

NOW = datetime(2025, 5, 27, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def invented():
    return [invent(0, index, NOW) for index in range(1000)]


def test_the_samples_come_as_they_are_in_their_file():
    posts = read_posts()
    assert len(posts) == len(SAMPLES.read_text(encoding="utf-8").splitlines())
    second = posts[1]
    assert (second.key, second.topic, second.posted_at) == ("p002", "成长", datetime(2025, 3, 1, 13, 50, tzinfo=UTC))
    assert (second.coming[0].recommended, second.coming[0].author_role) == (True, "professional")
    assert posts[0].notice


def test_an_invented_post_follows_from_its_seed_and_number_alone(invented):
    assert asdict(invent(0, 17, NOW)) == asdict(invented[17])
    assert invent(1, 17, NOW).description != invented[17].description


def test_invented_texts_differ_and_some_posts_have_answers_for_several_pages_on_every_site(invented):
    assert len({post.description for post in invented}) == len(invented)
    numbers = [len(post.coming) for post in invented]
    assert min(numbers) == 0
    assert sum(number > 20 for number in numbers) > 5, "Discourse, NodeBB"
    assert sum(number > 100 for number in numbers) == 2, "Douban"


def test_numbers_ascend_with_time_and_the_most_active_post_leads_the_forums():
    world = InventedWorld(read_posts(), NOW, invented=200)
    newest = world.newest()
    assert [post.number for post in newest] == list(range(len(newest), 0, -1))
    assert all(a.posted_at >= b.posted_at for a, b in pairwise(newest))
    answers = sorted((a.number, a.posted_at) for post in newest for a in post.answers)
    assert all(a[1] <= b[1] for a, b in pairwise(answers))
    active = [post.active_at for post in most_active(world)]
    assert active == sorted(active, reverse=True)


def test_what_is_later_than_the_clock_is_not_there():
    """At ten in the evening of 1 March p001 and p002 are there; the answers to p002 come in the next ten hours."""
    with Replica(now="2025-03-01T22:00+08:00") as replica:
        posts = replica.posts()
        assert [(post["number"], len(post["answers"])) for post in posts] == [(2, 0), (1, 0)]
        changes = replica.tick(days=1)
        assert changes["changed"] == [2]
        assert changes["new"] == list(range(3, len(replica.posts()) + 1)) != []


def test_times_are_written_as_the_sites_write_them():
    """Now is noon in Shanghai."""
    for ago, xinli001, discuz in (
        (timedelta(seconds=30), "刚刚", ">30&nbsp;秒前<"),
        (timedelta(minutes=34), "34分钟前", ">半小时前<"),
        (timedelta(hours=3), "3小时前", ">3&nbsp;小时前<"),
        (timedelta(hours=13), "昨天 23:00", ">昨天&nbsp;23:00<"),
        (timedelta(days=2), "2025-05-25", ">前天&nbsp;12:00<"),
        (timedelta(days=7), "2025-05-20", ">7&nbsp;天前<"),
        (timedelta(days=30), "2025-04-27", "2025-4-27 12:00:00"),
    ):
        at = NOW - ago
        assert xinli001_time(at, NOW) == xinli001
        assert discuz in discuz_time(at, NOW, discuz_exact(at))
