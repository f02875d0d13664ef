"""Whether the posts of a crawl have the fields of the days before: a page that has changed loses one on all posts."""

import datetime as dt
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from pipelines.crawl.collecting import partition, read_journal, stored
from pipelines.crawl.jobs import Job
from pipelines.store.store import Store

# When a field counts as lost. All four are ours. Of 20 posts a share of one half varies by 0.11 (its standard deviation
# is √(0.25/20)), so a fall by 0.3 is no chance; and a median of fewer than three days is that of one odd day.
_MAY_FALL = 0.3
_ENOUGH_ROWS = 20
_ENOUGH_DAYS = 3
_DAYS_BEFORE = 7
# None of these depends on the age of a post, as the number of its answers does. That all answers vanish is an error of
# the page parsers, where a page states how many there are.
_OF_POSTS = {
    "title": pl.col("title") != "",
    "description": pl.col("description") != "",
    **{name: pl.col(name).is_not_null() for name in ("topic", "author", "posted_at")},
}
_OF_ANSWERS = {f"answers.{name}": pl.col(name).is_not_null() for name in ("author", "posted_at", "likes")}


@dataclass(frozen=True)
class Coverage:
    """How often a field is filled in the posts of a crawl, and the median of the days before it: shares, 0 … 1.

    `share` is None where no post came, `before` where there are too few posts or days to judge by.
    """

    field: str
    share: float | None
    before: float | None

    @property
    def holds(self) -> bool:
        """Whether it is filled about as often as before, or can not be judged."""
        return self.share is None or self.before is None or self.share >= self.before - _MAY_FALL

    def __str__(self) -> str:
        if self.share is None or self.before is None:
            return "too few to judge"
        return f"{self.share:.0%} (the week before: {self.before:.0%})"


def coverage(store: Store, job: Job) -> list[Coverage]:
    """How often the fields of a crawl's posts are filled, all its days together, against the week before.

    The week is the seven days before the last day of the window, as stored, without the posts of this crawl.
    """
    new = read_journal(job)
    days = [partition(job.source, job.window.last - dt.timedelta(days=n)) for n in range(1, _DAYS_BEFORE + 1)]
    before = [stored(store, day).join(new, on="post_id", how="anti") for day in days]
    return [
        *_compare(_OF_POSTS, new, before),
        *_compare(_OF_ANSWERS, _answers(new), [_answers(day) for day in before]),
    ]


def _compare(fields: Mapping[str, pl.Expr], new: pl.DataFrame, before: list[pl.DataFrame]) -> Iterator[Coverage]:
    means = {name: filled.mean() for name, filled in fields.items()}
    days = [rows for rows in before if rows.height]
    enough = new.height >= _ENOUGH_ROWS and len(days) >= _ENOUGH_DAYS
    now, *then = (rows.select(**means).row(0, named=True) for rows in (new, *days))
    for name in fields:
        yield Coverage(name, now[name], statistics.median(day[name] for day in then) if enough else None)


def _answers(posts: pl.DataFrame) -> pl.DataFrame:
    """The answers of posts, one a row."""
    return posts.filter(pl.col("answers").list.len() > 0).select(pl.col("answers").explode()).unnest("answers")
