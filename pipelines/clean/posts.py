"""Posts and answers: cleaned, and filtered (M §2, E §2)."""

from collections.abc import Iterable

import polars as pl

from pipelines.clean.cells import NO_PII, as_written, cleaned, cleaned_labels, first_reason
from pipelines.clean.credentials import without_credentials
from pipelines.clean.language import language
from pipelines.clean.lengths import REASON as TOO_LONG
from pipelines.clean.lengths import split_posts
from pipelines.core.stage import stage
from pipelines.settings import Cleaning, Filters, Settings
from pipelines.text.chunks import in_shares
from pipelines.text.keys import han_ratio, n_chars
from pipelines.text.minors import minors
from pipelines.text.pii.placeholders import without_placeholders
from pipelines.text.relevance import relevance
from pipelines.text.risk import risk
from pipelines.text.script import script
from schemas.dropped import drops, gather
from schemas.posts import EDIT, CleanPosts, ImportedPosts
from schemas.table import Dropped

STAGE = "clean_posts"

_OF_AN_ANSWER = [field.name for field in CleanPosts.columns()["answers"].dtype.inner.fields]  # type: ignore[attr-defined]
_AS_READ = [name for name in _OF_AN_ANSWER if name not in ("risk", "under_18")]
_NO_EDITS = pl.lit(pl.Series([[]], dtype=pl.List(EDIT.dtype)))
_CHARACTERS = pl.format("{} characters", pl.col("n_chars"))
_UNDER_14 = "the writer says to be younger than 14"
_FOREIGN = ("cantonese", "japanese", "korean", "english", "classical")


