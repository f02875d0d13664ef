"""Progress off a terminal: lines, some seconds apart, with the time that is left by the calls made so far."""

from decimal import Decimal
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipelines.cli.terminal import Bars
from pipelines.llm.progress import Lines


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until it is moved."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("pipelines.llm.progress.time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def shown(clock: SimpleNamespace, *updates: tuple[float, str, int, int, int]) -> list[str]:
    """The lines of a stage of 1,000 questions: so many seconds after the start, so many done, cached, and failed."""
    printed: list[str] = []
    lines = Lines(printed.append)
    for at, stage, *numbers in updates:
        clock.now = 1000.0 + at
        lines.update(stage, 1000, *numbers, Decimal("0.25"))
    return printed


def test_a_line_every_five_seconds_with_the_time_left(clock):
    of_topics = [(second, "topics", 20 * second, 0, 0) for second in range(12)]
    assert shown(clock, *of_topics, (3600, "emotions", 0, 0, 0)) == [
        "topics: 100 of 1,000 done, 0 of them without a call, 0 failed, spent 0.2500, 45 s left",
        "topics: 200 of 1,000 done, 0 of them without a call, 0 failed, spent 0.2500, 40 s left",
    ], "a stage begins with a clock of its own"


def test_the_time_left_is_that_of_calls_not_of_what_was_there(clock):
    """900 of 1,000 came from the ledger at once; the other 100 take a second each."""
    printed = shown(clock, (0, "topics", 0, 0, 0), (1, "topics", 900, 900, 0), (11, "topics", 910, 900, 2))
    assert printed == ["topics: 910 of 1,000 done, 900 of them without a call, 2 failed, spent 0.2500, 2 min left"]


def test_the_end_is_told_where_anything_was_called_and_only_there(clock):
    begun = (0, "topics", 0, 0, 0)
    assert shown(clock, begun, (1, "topics", 1000, 1000, 0)) == []
    printed = shown(clock, begun, (2, "topics", 1000, 999, 0))
    assert printed == ["topics: 1,000 of 1,000 done, 999 of them without a call, 0 failed, spent 0.2500"]


def test_an_upload_is_told_now_and_then_and_at_its_end(clock):
    printed: list[str] = []
    lines = Lines(printed.append)
    for at, done in ((10, 1_000_000), (11, 2_000_000), (15.5, 3_000_000), (16, 4_000_000)):
        clock.now = 1000.0 + at
        lines.moved("upload", done, 4_000_000)
    assert printed == ["upload: 1.0 of 4.0 MB", "upload: 3.0 of 4.0 MB", "upload: 4.0 of 4.0 MB"]


def test_bars_name_the_stage_what_was_spent_and_what_failed():
    console = Console(record=True, width=160, force_terminal=True)
    with Bars(console) as bars:
        bars.advance(0, 3)
        bars.update("topics", 10, 0, 0, 0, Decimal(0))
        bars.update("topics", 10, 4, 3, 1, Decimal("1.5"))
        bars.moved("upload", 0, 4_000_000)
        bars.moved("upload", 3_000_000, 4_000_000)
        shown = bars._progress.get_renderable()
    console.print(shown)
    text = console.export_text()
    assert "3 without a call, 1 failed, spent 1.50" in text
    assert "3000/4000" in text
