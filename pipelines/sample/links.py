"""What ties rows together, so that a split may not tear them apart: equal texts, equal openings, one author.

A link is a short string, a hash of a text's key or a pseudonym; rows with a link in common belong to one group.
"""

import polars as pl

from pipelines import text
from schemas.ids import digest

# A title or an opening of fewer characters says too little to make two rows one story: "你好", "好累", "hi".
TELLING = 10


def post_links(posts: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `links` of posts: their text, their title and body where these are long enough, their author."""
    whole, title, body = (text.key(pl.col(name)) for name in ("text", "title", "description"))
    return posts.select(
        row_id="post_id",
        links=pl.concat_list(
            _text_link(whole), _text_link(_telling(title)), _text_link(_telling(body)), "a:" + pl.col("author")
        )
        .list.drop_nulls()
        .list.unique(maintain_order=True),
    )


def dialogue_links(dialogues: pl.DataFrame) -> pl.DataFrame:
    """`row_id`, `links` of dialogues: their opening, that is the first seeker turn that is long enough.

    Where every turn of the seeker is short, all of them together are the opening.
    """
    turn = pl.element().struct
    asked = pl.col("turns").list.eval(text.key(turn.field("text").filter(turn.field("role") == "seeker")))
    long_enough = asked.list.eval(pl.element().filter(pl.element().str.len_chars() >= TELLING))
    opening = long_enough.list.first().fill_null(asked.list.join("\n"))
    return dialogues.select(row_id="dialogue_id", links=pl.concat_list(_text_link(opening)))


def _telling(key: pl.Expr) -> pl.Expr:
    return pl.when(key.str.len_chars() >= TELLING).then(key)


def _text_link(key: pl.Expr) -> pl.Expr:
    return "t:" + key.map_elements(digest, return_dtype=pl.String)
