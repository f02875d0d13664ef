"""Messages: one of each cause and window, none swallowed without being counted, none lost where nobody takes it."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from message_receiver import Receiver

from pipelines.core.home import Home
from pipelines.errors import RequestError
from pipelines.operations.alerts.causes import Cause
from pipelines.operations.alerts.sending import OVERLAP, Refused, Sender, receivers, send

NOON = dt.datetime(2026, 11, 2, 4, tzinfo=dt.UTC)  # noon in Shanghai
WINDOW = dt.timedelta(minutes=30)


class Box:
    """Takes messages, unless it is shut."""

    def __init__(self) -> None:
        self.open, self.messages = True, list[tuple[str, str]]()

    def __call__(self, title: str, text: str) -> None:
        if not self.open:
            raise Refused("nobody took the message")
        self.messages.append((title, text))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


MOMENTS = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from("abc"), st.booleans()),  # minutes on, what comes, whether it is taken
    min_size=1,
    max_size=25,
)


@given(MOMENTS)
def test_every_time_that_a_cause_came_is_told_or_counted_whatever_is_refused(tmp_path_factory, moments):
    home, box, now, came = tmp_path_factory.mktemp("home"), Box(), NOON, Counter[str]()
    told_at: dict[str, list[dt.datetime]] = {}

    def look(key: str | None) -> None:
        before = len(box.messages)
        with suppress(Refused):
            sender = Sender(home, now, WINDOW, box)  # another process each time
            if key is not None:
                sender.event(Cause(key, key, "it came"))
                sender.save()
                came[key] += 1  # of one that nobody took the next look says it again
            sender.flush()
        for title, _ in box.messages[before:]:
            told_at.setdefault(title, []).append(now)

    for minutes, key, taken in moments:
        now += dt.timedelta(minutes=minutes)
        box.open = taken
        look(key)
    box.open, now = True, now + WINDOW
    look(None)
    counted = Counter[str]()
    for title, text in box.messages:
        again = re.search(r"and ([\d,]+) more", text)
        counted[title] += text.startswith("it came") + (int(again[1]) if again else 0)
    assert counted == came
    assert all(later - one >= WINDOW for times in told_at.values() for one, later in pairwise(times))


def test_what_stands_is_told_when_it_has_stood_long_enough_once_a_day_and_anew_after_it_was_mended(tmp_path: Path):
    box, stale = Box(), Cause("stale", "2 tables stay stale", patience=dt.timedelta(hours=36))
    full = Cause("disk", "the disk is full")
    told = []
    for hours in range(0, 97, 12):
        causes = [stale, full] if hours != 72 else [full]
        Sender(tmp_path, NOON + dt.timedelta(hours=hours), WINDOW, box).stand(causes)
        told.append([title for title, _ in box.messages])
        box.messages.clear()
    day = [["the disk is full"], []]
    assert told == [
        *day, ["the disk is full"], ["2 tables stay stale"], ["the disk is full"],
        ["2 tables stay stale"], ["the disk is full"], [], ["the disk is full"],
    ]  # fmt: skip


def test_what_comes_and_goes_is_told_once_a_window(tmp_path: Path):
    box, full = Box(), Cause("disk", "the disk is full")
    for minute in range(0, 90, 5):
        Sender(tmp_path, NOON + dt.timedelta(minutes=minute), WINDOW, box).stand([full] if minute % 10 == 0 else [])
    assert len(box.messages) == 3


def test_many_things_that_stand_are_one_message(tmp_path: Path):
    box, damaged = Box(), [Cause(f"damaged {n}", f"table {n} is damaged") for n in range(11)]
    Sender(tmp_path, NOON, WINDOW, box).stand(damaged)
    [(title, text)] = box.messages
    assert (title, text.count("\n")) == ("11 things stand", 10)
    Sender(tmp_path, NOON + WINDOW, WINDOW, box).stand(damaged)
    assert len(box.messages) == 1, "once a day"


def test_what_came_again_is_told_with_its_words(tmp_path: Path):
    box = Box()
    for minutes in (0, 5):
        sender = Sender(tmp_path, NOON + dt.timedelta(minutes=minutes), WINDOW, box)
        sender.event(Cause("run refresh", "refresh failed", "at the step clean_posts"))
        sender.save()
    Sender(tmp_path, NOON + WINDOW, WINDOW, box).flush()
    assert box.messages[1][0] == "refresh failed"
    assert box.messages[1][1].startswith("again: at the step clean_posts\nand 1 more")


def test_the_days_news_come_once_a_day_from_an_hour_on_and_a_clock_that_goes_back_silences_nothing(tmp_path: Path):
    box = Box()
    for hours in (-8, -2, 0, 5, 22, 23, 24):  # Shanghai is at noon
        Sender(tmp_path, NOON + dt.timedelta(hours=hours), WINDOW, box).daily(9, lambda: "nothing came")
    assert box.messages == [("news of 2026-11-02", "nothing came"), ("news of 2026-11-03", "nothing came")]
    Sender(tmp_path, NOON, WINDOW, box).daily(None, lambda: "never")
    Sender(tmp_path, NOON, WINDOW, box).event(Cause("a", "a"))
    Sender(tmp_path, NOON - dt.timedelta(hours=1), WINDOW, box).event(Cause("a", "a"))
    assert len(box.messages) == 4


def test_a_message_goes_to_all_receivers_and_one_that_is_dead_is_named_by_its_kind_alone(receiver: Receiver):
    dead = "jsons://secret:word@127.0.0.1:9/token"
    assert send([receiver.address, dead], "something failed", "line one\nline two") == ["jsons, number 2"]
    assert receiver.messages == [("gongqing: something failed", "line one\nline two")]
    receiver.status = 503
    with pytest.raises(Refused) as caught:
        send([receiver.address, dead], "t", "")
    assert "secret" not in str(caught.value)
    with pytest.raises(RequestError, match="receiver 1 is no address") as wrong:
        send(["nonsense-with-a-token"], "t", "")
    assert "token" not in str(wrong.value)


def test_receivers_are_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GONGQING_RECEIVERS", " json://a  feishu://b\n")
    assert receivers() == ["json://a", "feishu://b"]
    monkeypatch.delenv("GONGQING_RECEIVERS")
    assert receivers() == []


def test_where_what_was_told_cannot_be_read_that_is_told_and_it_goes_on(tmp_path: Path):
    box = Box()
    Home(tmp_path).alerts.write_text("[]", encoding="utf-8")
    Sender(tmp_path, NOON, WINDOW, box).event(Cause("a", "a"))
    Sender(tmp_path, NOON, WINDOW, box).flush()
    assert [title for title, _ in box.messages] == [
        "what was told before could not be read: from now on it is noted anew",
        "a",
    ]


def test_a_wrong_address_keeps_no_other_from_being_told(receiver: Receiver):
    wrong = "receiver 1 is no address of apprise"
    assert send(["nonsense", receiver.address], "something failed", "") == [wrong]
    assert receiver.messages == [("gongqing: something failed", "something failed")]


def test_a_redirect_is_not_taken_and_not_followed(receiver: Receiver):
    with Receiver() as other:
        receiver.status, receiver.location = 307, other.url
        with pytest.raises(Refused):
            send([receiver.address], "something failed", "")
        assert other.messages == []


def test_a_run_is_told_once_however_often_it_is_broken_off(tmp_path: Path):
    box, causes = Box(), [Cause("a", "a"), Cause("b", "b")]

    def one_is_taken(title: str, text: str) -> None:
        if box.messages:
            raise Refused("nobody took the message")
        box(title, text)

    with pytest.raises(Refused):
        Sender(tmp_path, NOON, WINDOW, one_is_taken).look_at("run", NOON, causes)
    Sender(tmp_path, NOON, WINDOW, box).look_at("run", NOON, causes)
    assert [title for title, _ in box.messages] == ["a", "b"]
    Sender(tmp_path, NOON + 2 * WINDOW, WINDOW, box).flush()
    assert len(box.messages) == 2, "neither came again"


def test_of_runs_within_the_overlap_none_is_forgotten_however_many(tmp_path: Path):
    sender = Sender(tmp_path, NOON, WINDOW, Box())
    for number in range(1500):
        sender.state.looked_at[f"run {number}"] = NOON
    sender.look_at("the last", NOON, [])
    assert len(sender.state.looked_at) == 1501
    sender.look_at("later", NOON + 2 * OVERLAP, [])
    assert list(sender.state.looked_at) == ["later"]


def test_a_clock_that_was_ahead_hides_nothing(tmp_path: Path):
    ahead = NOON + dt.timedelta(days=2)
    Sender(tmp_path, ahead, WINDOW, Box()).look_at("run", ahead, [])
    state = Sender(tmp_path, NOON, WINDOW, Box()).state
    assert (state.begun, state.cursor) == (NOON, NOON)


def test_what_stood_under_a_clock_that_was_ahead_is_told_in_its_time(tmp_path: Path):
    box, stale = Box(), Cause("stale", "tables stay stale", "", dt.timedelta(hours=36))
    Sender(tmp_path, NOON + dt.timedelta(days=900), WINDOW, box).stand([stale])
    for hours in range(0, 60, 6):
        Sender(tmp_path, NOON + dt.timedelta(hours=hours), WINDOW, box).stand([stale])
    assert len(box.messages) == 1
