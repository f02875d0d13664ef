"""Progress off a terminal: lines, some seconds apart, with the time that is left by the calls made so far."""

from decimal import Decimal
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipelines.cli.progress import Bars
from pipelines.llm.progress import Lines


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("pipelines.llm.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def said() -> list[str]:
    return []


def told(lines: Lines, clock, at: float, done: int, cached: int = 0, failed: int = 0, total: int = 1000) -> None:
    clock.now = 1000.0 + at
    lines.update("topics", total, done, cached, failed, Decimal("0.25"))


def test_a_line_every_five_seconds_with_the_time_left(clock, said):
    lines = Lines(said.append)
    for second in range(12):
        told(lines, clock, second, done=20 * second)
    assert said == [
        "topics: 100 of 1,000 done, 0 of them without a call, 0 failed, spent 0.2500, 45 s left",
        "topics: 200 of 1,000 done, 0 of them without a call, 0 failed, spent 0.2500, 40 s left",
    ]


def test_the_time_left_is_that_of_calls_not_of_what_was_there(clock, said):
    """900 of 1,000 came from the ledger at once; the other 100 take a second each."""
    lines = Lines(said.append)
    told(lines, clock, 0, done=0)
    told(lines, clock, 1, done=900, cached=900)
    told(lines, clock, 11, done=910, cached=900, failed=2)
    assert said == ["topics: 910 of 1,000 done, 900 of them without a call, 2 failed, spent 0.2500, 2 min left"]


def test_the_end_is_told_where_anything_was_called_and_only_there(clock, said):
    lines = Lines(said.append)
    told(lines, clock, 0, done=0)
    told(lines, clock, 1, done=1000, cached=1000)
    assert said == []
    told(lines, clock, 2, done=1000, cached=999)
    assert said == ["topics: 1,000 of 1,000 done, 999 of them without a call, 0 failed, spent 0.2500"]


def test_a_stage_begins_with_a_clock_of_its_own(clock, said):
    lines = Lines(said.append)
    told(lines, clock, 0, done=0)
    clock.now += 3600
    lines.update("emotions", 10, 0, 0, 0, Decimal(0))
    assert said == []


def test_bars_name_the_stage_what_was_spent_and_what_failed():
    console = Console(record=True, width=160, force_terminal=True)
    with Bars(console) as bars:
        for outcome in bars.over(["one"], 3):
            assert outcome == "one"
            bars.update("topics", 10, 0, 0, 0, Decimal(0))
            bars.update("topics", 10, 4, 3, 1, Decimal("1.5"))
            shown = bars._progress.get_renderable()
    console.print(shown)
    assert "3 without a call, 1 failed, spent 1.50" in console.export_text()


def test_an_upload_is_told_now_and_then_and_at_its_end(clock, said):
    lines = Lines(said.append)
    for at, done in ((10, 1_000_000), (11, 2_000_000), (15.5, 3_000_000), (16, 4_000_000)):
        clock.now = 1000.0 + at
        lines.moved("upload", done, 4_000_000)
    assert said == ["upload: 1.0 of 4.0 MB", "upload: 3.0 of 4.0 MB", "upload: 4.0 of 4.0 MB"]


def test_an_upload_has_a_bar():
    console = Console(record=True, width=160, force_terminal=True)
    with Bars(console) as bars:
        bars.moved("upload", 0, 4_000_000)
        bars.moved("upload", 3_000_000, 4_000_000)
        shown = bars._progress.get_renderable()
    console.print(shown)
    assert "3000/4000" in console.export_text()
