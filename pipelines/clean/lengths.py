"""What is too long to be one person's: dropped before any rule reads it, for one row could hold up all others."""

import polars as pl

from pipelines.settings import Filters

REASON = pl.lit("too_long")


def split_posts(posts: pl.DataFrame, filters: Filters) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Posts by their length, as they were written.

    `max_post_chars` bounds title, description and labels of a post together, and each answer alone.

    Returns `(kept, long, answers)`: the posts that are short enough, without their answers that are not; the posts that
    are too long; and these answers, one row each, by `post_id`. `detail` of the latter two has the figures.
    """
    most = filters.max_post_chars
    size = _sum(_chars("title"), _chars("description"), _chars("topic"), _chars_in("subtopics", pl.element()))
    measured = posts.with_columns(_size=size)
    kept = measured.filter(pl.col("_size") <= most).drop("_size")
    answer = pl.element().struct.field("text").str.len_chars()
    answers = (
        kept.select("post_id", answers=pl.col("answers").list.filter(answer > most))
        .explode("answers", empty_as_null=False)
        .unnest("answers")
        .with_columns(detail=_detail(pl.col("text").str.len_chars(), most))
    )
    if not answers.is_empty():
        kept = kept.with_columns(pl.col("answers").list.filter(answer <= most))
    long = measured.filter(pl.col("_size") > most).with_columns(detail=_detail(pl.col("_size"), most))
    return kept, long, answers


def split_dialogues(dialogues: pl.DataFrame, filters: Filters) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`(kept, long)`: the dialogues that are short enough as they were written, and the others, with a `detail`.

    `max_post_chars` bounds each turn and the situation, `max_dialogue_chars` all of the texts together.
    """
    turns = pl.col("turns").list.eval(pl.element().struct.field("text").str.len_chars())
    notes = _chars_in("attributes", pl.element().struct.field("value"))
    measured = dialogues.with_columns(
        _piece=pl.max_horizontal(turns.list.max().fill_null(0), _chars("situation")),
        _size=_sum(turns.list.sum(), _chars("situation"), _chars("topic"), _chars("emotion"), notes),
    )
    whole = pl.col("_size") > filters.max_dialogue_chars
    piece = pl.col("_piece") > filters.max_post_chars
    figures = (
        pl.when(whole)
        .then(_detail(pl.col("_size"), filters.max_dialogue_chars))
        .otherwise(pl.format("a turn of {}", _detail(pl.col("_piece"), filters.max_post_chars)))
    )
    long = measured.filter(whole | piece).with_columns(detail=figures)
    return measured.filter(~(whole | piece)).drop("_piece", "_size"), long


def _chars(column: str) -> pl.Expr:
    return pl.col(column).str.len_chars().fill_null(0)


def _chars_in(column: str, text: pl.Expr) -> pl.Expr:
    return pl.col(column).list.eval(text.str.len_chars()).list.sum().fill_null(0)


def _sum(*sizes: pl.Expr) -> pl.Expr:
    return pl.sum_horizontal(size.cast(pl.Int64) for size in sizes)


def _detail(size: pl.Expr, most: int) -> pl.Expr:
    return pl.format("{} characters, of at most {}", size, pl.lit(most))
