"""The replica's posts and its clock: invented, seeded, and appearing when their time has come."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import mean

import pytest

from samples.replica.page import discuz_exact, discuz_time, iso, xinli001_time
from samples.replica.posts import SAMPLES, invent, read_posts
from samples.replica.world import World
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


def test_invented_texts_differ(invented):
    assert len({post.description for post in invented}) == len(invented)
    long = [answer.text for post in invented for answer in post.coming if len(answer.text) > 100]
    assert len(set(long)) == len(long)


def test_nothing_is_left_unfilled(invented):
    for post in invented:
        assert not {"{", "}"} & set(post.title + post.description + "".join(a.text for a in post.coming))


def test_figures_are_near_those_of_a_public_sample(invented):
    """PsyQA: title 23, body 180, answer 609 characters, 2.7 answers, 48 % with one."""
    numbers = Counter(len(post.coming) for post in invented)
    assert 18 <= mean(len(post.title) for post in invented) <= 28
    assert 140 <= mean(len(post.description) for post in invented) <= 220
    assert 350 <= mean(len(a.text) for post in invented if len(post.coming) < 100 for a in post.coming) <= 700
    assert 2.2 <= mean(len(post.coming) for post in invented if len(post.coming) < 100) <= 3.5
    assert 0.35 <= numbers[1] / len(invented) <= 0.5
    assert 0.08 <= numbers[0] / len(invented) <= 0.16


def test_there_are_answer_pages_on_every_site(invented):
    """More than 10 (Xinli001, Discuz), 20 (Discourse, NodeBB) and 100 (Douban)."""
    numbers = [len(post.coming) for post in invented]
    assert sum(n > 10 for n in numbers) > 20
    assert sum(n > 20 for n in numbers) > 5
    assert sum(n > 100 for n in numbers) == 2


def test_topics_are_those_of_the_taxonomy(invented):
    assert {post.topic for post in invented} == set(TAXONOMY)
    for post in invented:
        assert set(post.subtopics) <= set(TAXONOMY[post.topic])


def test_numbers_ascend_with_time():
    world = World(read_posts(), NOW, invented=200)
    newest = world.newest()
    assert [post.number for post in newest] == list(range(len(newest), 0, -1))
    assert all(a.posted_at >= b.posted_at for a, b in pairwise(newest))
    answers = sorted((a.number, a.posted_at) for post in newest for a in post.answers)
    assert all(a[1] <= b[1] for a, b in pairwise(answers))


def test_more_posts_change_none():
    few, many = World([], NOW, invented=20), World([], NOW, invented=60)
    texts = {post.key: (post.posted_at, post.description) for post in many.newest()}
    assert all(texts[post.key] == (post.posted_at, post.description) for post in few.newest())


def test_what_is_later_than_the_clock_is_not_there():
    """At ten in the evening of 1 March p001 and p002 are there; the answers to p002 come in the next ten hours."""
    world = World(read_posts(), datetime(2025, 3, 1, 14, tzinfo=UTC))
    assert [(post.key, len(post.answers)) for post in world.newest()] == [("p002", 0), ("p001", 0)]
    told = world.tick(days=1)
    assert told["changed"] == [2]
    assert told["new"] == list(range(3, len(world.newest()) + 1)) != []
    assert all(post.active_at <= world.now() for post in world.newest())


def test_a_tick_brings_what_was_asked_for():
    world = World([], NOW, invented=50)
    known = {post.number: len(post.answers) for post in world.newest()}
    told = world.tick(days=1, posts=7, answers=5)
    assert told["new"] == list(range(51, 58))
    assert world.now() == NOW + timedelta(days=1)
    assert set(told["changed"]) == {n for n, count in known.items() if len(world.post(n).answers) > count}
    assert all(NOW < post.posted_at < world.now() for post in world.newest()[:7])


def test_a_tick_of_no_time_brings_posts_at_once():
    world = World([], NOW)
    assert world.tick(posts=3)["new"] == [1, 2, 3]
    assert world.tick(answers=1)["changed"]


def test_the_clock_runs_unless_it_is_told_to_stand():
    assert World([]).now() < World([]).now() + timedelta(seconds=1)
    assert World([], NOW).now() == NOW


def test_the_most_active_post_leads_the_forums_lists():
    world = World([], NOW, invented=50)
    active = [post.active_at for post in world.most_active()]
    assert active == sorted(active, reverse=True)


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=30), "刚刚"),
        (timedelta(minutes=34), "34分钟前"),
        (timedelta(hours=3), "3小时前"),
        (timedelta(hours=13), "昨天 23:00"),
        (timedelta(days=2), "2025-05-25"),
    ],
)
def test_xinli001_says_when(ago, said):
    """Now is noon in Shanghai."""
    assert xinli001_time(NOW - ago, NOW) == said


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(0), ">刚刚<"),
        (timedelta(seconds=30), ">30&nbsp;秒前<"),
        (timedelta(minutes=5), ">5&nbsp;分钟前<"),
        (timedelta(minutes=40), ">半小时前<"),
        (timedelta(hours=3), ">3&nbsp;小时前<"),
        (timedelta(hours=13), ">昨天&nbsp;23:00<"),
        (timedelta(days=2), ">前天&nbsp;12:00<"),
        (timedelta(days=7), ">7&nbsp;天前<"),
    ],
)
def test_discuz_says_when_with_the_exact_time_in_the_title(ago, said):
    shown = discuz_time(NOW - ago, NOW, discuz_exact(NOW - ago))
    assert said in shown
    assert f'title="{discuz_exact(NOW - ago)}"' in shown


def test_discuz_writes_old_dates_without_zeros():
    at = datetime(2025, 3, 1, 1, 5, tzinfo=UTC)
    assert discuz_time(at, NOW, discuz_exact(at)) == "2025-3-1 09:05:00"


def test_json_has_utc():
    assert iso(datetime(2025, 3, 1, 1, 5, tzinfo=UTC)) == "2025-03-01T01:05:00.000Z"