def clean_posts(
    frame: pl.DataFrame | pl.LazyFrame, filters: Filters | None = None, cleaning: Cleaning | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Posts in Mandarin of at least 20 characters that ask for help, their answers of more than 100.

    What is too long is dropped unread. Artefacts and personal data are removed, and what is left is measured and
    stored. Language, ages and risk are judged on what was written (see `cells.as_written`), of which nothing is
    returned.

    Args:
        frame: Rows of `imported_posts` or `raw_posts`.
        filters: The thresholds; the papers' by default.

    Returns `(kept, dropped)`: rows of `clean_posts`, and drops in the units `post` and `answer`. A post left without
    answers stays; the answers of a dropped post are dropped with it.
    """
    filters, cleaning = filters or Filters(), cleaning or Cleaning()
    came = frame.lazy().select(ImportedPosts.column_names()).collect()
    posts, long, long_answers = split_posts(came, filters)
    posts = posts.with_row_index("group")
    judged = in_shares(lambda some: _judged(_with_texts(some, *cleaned(_cells(some), cleaning)), filters), posts)
    label = cleaned_labels(pl.concat([judged["topic"], judged["subtopics"].explode()]), cleaning)
    judged = judged.with_columns(label(pl.col("topic")), pl.col("subtopics").list.eval(label(pl.element())))
    kept, refused = judged.filter(pl.col("reason").is_null()), judged.filter(pl.col("reason").is_not_null())
    answers = _answers(kept)
    honest, edits = without_credentials(answers.select("text", row_id="answer_id"))
    answers = _judged_answers(answers.with_columns(text=honest["text"]), filters)
    stay, short = answers.filter(pl.col("reason").is_null()), answers.filter(pl.col("reason").is_not_null())
    dropped = gather(
        drops(long, STAGE, "post", "post_id", TOO_LONG, pl.col("detail")),
        drops(_answers(long), STAGE, "answer", "answer_id", pl.lit("post_dropped"), pl.col("post_id")),
        drops(long_answers, STAGE, "answer", "answer_id", TOO_LONG, pl.col("detail")),
        drops(refused, STAGE, "post", "post_id", pl.col("reason"), pl.col("detail")),
        drops(_answers(refused), STAGE, "answer", "answer_id", pl.lit("post_dropped"), pl.col("post_id")),
        drops(short, STAGE, "answer", "answer_id", pl.col("reason"), pl.col("detail")),
    )
    kept = _with_answers(kept, stay, edits).with_columns(risk=risk(pl.col("written"), simplified=True))
    return CleanPosts.cast(kept.select(CleanPosts.column_names())), Dropped.cast(dropped)


def _cells(posts: pl.DataFrame) -> pl.DataFrame:
    """`group`, `lang`, `place` (-2 title, -1 description, from 0 the answers), `text` and, for verdicts, `written`."""
    answers = posts.select("group", "lang", text=pl.col("answers").list.eval(pl.element().struct.field("text")))
    answers = answers.explode("text", empty_as_null=False)
    return pl.concat(
        [
            posts.select("group", "lang", place=pl.lit(-2, pl.Int64), text="title"),
            posts.select("group", "lang", place=pl.lit(-1, pl.Int64), text="description"),
            answers.select("group", "lang", place=pl.int_range(pl.len(), dtype=pl.Int64).over("group"), text="text"),
        ]
    ).with_columns(written=as_written(pl.col("text")))


def _with_texts(posts: pl.DataFrame, cells: pl.DataFrame, pii: pl.DataFrame) -> pl.DataFrame:
    """The posts with the cleaned texts in their places, `text`, `script` as they were written in, `pii`, and `written`
    (`cells.as_written`). `whole_text` and `headline` are the cleaned texts before a profile removes figures and Latin:
    there the placeholders are evidence (of advertisements).
    """
    titles, descriptions = (cells.filter(place=place) for place in (-2, -1))
    written = cells.filter(pl.col("place") >= 0).select("group", "place", cleaned="stored", answer_written="written")
    answers = (
        _answers(posts, "group")
        .with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("group"))
        .join(written, on=["group", "place"], how="left", maintain_order="left")
        .with_columns(text="cleaned", written="answer_written")
    )
    return (
        posts.with_columns(script=script(pl.concat_str("title", "description", separator="\n")))
        .with_columns(title=titles["written"], description=descriptions["written"])
        .with_columns(written=_text())
        .with_columns(title=titles["text"], description=descriptions["text"])
        .with_columns(whole_text=_text(), headline="title")
        .with_columns(title=titles["stored"], description=descriptions["stored"])
        .drop("answers")
        .join(_gathered(answers, "group", [*_AS_READ, "written"]), on="group", how="left", maintain_order="left")
        .join(pii, on="group", how="left", maintain_order="left")
        .with_columns(
            pl.col("answers").fill_null([]),
            pl.col("pii").fill_null(NO_PII),
            text=_text(),
        )
    )


def _judged(posts: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """What is measured of each post, and the `reason` (with its `detail`) to drop it, null where there is none."""
    measured = (
        posts.lazy()
        .with_columns(
            n_chars=n_chars(pl.col("text")),
            han_ratio=han_ratio(without_placeholders(pl.col("text"))),
            language=language(pl.col("written")),
            relevance=relevance(pl.col("whole_text"), pl.col("headline")),
            age=minors(pl.col("written"), pl.col("posted_at")),
        )
        .unnest("age")
    )
    relevant = pl.col("relevance").struct
    share = pl.format("Chinese share {}", pl.col("han_ratio").round(2))
    context = relevant.field("emotional_context")
    reason = first_reason(
        (pl.col("n_chars") < filters.min_post_chars, "too_short", _CHARACTERS),
        (pl.col("language").is_in(_FOREIGN), pl.col("language"), share),
        (pl.col("han_ratio") < filters.min_han_ratio, "not_chinese", share),
        (relevant.field("reason").is_not_null(), relevant.field("reason"), relevant.field("detail")),
        (pl.col("under_14"), "under_14", _UNDER_14),
        (context < filters.min_emotional_context, "little_emotional_context", pl.format("score {}", context.round(2))),
    )
    columns = reason.struct.unnest(), relevant.field("doubts"), relevant.field("emotional_context")
    return measured.with_columns(*columns).collect()


def _judged_answers(answers: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """What is measured of each answer, and the `reason` (with its `detail`) to drop it, null where there is none."""
    measured = answers.with_columns(
        n_chars=n_chars(pl.col("text")),
        risk=risk(pl.col("written"), simplified=True),
        age=minors(pl.col("written"), pl.col("posted_at"), answers=True),
    ).unnest("age")
    reason = first_reason(
        (pl.col("under_14"), "under_14", _UNDER_14),
        (pl.col("n_chars") <= filters.min_answer_chars, "too_short", _CHARACTERS),
    )
    return measured.with_columns(reason.struct.unnest())


def _with_answers(posts: pl.DataFrame, answers: pl.DataFrame, edits: pl.DataFrame) -> pl.DataFrame:
    """The posts with the answers that stay, and the `edits` of these."""
    of_post = answers.select("post_id", row_id="answer_id")
    of_posts = of_post.join(edits, on="row_id", maintain_order="left_right")
    of_posts = of_posts.group_by("post_id").agg(edits=pl.struct("row_id", "rule", "removed").cast(EDIT.dtype))
    return (
        posts.drop("answers")
        .join(_gathered(answers, "post_id", _OF_AN_ANSWER), on="post_id", how="left", maintain_order="left")
        .join(of_posts, on="post_id", how="left", maintain_order="left")
        .with_columns(
            pl.col("answers").fill_null([]),
            pl.col("edits").fill_null(_NO_EDITS),
        )
    )


def _answers(posts: pl.DataFrame, by: str = "post_id") -> pl.DataFrame:
    """One row an answer: `by` and `source` of its post and the fields of the answer."""
    return posts.select(by, "source", "answers").explode("answers", empty_as_null=False).unnest("answers")


def _gathered(answers: pl.DataFrame, by: str, fields: Iterable[str]) -> pl.DataFrame:
    """`by`, `answers`: the answers of each post that has any, in their order, with these fields."""
    return answers.group_by(by, maintain_order=True).agg(answers=pl.struct(*fields))


def _text() -> pl.Expr:
    """Title and description, one below the other; once where the description begins with the title."""
    title, body = pl.col("title"), pl.col("description")
    return pl.when(body.str.starts_with(title)).then(body).when(body == "").then(title).otherwise(title + "\n" + body)


@stage(
    "clean_posts",
    group="clean",
    reads=("filters", "cleaning"),
    units={"clean_posts": dict.fromkeys(("post", "answer"), ("raw_posts", "imported_posts"))},
    by_row=True,
)
def make_clean_posts(
    raw_posts: pl.DataFrame, imported_posts: pl.DataFrame, settings: Settings
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`clean_posts`, of what was crawled and what was imported."""
    return clean_posts(pl.concat([raw_posts, imported_posts]), settings.filters, settings.cleaning)
