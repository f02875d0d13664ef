"""Which posts of a list are fetched, and where the walk ends."""

from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from crawlers.options import KEY_VARIABLE, Known, Options, read_options
from crawlers.records import Listed, ListPage, Moment
from crawlers.sites import find_site
from crawlers.walk import Walk

NOW = "2025-03-20T12:00+08:00"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Options of a window, 10 to 12 March unless said otherwise."""
    monkeypatch.setenv(KEY_VARIABLE, "k" * 16)

    def options(first: str = "2025-03-10", last: str = "2025-03-12", **said: str) -> Options:
        window = {"from_date": first, "until_date": last, "now": NOW, "base_url": "http://127.0.0.1:1"}
        return read_options(find_site("xinli001"), {**window, **said})

    return options


def day(number: int) -> date:
    return date(2025, 3, number)


def moment(number: int) -> Moment:
    return Moment(datetime(2025, 3, number, 4, tzinfo=UTC), "day", f"2025-03-{number:02d}")


def walk(options: Options, *, ordered: bool = True, had: dict[str, Known] | None = None) -> tuple[Walk, Counter[str]]:
    fates: Counter[str] = Counter()
    return Walk(options, had or {}, fates, {}, ordered=ordered), fates


def page(*posts: Listed, last: bool = False) -> ListPage:
    return ListPage(posts, None if last else "http://127.0.0.1:1/next", "x")


def names(posts: list[Listed]) -> list[str]:
    return [post.source_id for post in posts]


def dated(*days: int) -> list[Listed]:
    return [Listed(f"{number}", f"/{number}", posted=moment(number)) for number in days]


def undated(*ids: str) -> list[Listed]:
    return [Listed(name, f"/{name}") for name in ids]


def test_posts_of_the_window_are_fetched_and_no_others(asked):
    way, fates = walk(asked())
    assert names(way.read(page(*dated(14, 12, 11, 10, 9)), "1")) == ["12", "11", "10"]
    assert fates == {"fetch": 3, "outside": 2}


def test_the_walk_ends_with_a_page_that_is_older_as_a_whole(asked):
    way, _ = walk(asked())
    way.read(page(*dated(12, 9)), "1")
    way.settle("12", day(12))
    assert way.settled
    assert not way.ended
    assert way.read(page(*dated(9, 8)), "2") == []
    assert way.settled
    assert way.ended


def test_a_thread_stuck_on_top_does_not_end_it_nor_keep_it_going(asked):
    way, _ = walk(asked())
    old = Listed("1", "/1", posted=moment(1), pinned=True)
    way.read(page(old, *dated(11)), "1")
    assert not way.ended
    new = Listed("2", "/2", posted=moment(12), pinned=True)
    way.read(page(new, *dated(8)), "2")
    assert way.ended


def test_pages_in_front_of_the_window_cost_one_post_each_on_a_list_without_dates(asked):
    way, fates = walk(asked())
    assert names(way.read(page(*undated("9", "8", "7")), "1")) == ["7"]
    assert way.settle("7", day(15)) == []
    assert way.settled
    assert not way.ended
    assert names(way.read(page(*undated("6", "5", "4")), "2")) == ["4"]
    assert names(way.settle("4", day(11))) == ["6", "5"]
    assert not way.settled
    way.settle("6", day(13))
    way.settle("5", day(12))
    assert way.settled
    assert fates["outside"] == 2


def test_behind_the_window_the_first_post_tells_for_its_page(asked):
    way, fates = walk(asked("2025-03-10", "2025-03-20"))
    way.read(page(*undated("9", "8")), "1")
    way.settle("9", day(10))
    way.settle("8", day(9))
    assert names(way.read(page(*undated("7", "6", "5")), "2")) == ["7"]
    way.settle("7", day(8))
    assert way.settled
    assert way.ended
    assert fates["outside"] == 2


def test_where_the_one_that_tells_can_not_be_read_all_are_fetched(asked):
    way, _ = walk(asked())
    assert names(way.read(page(*undated("9", "8", "7")), "1")) == ["7"]
    assert names(way.settle("7", None)) == ["9", "8"]


def test_a_list_by_last_answer_ends_by_the_last_answers_and_not_by_old_threads_on_top(asked):
    way, fates = walk(asked(), ordered=False)
    bumped = [Listed(f"{n}", f"/{n}", posted=moment(1), active=moment(19)) for n in range(3)]
    assert way.read(page(*bumped), "1") == []
    assert fates == {"outside": 3}
    assert not way.ended
    quiet = [Listed("8", "/8", posted=moment(1), active=moment(9)), Listed("9", "/9", active=moment(8))]
    assert way.read(page(*quiet), "2") == []
    assert way.ended


def test_unchanged_posts_are_not_fetched_and_changed_ones_are(asked, tmp_path):
    seen = tmp_path / "seen.jsonl"
    line = '{"source_id": "%s", "fingerprint": %s, "posted_at": "2025-03-11T04:00:00+00:00"}\n'
    seen.write_text("".join(line % pair for pair in [("1", '"2"'), ("2", '"2"'), ("3", "null")]), encoding="utf-8")
    way, fates = walk(asked(seen=str(seen)))
    posts = [Listed("1", "/1", "2"), Listed("2", "/2", "3"), Listed("3", "/3", None)]
    assert names(way.read(page(*posts), "1")) == ["2", "3"]
    assert fates == {"unchanged": 1, "fetch": 2}


def test_posts_that_could_not_be_read_are_fetched_though_the_list_shows_them_as_they_were(asked, tmp_path):
    seen = tmp_path / "seen.jsonl"
    seen.write_text('{"source_id": "1", "fingerprint": "2", "posted_at": null, "unread": true}\n', encoding="utf-8")
    way, fates = walk(asked(seen=str(seen)))
    assert names(way.read(page(Listed("1", "/1", "2")), "1")) == ["1"]
    assert fates == {"fetch": 1}


def test_a_post_whose_day_an_earlier_crawl_knows_is_not_fetched_outside_the_window(asked, tmp_path):
    seen = tmp_path / "seen.jsonl"
    seen.write_text('{"source_id": "1", "fingerprint": null, "posted_at": "2025-03-01T04:00:00+00:00"}\n', "utf-8")
    way, fates = walk(asked(seen=str(seen)))
    assert way.read(page(*undated("1")), "1") == []
    assert way.ended
    assert fates == {"outside": 1}


def test_what_is_taken_down_or_had_is_not_fetched(asked, tmp_path):
    takedown = tmp_path / "takedown.txt"
    takedown.write_text("# asked for on 1 March\nxinli001:1\n2  # bare\nreplica:3\n", encoding="utf-8")
    way, fates = walk(asked(takedown=str(takedown)), had={"4": Known(None, day(11), None)})
    assert names(way.read(page(*undated("1", "2", "3", "4")), "1")) == ["3"]
    assert fates == {"takedown": 2, "fetch": 1, "had": 1}


def test_a_post_that_moved_to_the_next_page_is_fetched_once(asked):
    way, fates = walk(asked("2025-03-01", "2025-03-20"))
    assert names(way.read(page(*undated("3", "2")), "1")) == ["3", "2"]
    assert names(way.read(page(*undated("2", "1")), "2")) == ["1"]
    assert fates == {"fetch": 3, "repeated": 1}


def test_the_walk_stops_at_the_last_known_id(asked):
    way, fates = walk(asked("2025-03-01", "2025-03-20", since_id="5"))
    assert names(way.read(page(*undated("7", "6", "5")), "1")) == ["7", "6"]
    assert not way.ended
    assert way.read(page(*undated("4", "3")), "2") == []
    assert way.ended
    assert fates["outside"] == 3


def test_a_share_is_chosen_by_the_ids_alone(asked):
    posts = undated(*map(str, range(200)))
    chosen = [names(walk(asked("2025-03-01", "2025-03-20", sample="0.2"))[0].read(page(*posts), "1")) for _ in "12"]
    assert chosen[0] == chosen[1]
    assert 20 < len(chosen[0]) < 60


def test_a_list_whose_next_page_leads_back_ends(asked):
    way, _ = walk(asked())
    way.read(ListPage(tuple(dated(12)), "http://a/1", "x"), "http://a/1")
    way.settle("12", day(12))
    assert way.ended


@pytest.mark.parametrize(("oldest", "first"), [(9, False), (10, True)])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_list_that_ends_before_anything_older_than_the_window_was_met(asked, oldest, first, ordered):
    way, _ = walk(asked(), ordered=ordered)
    assert not way.ended_first  # nothing was read yet
    posts = dated(12, oldest) if ordered else [Listed("1", "/1", posted=moment(1), active=moment(oldest))]
    for post in way.read(page(*posts, last=True), "1"):
        assert not way.ended_first  # something is still under way
        way.settle(post.source_id, day(int(post.source_id)))
    assert way.ended
    assert way.ended_first is first


def test_a_list_that_was_not_walked_to_its_last_page_did_not_end_first(asked):
    way, _ = walk(asked(since_id="5"))
    way.read(page(*undated("4", "3"), last=True), "1")
    assert way.ended
    assert not way.ended_first
    way, _ = walk(asked())
    way.read(page(), "1")
    assert not way.ended_first
