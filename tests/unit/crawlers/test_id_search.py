"""A walk over ids: the search for the end of a window never passes a post of it, and is short where ids are dense."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.dates import Days, Window
from crawlers.errors import RequestRefused
from crawlers.id_search import A_PAGE, IdSearch, page_of_ids
from crawlers.options import read_ids
from crawlers.sites import find_site

FIRST = date(2020, 1, 1)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def search(ids: range, window: Window, posts: dict[int, int]) -> tuple[int, int]:
    """Where the walk begins, and how many posts were looked at; `posts` are days by id."""
    search, n_probes = IdSearch(ids, window), 0
    while (probe := search.probe) is not None:
        n_probes += 1
        search.take(Days(day(posts[probe]), day(posts[probe])) if probe in posts else None)
    return search.stop, n_probes


@given(st.lists(st.integers(0, 3), max_size=300), st.sets(st.integers(0, 299)), st.integers(0, 300), st.integers(0, 40))
def test_no_post_of_the_window_lies_above_where_the_walk_begins(steps, gone, first, length):
    ids, at, posts = range(1000, 1000 + len(steps)), 0, {}
    for number, step in zip(ids, steps, strict=True):
        at += step
        if number - 1000 not in gone:
            posts[number] = at
    stop, _ = search(ids, Window(day(first), day(first + length)), posts)
    assert all(number < stop for number, at in posts.items() if first <= at <= first + length)
    assert stop <= ids.stop


def test_a_window_of_years_ago_is_found_by_a_few_posts():
    """180 posts a day over four years; one id in ten is gone."""
    ids = range(100_571_275, 100_841_638)
    posts = {number: (number - ids.start) // 180 for number in ids if number % 10}
    stop, n_probes = search(ids, Window(day(400), day(406)), posts)
    assert ids.start + 407 * 180 <= stop <= ids.start + 407 * 180 + A_PAGE
    assert n_probes <= 25


def test_where_ids_are_not_in_the_order_of_days_or_too_sparse_the_walk_begins_at_the_end():
    ids = range(1, 1001)
    backwards = {number: 1000 - number for number in ids}
    assert search(ids, Window(day(1), day(2)), backwards)[0] == ids.stop
    assert search(ids, Window(day(1), day(2)), {1: 1, 1000: 9}) == (ids.stop, 50)


def test_pages_of_ids_go_down_and_end_at_the_lowest():
    pages, stop = [], 1026
    while stop:
        page = page_of_ids(range(1001, 1026), stop, lambda number: f"/qa/{number}")
        pages.append([int(post.source_id) for post in page.posts])
        stop = int(page.next_url or 0)
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [number for page in pages for number in page] == list(range(1025, 1000, -1))


def test_ids_that_are_none_and_sites_that_have_no_address_for_them_are_refused():
    assert read_ids(find_site("xinli001"), "7-9") == range(7, 10)
    for text in ("9-7", "7", "0-9", "7-9-11", "-7", "a-b", f"1-{10**18}"):
        with pytest.raises(RequestRefused, match="are no ids"):
            read_ids(find_site("xinli001"), text)
    with pytest.raises(RequestRefused, match="discuz have no address"):
        read_ids(find_site("example_discuz"), "7-9")
