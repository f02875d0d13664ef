"""Which posts of a list are fetched, and where the list ends; a walk over ids never passes a post of the window."""

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.dates import Days, Window
from crawlers.errors import RequestRefused
from crawlers.frontier import A_PAGE, IdSearch, ListFrontier, page_of_ids
from crawlers.options import KEY_VARIABLE, Known, Options, read_ids, read_options
from crawlers.records import Listed, ListPage, Moment
from crawlers.sites import find_site

NOW = "2025-03-20T12:00+08:00"
FIRST = date(2020, 1, 1)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Options of a window, 10 to 12 March unless said otherwise."""
    monkeypatch.setenv(KEY_VARIABLE, "k" * 16)

    def options(first: str = "2025-03-10", last: str = "2025-03-12", **more: str) -> Options:
        days = {"from_date": first, "until_date": last, "now": NOW, "base_url": "http://127.0.0.1:1"}
        return read_options(find_site("xinli001"), {**days, **more})

    return options


def day(number: int) -> date:
    return date(2025, 3, number)


def moment(number: int) -> Moment:
    return Moment(datetime(2025, 3, number, 4, tzinfo=UTC), "day", f"2025-03-{number:02d}")


def frontier_of(
    options: Options, *, ordered: bool = True, had: dict[str, Known] | None = None
) -> tuple[ListFrontier, Counter[str]]:
    outcomes: Counter[str] = Counter()
    return ListFrontier(options, had or {}, outcomes, {}, ordered=ordered), outcomes


def page(*posts: Listed, last: bool = False) -> ListPage:
    return ListPage(posts, None if last else "http://127.0.0.1:1/next")


def names(posts: list[Listed]) -> list[str]:
    return [post.source_id for post in posts]


def dated(*days: int) -> list[Listed]:
    return [Listed(f"{number}", f"/{number}", posted=moment(number)) for number in days]


def undated(*ids: str) -> list[Listed]:
    return [Listed(name, f"/{name}") for name in ids]


def test_posts_of_the_window_are_fetched_and_a_page_that_is_older_as_a_whole_ends_the_list(window):
    frontier, outcomes = frontier_of(window())
    assert names(frontier.read(page(*dated(14, 12, 9)), "1")) == ["12"]
    assert outcomes == {"fetch": 1, "outside": 2}
    frontier.settle("12", day(12))
    assert (frontier.settled, frontier.ended) == (True, False)
    assert frontier.read(page(*dated(8, 7)), "2") == []
    assert (frontier.settled, frontier.ended) == (True, True)


def test_a_thread_stuck_on_top_does_not_end_it_nor_keep_it_going(window):
    frontier, _ = frontier_of(window())
    old = Listed("1", "/1", posted=moment(1), pinned=True)
    frontier.read(page(old, *dated(11)), "1")
    assert not frontier.ended
    new = Listed("2", "/2", posted=moment(12), pinned=True)
    frontier.read(page(new, *dated(8)), "2")
    assert frontier.ended


def test_pages_in_front_of_the_window_cost_one_post_each_on_a_list_without_dates(window):
    frontier, outcomes = frontier_of(window())
    assert names(frontier.read(page(*undated("9", "8", "7")), "1")) == ["7"]
    assert frontier.settle("7", day(15)) == []
    assert frontier.settled
    assert not frontier.ended
    assert names(frontier.read(page(*undated("6", "5", "4")), "2")) == ["4"]
    assert names(frontier.settle("4", day(11))) == ["6", "5"]
    assert not frontier.settled
    frontier.settle("6", day(13))
    frontier.settle("5", day(12))
    assert frontier.settled
    assert outcomes["outside"] == 2


def test_behind_the_window_the_first_post_tells_for_its_page(window):
    frontier, outcomes = frontier_of(window("2025-03-10", "2025-03-20"))
    frontier.read(page(*undated("9", "8")), "1")
    frontier.settle("9", day(10))
    frontier.settle("8", day(9))
    assert names(frontier.read(page(*undated("7", "6", "5")), "2")) == ["7"]
    frontier.settle("7", day(8))
    assert frontier.settled
    assert frontier.ended
    assert outcomes["outside"] == 2


def test_where_the_one_that_tells_can_not_be_read_all_are_fetched(window):
    frontier, _ = frontier_of(window())
    assert names(frontier.read(page(*undated("9", "8", "7")), "1")) == ["7"]
    assert names(frontier.settle("7", None)) == ["9", "8"]


def test_a_list_by_last_answer_ends_by_the_last_answers_and_not_by_old_threads_on_top(window):
    frontier, outcomes = frontier_of(window(), ordered=False)
    bumped = [Listed(f"{n}", f"/{n}", posted=moment(1), active=moment(19)) for n in range(3)]
    assert frontier.read(page(*bumped), "1") == []
    assert outcomes == {"outside": 3}
    assert not frontier.ended
    quiet = [Listed("8", "/8", posted=moment(1), active=moment(9)), Listed("9", "/9", active=moment(8))]
    assert frontier.read(page(*quiet), "2") == []
    assert frontier.ended


def test_what_an_earlier_crawl_knows_of_a_post_decides(window, tmp_path):
    """Unchanged, changed, without a fingerprint, not to be read, of a day outside the window."""
    seen, at = tmp_path / "seen.jsonl", "2025-03-11T04:00:00+00:00"
    lines: list[dict[str, object]] = [
        {"source_id": "1", "fingerprint": "2", "posted_at": at},
        {"source_id": "2", "fingerprint": "2", "posted_at": at},
        {"source_id": "3", "fingerprint": None, "posted_at": at},
        {"source_id": "4", "fingerprint": "2", "posted_at": None, "unread": True},
        {"source_id": "5", "fingerprint": None, "posted_at": "2025-03-01T04:00:00+00:00"},
    ]
    seen.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    frontier, outcomes = frontier_of(window(seen=str(seen)))
    shown = {"1": "2", "2": "3", "3": None, "4": "2", "5": None}
    assert names(frontier.read(page(*(Listed(i, f"/{i}", print_) for i, print_ in shown.items())), "1")) == [*"234"]
    assert outcomes == {"unchanged": 1, "fetch": 3, "outside": 1}
    assert frontier.behind


def test_what_is_taken_down_or_had_is_not_fetched(window, tmp_path):
    takedown = tmp_path / "takedown.txt"
    takedown.write_text("# asked for on 1 March\nxinli001:1\n2  # bare\nreplica:3\n", encoding="utf-8")
    frontier, outcomes = frontier_of(window(takedown=str(takedown)), had={"4": Known(None, day(11), None)})
    assert names(frontier.read(page(*undated("1", "2", "3", "4")), "1")) == ["3"]
    assert outcomes == {"takedown": 2, "fetch": 1, "had": 1}


def test_a_post_that_moved_to_the_next_page_is_fetched_once(window):
    frontier, outcomes = frontier_of(window("2025-03-01", "2025-03-20"))
    assert names(frontier.read(page(*undated("3", "2")), "1")) == ["3", "2"]
    assert names(frontier.read(page(*undated("2", "1")), "2")) == ["1"]
    assert outcomes == {"fetch": 3, "repeated": 1}


def test_a_list_whose_next_page_leads_back_ends(window):
    frontier, _ = frontier_of(window())
    frontier.read(ListPage(tuple(dated(12)), "http://a/1"), "http://a/1")
    frontier.settle("12", day(12))
    assert frontier.ended


@pytest.mark.parametrize(("oldest", "first"), [(9, False), (10, True)])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_list_that_ends_before_anything_older_than_the_window_was_met(window, oldest, first, ordered):
    frontier, _ = frontier_of(window(), ordered=ordered)
    assert not frontier.ended_first  # nothing was read yet
    posts = dated(12, oldest) if ordered else [Listed("1", "/1", posted=moment(1), active=moment(oldest))]
    for post in frontier.read(page(*posts, last=True), "1"):
        assert not frontier.ended_first  # something is still under way
        frontier.settle(post.source_id, day(int(post.source_id)))
    assert frontier.ended
    assert frontier.ended_first is first


def day_of_id(number: int) -> date:
    return FIRST + timedelta(days=number)


def search(ids: range, window: Window, posts: dict[int, int]) -> tuple[int, int]:
    """Where the walk begins, and how many posts were looked at; `posts` are days by id."""
    search, n_probes = IdSearch(ids, window), 0
    while (probe := search.probe) is not None:
        n_probes += 1
        search.take(Days(day_of_id(posts[probe]), day_of_id(posts[probe])) if probe in posts else None)
    return search.stop, n_probes


@given(st.lists(st.integers(0, 3), max_size=300), st.sets(st.integers(0, 299)), st.integers(0, 300), st.integers(0, 40))
def test_no_post_of_the_window_lies_above_where_the_walk_begins(steps, gone, first, length):
    ids, at, posts = range(1000, 1000 + len(steps)), 0, {}
    for number, step in zip(ids, steps, strict=True):
        at += step
        if number - 1000 not in gone:
            posts[number] = at
    stop, _ = search(ids, Window(day_of_id(first), day_of_id(first + length)), posts)
    assert all(number < stop for number, at in posts.items() if first <= at <= first + length)
    assert stop <= ids.stop


def test_a_window_of_years_ago_is_found_by_a_few_posts():
    """180 posts a day over four years; one id in ten is gone."""
    ids = range(100_571_275, 100_841_638)
    posts = {number: (number - ids.start) // 180 for number in ids if number % 10}
    stop, n_probes = search(ids, Window(day_of_id(400), day_of_id(406)), posts)
    assert ids.start + 407 * 180 <= stop <= ids.start + 407 * 180 + A_PAGE
    assert n_probes <= 25


def test_where_ids_are_not_in_the_order_of_days_or_too_sparse_the_walk_begins_at_the_end():
    ids = range(1, 1001)
    backwards = {number: 1000 - number for number in ids}
    assert search(ids, Window(day_of_id(1), day_of_id(2)), backwards)[0] == ids.stop
    assert search(ids, Window(day_of_id(1), day_of_id(2)), {1: 1, 1000: 9}) == (ids.stop, 50)


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
