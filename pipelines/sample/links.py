"""What ties rows together, so that a split may not tear them apart: equal texts, equal openings, one author.

A link is a short string, a hash of a text's key or a pseudonym; rows with a link in common belong to one group. A text
is the same link wherever it stands: a post that a dialogue opens with, an answer that another post quotes whole.
"""

import polars as pl

from pipelines import text
from schemas.ids import digest

# A title or an opening of fewer characters says too little to make two rows one story: "你好", "好累", "hi".
TELLING = 10
# An answer or a later turn of as many characters is nobody's formula; a shorter one may be anybody's.
LONG = 50


def post_links(posts: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `links` of posts: text, title, body and answers where these are long enough, and author."""
    whole, title, body = (text.key(pl.col(name)) for name in ("text", "title", "description"))
    answers = pl.col("answers").list.eval(text.key(pl.element().struct.field("text")))
    texts = pl.concat_list(whole, _at_least(TELLING, title), _at_least(TELLING, body))
    return _links(posts, "post_id", texts.list.concat(_long(answers)), "a:" + pl.col("author"))


def dialogue_links(dialogues: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `links` of dialogues: their opening, and every turn that is long.

    The opening is the first seeker turn that is long enough; where all of them are short, all of them together.
    """
    turn = pl.element().struct
    said = pl.col("turns").list.eval(text.key(turn.field("text")))
    asked = pl.col("turns").list.eval(text.key(turn.field("text").filter(turn.field("role") == "seeker")))
    telling = asked.list.eval(pl.element().filter(pl.element().str.len_chars() >= TELLING))
    opening = telling.list.first().fill_null(asked.list.join("\n"))
    return _links(dialogues, "dialogue_id", pl.concat_list(opening).list.concat(_long(said)), pl.lit(None, pl.String))


def _at_least(length: int, key: pl.Expr) -> pl.Expr:
    return pl.when(key.str.len_chars() >= length).then(key)


def _long(keys: pl.Expr) -> pl.Expr:
    return keys.list.eval(pl.element().filter(pl.element().str.len_chars() >= LONG))


def _links(rows: pl.DataFrame, row_id: str, keys: pl.Expr, author: pl.Expr) -> pl.DataFrame:
    hashed = "t:" + pl.element().map_elements(digest, return_dtype=pl.String)
    return rows.select(
        row_id=row_id,
        links=keys.list.drop_nulls()
        .list.eval(hashed)
        .list.concat(pl.concat_list(author).list.drop_nulls())
        .list.unique(maintain_order=True),
    )
