"""What ties rows together, so that a split may not tear them apart: equal texts, equal openings, one author.

A link is a short string, a hash of a text's key or a pseudonym; rows with a link in common belong to one group. A text
is the same link wherever it stands: a post that a dialogue opens with, an answer that another post quotes whole.
Texts that are nearly equal, or quoted in part, are no links: see `pipelines.dedup.ties`.
"""

import polars as pl

from pipelines.dedup.search import digests
from pipelines.split.splits import AUTHOR
from pipelines.text import keys

# A title or an opening of fewer characters says too little to make two rows one story: "你好", "好累", "hi".
TELLING = 10
# An answer or a later turn of as many characters is nobody's formula; a shorter one may be anybody's.
LONG = 50


def post_texts(posts: pl.DataFrame) -> pl.DataFrame:
    """The texts of posts that tie: whole text, title, body and answers, the last three where they are long enough.

    Returns:
        `row_id`, `text` (its key), `link`, and `title`: whether the text is one. Every row has one text at least.
    """
    row_id = pl.col("post_id").alias("row_id")
    answers = pl.col("answers").list.eval(keys.key(pl.element().struct.field("text")))
    return _with_links(
        posts.select(row_id, text=keys.key(pl.col("text"))),
        posts.select(row_id, text=_at_least(TELLING, keys.key(pl.col("title")))),
        posts.select(row_id, text=_at_least(TELLING, keys.key(pl.col("description")))),
        posts.select(row_id, text=_long(answers)).explode("text"),
        titles=1,
    )


def dialogue_texts(dialogues: pl.DataFrame) -> pl.DataFrame:
    """The texts of dialogues that tie: their opening, and every turn that is long; columns as of `post_texts`.

    The opening is the first seeker turn that is long enough; where all of them are short, all of them together.
    """
    row_id, turn = pl.col("dialogue_id").alias("row_id"), pl.element().struct
    said = pl.col("turns").list.eval(keys.key(turn.field("text")))
    asked = pl.col("turns").list.eval(keys.key(turn.field("text").filter(turn.field("role") == "seeker")))
    telling = asked.list.eval(pl.element().filter(pl.element().str.len_chars() >= TELLING))
    return _with_links(
        dialogues.select(row_id, text=telling.list.first().fill_null(asked.list.join("\n"))),
        dialogues.select(row_id, text=_long(said)).explode("text"),
    )


def post_links(posts: pl.DataFrame, texts: pl.DataFrame | None = None) -> pl.DataFrame:
    """`row_id`, `links` of posts: of their texts (`post_texts` where not given) and their authors."""
    authors = posts.drop_nulls("author").select(row_id="post_id", link=AUTHOR + pl.col("author"))
    texts = post_texts(posts) if texts is None else texts
    return _gathered(pl.concat([texts.select("row_id", "link"), authors]))


def dialogue_links(dialogues: pl.DataFrame, texts: pl.DataFrame | None = None) -> pl.DataFrame:
    """`row_id`, `links` of dialogues: of their texts (`dialogue_texts` where not given)."""
    return _gathered(dialogue_texts(dialogues) if texts is None else texts)


def _at_least(length: int, key: pl.Expr) -> pl.Expr:
    return pl.when(key.str.len_chars() >= length).then(key)


def _long(keys: pl.Expr) -> pl.Expr:
    return keys.list.eval(pl.element().filter(pl.element().str.len_chars() >= LONG))


def _with_links(*texts: pl.DataFrame, titles: int | None = None) -> pl.DataFrame:
    marked = [frame.with_columns(title=pl.lit(place == titles)) for place, frame in enumerate(texts)]
    told = pl.concat(marked).drop_nulls("text")
    return told.with_columns(link="t:" + digests(told["text"]))


def _gathered(links: pl.DataFrame) -> pl.DataFrame:
    each = links.group_by("row_id", maintain_order=True)
    return each.agg(links=pl.col("link").unique(maintain_order=True))
