"""Whether a page has changed under a selector: what a crawl brought, against the week before it."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

import pytest
from crawl_home import DAY, Home, answer, end_of, item, job_of
from troubled_replica import Replica

from crawlers.sites import FOLDER
from pipelines.crawl.collecting import Coverage, coverage
from pipelines.crawl.jobs import Job

AT = "T04:00:00+00:00"


def coverage_of(home: Home, job: Job) -> dict[str, Coverage]:
    return {one.field: one for one in coverage(home.store, job)}


def lost(home: Home, job: Job) -> set[str]:
    """The fields of a collected job that pages no longer give."""
    home.collect(job)
    return {name for name, one in coverage_of(home, job).items() if not one.holds}


def days_before(home: Home, days: Iterable[int] = (1, 2, 3), **more: object) -> None:
    """Posts on the days so many days before."""
    for n in days:
        day = DAY - dt.timedelta(days=n)
        home.collect(job_of(home, *(item(f"{n}-{i}", "一", f"{day}{AT}", **more) for i in range(5)), first=day))


def posts(n: int, title: str = "一", **more: object) -> list[dict]:
    return [item(str(i), title, f"{DAY}{AT}", **more) for i in range(n)]


# --- real nights


def nights(home: Home, replica: Replica, number: int, posts: int = 26):
    """One night after the other: a day goes by, and yesterday with the two days before it is crawled."""
    for _ in range(number):
        now = dt.datetime.fromisoformat(replica.tick(days=1, posts=posts, answers=8)["now"])
        yesterday = now.astimezone(dt.timezone(dt.timedelta(hours=8))).date() - dt.timedelta(days=1)
        yield yesterday - dt.timedelta(days=2), yesterday, now.isoformat()


@pytest.mark.slow
def test_a_week_of_ordinary_nights_passes_and_a_lost_selector_fails(tmp_path: Path):
    start = dt.date(2025, 5, 20)
    with Replica(posts=320, now=f"{start} 02:40", days=9) as replica:
        home = Home(tmp_path, replica)
        home.crawl(start - dt.timedelta(days=8), start - dt.timedelta(days=1), now=f"{start}T02:40:00+08:00")
        for first, last, now in nights(home, replica, 7):
            night = coverage_of(home, home.run(first, last, now))
            assert all(one.before is not None and one.holds for one in night.values()), night
        for field, selectors in {"topic": ("tags", "tags_2023"), "answers.likes": ("likes",)}.items():
            site = tmp_path / "replica.toml"
            as_it_is = (FOLDER / "replica.toml").read_text(encoding="utf-8")
            overrides = "".join(f'{selector} = ".renamed"\n' for selector in selectors)
            site.write_text(f"{as_it_is}\n[overrides]\n{overrides}", encoding="utf-8")
            [(first, last, now)] = nights(home, replica, 1)
            assert lost(home, home.run(first, last, now, site)) == {field}


# --- of jobs that were written by hand


def test_a_field_that_was_lost_is_told_with_both_shares(tmp_path: Path):
    home = Home(tmp_path)
    days_before(home)
    job = job_of(home, *posts(20, title=""))
    assert lost(home, job) == {"title"}
    assert str(coverage_of(home, job)["title"]) == "0% (the week before: 100%)"


@pytest.mark.parametrize(("brought", "days"), [(19, (1, 2, 3)), (20, (1, 2)), (20, (-1, 0, 8, 9, 10))])
def test_too_little_is_not_judged_and_days_outside_the_week_before_have_no_say(tmp_path: Path, brought, days):
    home = Home(tmp_path)
    days_before(home, days)
    job = job_of(home, *posts(brought, title=""))
    assert not lost(home, job)
    assert {str(one) for one in coverage_of(home, job).values()} == {"too few to judge"}


def test_answers_are_counted_as_answers_and_young_posts_may_have_few(tmp_path: Path):
    home = Home(tmp_path)
    days_before(home, answers=[answer(1), answer(2)])
    young = job_of(home, *posts(25))
    assert not lost(home, young), "no answers yet is no lost field"
    assert str(coverage_of(home, young)["answers.likes"]) == "too few to judge"
    later = job_of(home, *posts(10, answers=[answer(1), answer(2, likes=None)], title=""))
    assert lost(home, later) == {"answers.likes"}, "ten posts are too few to judge, their twenty answers are not"
    assert str(coverage_of(home, later)["answers.likes"]) == "50% (the week before: 100%)"


def test_what_the_crawl_brought_to_days_before_counts_for_the_crawl_alone(tmp_path: Path):
    """All days of a window are one heap: else a broken page would set its own standard on the days before."""
    home = Home(tmp_path)
    days_before(home)
    yesterday = f"{DAY - dt.timedelta(days=1)}{AT}"
    broken = [item(f"new-{i}", "", yesterday) for i in range(30)]
    job = end_of(home.prepare(DAY - dt.timedelta(days=1), DAY), *broken)
    assert lost(home, job) == {"title"}
