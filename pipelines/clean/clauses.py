"""Clauses: what stands between two marks of punctuation, with the marks that end it."""

import polars as pl

# What is recorded of clauses that were cut out of answers: schemas.posts.EDIT.
EDITS = pl.Schema({"row_id": pl.String, "rule": pl.String, "removed": pl.String})

# 、 divides a list and ： announces what follows: neither ends a clause. A line end does.
_STRONG = "。！？!?；;…～~\n"
_MARKS = f"{_STRONG}，,"
_CLOSING = '”’"）)】」』'

# Marks before the first clause belong to it, and what closes a quotation belongs to what it closes.
_CLAUSE = rf"[{_MARKS}]*[^{_MARKS}]+[{_MARKS}]*(?:[{_CLOSING}]+[{_MARKS}]*)?"
_ENDS_STRONGLY = rf"[{_STRONG}][{_MARKS}{_CLOSING}\s]*$"
# Words that lead over to what has been cut off.
_LEADING_OVER = (
    rf"(^|[{_MARKS}])\s*(?:最后|最后的最后|总之|总而言之|无论如何|不管怎么?样|另外|还有|以上|ε?我在)[，,：:\s]*$"
)


def clauses(text: pl.Expr) -> pl.Expr:
    """`text` as the list of its clauses, which put together are the text; empty where there is nothing but marks."""
    return text.str.extract_all(_CLAUSE)


def ends_strongly(clause: pl.Expr) -> pl.Expr:
    """Whether a sentence or a line ends with `clause`."""
    return clause.str.contains(_ENDS_STRONGLY)


def without_leading_over(text: pl.Expr) -> pl.Expr:
    """`text`, whose end has been cut off, without the word that led over to it ("最后，…")."""
    return text.str.replace(_LEADING_OVER, "${1}")


def closed(text: pl.Expr) -> pl.Expr:
    """`text`, whose end has been cut off, with a full stop in the place of a comma that ends it."""
    return text.str.strip_chars().str.replace(r"[，,、；;：:\s]+$", "。").str.replace(r"^。$", "")


def opened(text: pl.Expr) -> pl.Expr:
    """`text`, whose beginning has been cut off, without the marks that stand there now."""
    return text.str.strip_chars_start(f"{_MARKS}、：: ").str.strip_chars()
