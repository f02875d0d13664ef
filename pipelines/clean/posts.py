"""The first filters of posts and answers (M §2, E §2)."""

import polars as pl

from pipelines import text
from pipelines.clean.risk import risk
from pipelines.clean.script import script
from pipelines.drops import drops, gather
from pipelines.settings import Filters
from schemas.posts import CleanPosts
from schemas.table import Dropped

STAGE = "clean_posts"


def clean_posts(
    frame: pl.DataFrame | pl.LazyFrame, filters: Filters | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Posts of at least 20 Chinese characters' length that are mostly Chinese, their answers of more than 100.

    Args:
        frame: Rows of `imported_posts` or `raw_posts`.
        filters: The thresholds; the papers' where none are given.

    Returns:
        `(kept, dropped)`: rows of `clean_posts`, and drops in the units `post` and `answer`. A post left without
        answers stays; the answers of a dropped post are dropped with it.
    """
    filters = filters or Filters()
    posts = (
        frame.lazy()
        .with_columns(text=_text())
        .with_columns(n_chars=text.n_chars(pl.col("text")), han_ratio=text.han_ratio(pl.col("text")))
        .with_columns(
            reason=pl.when(pl.col("n_chars") < filters.min_post_chars)
            .then(pl.lit("too_short"))
            .when(pl.col("han_ratio") < filters.min_han_ratio)
            .then(pl.lit("not_chinese"))
        )
        .collect()
    )
    kept, refused = posts.filter(pl.col("reason").is_null()), posts.filter(pl.col("reason").is_not_null())
    answers = _answers(kept).with_columns(n_chars=text.n_chars(pl.col("text")))
    short = pl.col("n_chars") <= filters.min_answer_chars
    dropped = gather(
        drops(refused, STAGE, "post", "post_id", pl.col("reason"), _measured()),
        drops(_answers(refused), STAGE, "answer", "answer_id", pl.lit("post_dropped"), pl.col("post_id")),
        drops(
            answers.filter(short),
            STAGE,
            "answer",
            "answer_id",
            pl.lit("too_short"),
            pl.format("{} characters", pl.col("n_chars")),
        ),
    )
    long_enough = text.n_chars(pl.element().struct.field("text")) > filters.min_answer_chars
    fields = [pl.element().struct.field(name) for name in CleanPosts.columns()["answers"].inner.inner]  # type: ignore[attr-defined]
    kept = kept.with_columns(
        answers=pl.col("answers").list.eval(pl.struct(fields).filter(long_enough)),
        script=script(pl.col("text")),
        pii=pl.lit(None),
        risk=risk(pl.col("text")),
    )
    return CleanPosts.cast(kept.select(CleanPosts.column_names())), Dropped.cast(dropped)


def _text() -> pl.Expr:
    """Title and description, each stripped, joined by a line end; once where they are the same."""
    title, body = pl.col("title").str.strip_chars(), pl.col("description").str.strip_chars()
    return pl.when(body.str.starts_with(title)).then(body).when(body == "").then(title).otherwise(title + "\n" + body)


def _answers(posts: pl.DataFrame) -> pl.DataFrame:
    """One row an answer: the post's id and the fields of the answer."""
    return posts.select("post_id", "answers").explode("answers", empty_as_null=False).unnest("answers")


def _measured() -> pl.Expr:
    return (
        pl.when(pl.col("reason") == "too_short")
        .then(pl.format("{} characters", pl.col("n_chars")))
        .otherwise(pl.format("Chinese share {}", pl.col("han_ratio").round(2)))
    )
