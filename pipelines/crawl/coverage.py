"""Whether a crawl found the fields that the days before it had: a page that has changed loses one on all posts."""

import datetime as dt
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from pipelines.crawl.collecting import brought, partition, standing
from pipelines.crawl.jobs import Job
from pipelines.store.store import Store

# When a field counts as lost. All four are ours. Of 20 posts a share of one half varies by 0.11 (its standard deviation
# is √(0.25/20)), so a fall by 0.3 is no chance; and a median of fewer than three days is one odd day's word.
_MAY_FALL = 0.3
_ENOUGH_ROWS = 20
_ENOUGH_DAYS = 3
_DAYS_BEFORE = 7
# None of these depends on how old a post is, as the number of its answers does: a young day is no poorer in them. That
# answers vanish altogether the page parsers see, where a page says how many there are.
_OF_POSTS = {
    "title": pl.col("title") != "",
    "description": pl.col("description") != "",
    **{name: pl.col(name).is_not_null() for name in ("topic", "author", "posted_at")},
}
_OF_ANSWERS = {f"answers.{name}": pl.col(name).is_not_null() for name in ("author", "posted_at", "likes")}


@dataclass(frozen=True)
class Coverage:
    """How often a field is filled in what a crawl brought, and the median of the days before it: shares, 0 … 1.

    `share` is None where nothing came that has the field, `before` where too little came or stands to judge by.
    """

    field: str
    share: float | None
    before: float | None

    @property
    def holds(self) -> bool:
        """Whether it is filled about as often as before, as far as can be told."""
        return self.share is None or self.before is None or self.share >= self.before - _MAY_FALL

    def __str__(self) -> str:
        if self.share is None or self.before is None:
            return "too few to judge"
        return f"{self.share:.0%} (the week before: {self.before:.0%})"


def coverage(store: Store, job: Job) -> list[Coverage]:
    """How often the fields of what a crawl brought are filled, all its days together, against the week before.

    The week is the seven days before the last day of the window, as they stand, without what this crawl brought. A
    page that has changed its layout under a selector loses a field on all posts at once.
    """
    came = brought(job.folder / "items.jsonl")
    before = [
        standing(store, partition(job.source, job.window.last - dt.timedelta(days=n))).join(
            came, on="post_id", how="anti"
        )
        for n in range(1, _DAYS_BEFORE + 1)
    ]
    return [
        *_compared(_OF_POSTS, came, before),
        *_compared(_OF_ANSWERS, _answers(came), [_answers(of_day) for of_day in before]),
    ]


def _compared(fields: Mapping[str, pl.Expr], brought: pl.DataFrame, before: list[pl.DataFrame]) -> Iterator[Coverage]:
    means = {name: filled.mean() for name, filled in fields.items()}
    days = [rows for rows in before if rows.height]
    enough = brought.height >= _ENOUGH_ROWS and len(days) >= _ENOUGH_DAYS
    now, *then = (rows.select(**means).row(0, named=True) for rows in (brought, *days))
    for name in fields:
        yield Coverage(name, now[name], statistics.median(of_day[name] for of_day in then) if enough else None)


def _answers(posts: pl.DataFrame) -> pl.DataFrame:
    """The answers of posts, one a row."""
    return posts.filter(pl.col("answers").list.len() > 0).select(pl.col("answers").explode()).unnest("answers")
