"""Clauses of Chinese text: the pieces between its marks, of which a cut takes whole ones."""

import polars as pl

# 、 divides a list and ： announces what follows: neither ends a clause. A line end does.
STRONG = "。！？!?；;…～~\n"
MARKS = f"{STRONG}，,"
_CLOSING = '”’"）)】」』'

# Marks before the first clause belong to it, and what closes a quotation belongs to what it closes.
_CLAUSE = rf"[{MARKS}]*[^{MARKS}]+[{MARKS}]*(?:[{_CLOSING}]+[{MARKS}]*)?"
_ENDS_STRONGLY = rf"[{STRONG}][{MARKS}{_CLOSING}\s]*$"


def clauses(text: pl.Expr) -> pl.Expr:
    """`text` as the list of its clauses, which put together are the text; empty where there is nothing but marks."""
    return text.str.extract_all(_CLAUSE)


def ends_strongly(clause: pl.Expr) -> pl.Expr:
    """Whether a sentence or a line ends with `clause`."""
    return clause.str.contains(_ENDS_STRONGLY)
