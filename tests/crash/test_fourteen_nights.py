"""Fourteen nights on one home: in the end its tables are those of one refresh of all that came, and nothing is lost.

A real crawl of the replica each night, then a refresh. Posts and late answers come in; a site is blocked, at once or
halfway, a disk is full, a refresh and the daemon are killed, a clock is set back, somebody's words are erased,
Dagster's database and a table are lost.
"""

import datetime as dt
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawl_home import Home
from killing import current, done, home_with, killed, prints, require_sound, states_of_runs
from troubled_replica import Replica, Troubles
from web_ui import launch, member, tree, wait_until, wait_until_gone, web_ui

from crawlers.dates import SHANGHAI, day_of
from pipelines.defs.jobs import REFRESH
from pipelines.errors import CrawlFailed, DamagedVersion, StorageFull
from pipelines.flow.refresh import refresh
from pipelines.operations.alerts.causes import standing_causes
from pipelines.operations.erase.erasing import erase
from pipelines.operations.erase.survey import Request
from pipelines.settings import Settings
from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.drill("kill"), pytest.mark.timeout(1200)]

NIGHTS, FIRST = 14, dt.datetime(2025, 5, 20, 2, 40, tzinfo=SHANGHAI)
DAY = dt.timedelta(days=1)
PROGRAM = (sys.executable, "-c", "from pipelines.cli import main; main()")  # no model answers
ROOM = "size=20g"  # in memory, but for what is used: less is told


class Nights:
    """The home, the replica, and the nights that are not as others."""

    def __init__(self, disk: Any, replica: Replica) -> None:
        self.home, self.replica, self.now = Home(disk.folder, replica), replica, FIRST
        self.disk, self.folder, self.erased = disk, disk.folder, ""
        self.standing: dict[int, list[str]] = {}  # what somebody should know, in the morning after each night
        self.faults: dict[int, Callable[[], None]] = {
            2: self.site_is_blocked,
            4: lambda: self.site_is_blocked(after=6),
            5: self.disk_is_full,
            6: self.refresh_is_killed,
            7: self.clock_is_set_back,
            8: self.words_are_erased,
            10: self.dagsters_database_is_lost,
            11: self.daemon_is_killed,
            12: self.table_is_damaged,
        }

    def crawl(self) -> None:
        """Yesterday and the two days before it."""
        yesterday = self.now.date() - DAY
        self.home.crawl(yesterday - 2 * DAY, yesterday, now=self.now.isoformat())

    def refresh(self) -> None:
        refresh(self.folder, Settings())

    def night(self, number: int) -> None:
        self.now = dt.datetime.fromisoformat(self.replica.tick(days=1, posts=8, answers=6)["now"]).astimezone(SHANGHAI)
        self.faults.get(number, self.ordinary)()
        if standing := self.causes():
            self.standing[number] = standing

    def ordinary(self) -> None:
        self.crawl()
        self.refresh()

    def causes(self) -> list[str]:
        return [cause.key for cause in standing_causes(self.folder, Settings(), self.now)]

    def site_is_blocked(self, after: int = 0) -> None:
        """After some pages. The next night's window reaches back to the days that were missed."""
        self.replica.server.trouble = Troubles(wall="challenge", wall_after=after)
        yesterday = self.now.date() - DAY
        job = self.home.prepare(yesterday - 2 * DAY, yesterday, base_url=self.replica.url, delays=False)
        self.home.fork(job, self.now.isoformat())
        with pytest.raises(CrawlFailed):
            self.home.collect(job)
        assert any(key.startswith("crawl replica") for key in self.causes()), "somebody is told"
        self.replica.server.trouble = Troubles()

    def disk_is_full(self) -> None:
        self.crawl()
        before = current(self.folder)
        assert "disk" not in self.causes()
        self.disk.leave(20_000)
        with pytest.raises(StorageFull):
            self.refresh()
        assert current(self.folder) == before
        assert "disk" in self.causes()
        self.disk.remount(ROOM)
        self.refresh()

    def refresh_is_killed(self) -> None:
        self.crawl()
        killed(self.folder, "refresh", when=prints("clean_posts"), program=PROGRAM)
        self.refresh()

    def clock_is_set_back(self) -> None:
        self.now -= dt.timedelta(hours=1)
        self.ordinary()

    def words_are_erased(self) -> None:
        self.erased = self.home.rows().sort("posted_at")["post_id"][-3]
        erase(self.folder, Request(rows=(self.erased,)))
        self.ordinary()

    def dagsters_database_is_lost(self) -> None:
        shutil.rmtree(self.folder / ".dagster")
        self.crawl()
        done(self.folder, "refresh", program=PROGRAM)

    def daemon_is_killed(self) -> None:
        """While a run of its queue is at work, which ends with it."""
        self.crawl()
        with web_ui(self.folder) as ui:
            launch(ui, REFRESH)
            wait_until(lambda: "STARTED" in states_of_runs(self.folder), 120)
            processes = tree(ui.process.pid)
            os.kill(member(ui, "dagster._daemon"), signal.SIGKILL)
            assert ui.process.wait(timeout=120) == 1, "so that a service starts it again"
            assert "the web UI has ended, for the daemon, process" in ui.log.read_text(encoding="utf-8")
            wait_until_gone(processes)
        done(self.folder, "refresh", program=PROGRAM)

    def table_is_damaged(self) -> None:
        """What can be made again is made again."""
        self.crawl()
        self.refresh()
        store = Store(self.folder / "data")
        folder = self.folder / "data" / "unique_posts" / store.version("unique_posts").version
        [file, *_] = sorted((folder / "rows").rglob("*.parquet"))
        whole = file.read_bytes()
        file.chmod(0o600)
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DamagedVersion):
            store.verify(store.version("unique_posts"))
        assert any("unique_posts" in key for key in self.causes())
        refresh(self.folder, Settings(), ["unique_posts"])  # as the error says
        store.verify(store.version("unique_posts"))


def test_good_and_bad_nights_end_where_one_refresh_of_all_that_came_does(disk: Any, tmp_path: Path):
    with Replica(posts=200, now=f"{FIRST:%Y-%m-%d %H:%M}", days=9) as replica:
        disk.remount(ROOM)
        nights = Nights(disk, replica)
        nights.home.crawl(FIRST.date() - 8 * DAY, FIRST.date() - DAY, now=FIRST.isoformat())
        nights.refresh()
        for number in range(1, NIGHTS + 1):
            nights.night(number)
        rows = nights.home.rows()
        there = {
            f"replica:{post['ids']['xinli001']}"
            for post in replica.posts()
            if FIRST.date() - 8 * DAY <= day_of(dt.datetime.fromisoformat(post["posted_at"])) < nights.now.date()
        }
    assert len(there) > 150
    assert rows["post_id"].is_unique().all(), "none is doubled"
    assert set(rows["post_id"]) == there - {nights.erased}, "none is lost but what was erased"
    require_sound(nights.folder)
    assert nights.standing == {night: ["crawl replica blocked"] for night in (2, 4)}, "nothing else is left to mend"
    assert not any(one.ran for one in refresh(nights.folder, Settings()))

    once = home_with(nights.folder, tmp_path / "once", ["raw_posts", "splits"])
    refresh(once, Settings())
    assert current(once) == current(nights.folder)
