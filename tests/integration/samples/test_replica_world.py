"""The replica's posts and its clock: invented, seeded, and appearing when their time has come."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import mean

import pytest
from forums.forum_page import discuz_exact, discuz_time, iso, most_active
from invented_posts import InventedWorld, invent
from troubled_replica import Replica

from samples.replica.page import xinli001_time
from samples.replica.world import SAMPLES, read_posts
from schemas.taxonomy import TAXONOMY

NOW = datetime(2025, 5, 27, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def invented():
    return [invent(0, index, NOW) for index in range(1000)]


def test_the_samples_come_as_they_are_in_their_file():
    posts = read_posts()
    assert len(posts) == len(SAMPLES.read_text(encoding="utf-8").splitlines())
    first = posts[1]
    assert (first.key, first.topic, first.posted_at) == ("p002", "成长", datetime(2025, 3, 1, 13, 50, tzinfo=UTC))
    assert first.coming[0].recommended
    assert first.coming[0].author_role == "professional"
    assert posts[0].notice


def test_an_invented_post_follows_from_its_seed_and_number_alone(invented):
    again = invent(0, 17, NOW)
    assert (again.title, again.description) == (invented[17].title, invented[17].description)
    assert [a.text for a in again.coming] == [a.text for a in invented[17].coming]
    assert invent(1, 17, NOW).description != again.description
    few, many = InventedWorld([], NOW, invented=20), InventedWorld([], NOW, invented=60)
    texts = {post.key: (post.posted_at, post.description) for post in many.newest()}
    assert all(texts[post.key] == (post.posted_at, post.description) for post in few.newest())


def test_invented_texts_differ_and_are_filled(invented):
    assert len({post.description for post in invented}) == len(invented)
    long = [answer.text for post in invented for answer in post.coming if len(answer.text) > 100]
    assert len(set(long)) == len(long)
    for post in invented:
        assert not {"{", "}"} & set(post.title + post.description + "".join(a.text for a in post.coming))
        assert set(post.subtopics) <= set(TAXONOMY[post.topic])


def test_figures_are_near_those_of_a_public_sample(invented):
    """PsyQA: title 23, body 180, answer 609 characters, 2.7 answers, 48 % with one."""
    numbers = Counter(len(post.coming) for post in invented)
    assert 18 <= mean(len(post.title) for post in invented) <= 28
    assert 140 <= mean(len(post.description) for post in invented) <= 220
    assert 350 <= mean(len(a.text) for post in invented if len(post.coming) < 100 for a in post.coming) <= 700
    assert 2.2 <= mean(len(post.coming) for post in invented if len(post.coming) < 100) <= 3.5
    assert 0.35 <= numbers[1] / len(invented) <= 0.5
    assert 0.08 <= numbers[0] / len(invented) <= 0.16
    # Answer pages on every site: more than 20 (Discourse, NodeBB) and 100 (Douban) answers.
    assert sum(n for count, n in numbers.items() if count > 20) > 5
    assert sum(n for count, n in numbers.items() if count > 100) == 2


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
        posts = replica.posts()
        assert changes["changed"] == [2]
        assert changes["new"] == list(range(3, len(posts) + 1)) != []
        changes = replica.tick(days=1, posts=7, answers=5)
        assert len(changes["new"]) >= 7
        assert changes["changed"]


def test_times_are_written_as_the_sites_write_them():
    """Now is noon in Shanghai. Discuz has the exact time in the title."""
    for ago, xinli001, discuz in (
        (timedelta(seconds=30), "刚刚", ">30&nbsp;秒前<"),
        (timedelta(minutes=34), "34分钟前", ">半小时前<"),
        (timedelta(hours=3), "3小时前", ">3&nbsp;小时前<"),
        (timedelta(hours=13), "昨天 23:00", ">昨天&nbsp;23:00<"),
        (timedelta(days=2), "2025-05-25", ">前天&nbsp;12:00<"),
        (timedelta(days=7), "2025-05-20", ">7&nbsp;天前<"),
    ):
        at = NOW - ago
        assert xinli001_time(at, NOW) == xinli001
        shown = discuz_time(at, NOW, discuz_exact(at))
        assert discuz in shown
        assert f'title="{discuz_exact(at)}"' in shown


def test_old_dates_of_discuz_have_no_zeros_and_json_has_utc():
    at = datetime(2025, 3, 1, 1, 5, tzinfo=UTC)
    assert discuz_time(at, NOW, discuz_exact(at)) == "2025-3-1 09:05:00"
    assert iso(at) == "2025-03-01T01:05:00.000Z"
