"""What is cut out of answers, by clauses: claims of a credential.

A claim goes whether it is true or not: a model that learns from the answers must not learn to claim what it is not.
"""

from functools import cache
from typing import Any

import polars as pl

from pipelines.text.clauses import clauses, ends_strongly
from pipelines.text.lexicon import alternation, filled, lexicon

# What is recorded of clauses that were cut out of answers: schemas.posts.EDIT.
EDITS = pl.Schema({"row_id": pl.String, "rule": pl.String, "removed": pl.String})

# A bare title counts as a claim among so many clauses at the end of an answer.
_NEAR_THE_END = 3
_MARKS_AROUND = "。！？!?；;…～~，,、：: \t\n—-–*#·.“”\"'‘’（）()【】[]"


def without_credentials(answers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers (`row_id`, `text`) without the clauses in which their writers claim a credential.

    Returns `(answers, edits)`: the same rows with `text` cut, and EDITS with the rule "credential", one row a run of
    clauses.
    """
    numbered = answers.select("row_id", "text").with_row_index("row")
    edits = [pl.DataFrame(schema=EDITS)]
    pending = numbered.filter(pl.col("text").str.contains(_patterns()["near"]))
    while not pending.is_empty():
        pending, made = _cut(pending)  # what was third may now be first
        numbered = numbered.update(pending.select("row", "text"), on="row", how="left")
        edits.append(made)
    return answers.with_columns(numbered["text"]), pl.concat(edits)


def _cut(answers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers that had a claim, now without it, and the edits."""
    marked = _marked(answers)
    cut = marked.filter("cut")
    edits = cut.group_by("row", "row_id", "block", maintain_order=True).agg(removed=pl.col("clause").str.join(""))
    edits = edits.select("row_id", rule=pl.lit("credential"), removed=pl.col("removed").str.strip_chars())
    return _joined(marked.join(cut, on="row", how="semi", maintain_order="left")), edits


def _marked(answers: pl.DataFrame) -> pl.DataFrame:
    """One row a clause, with whether it is to be `cut`: a claim, or what directly follows one and goes on with it. A
    `block` begins with each clause that is neither, so that what is cut of a block is its end.
    """
    patterns = _patterns()
    words = pl.col("words")
    place, n_clauses = pl.int_range(pl.len()).over("row"), pl.len().over("row")
    begins = ~pl.col("weak").shift(1).over("row").fill_null(False)
    addressed = (place <= 2) & words.shift(1).over("row").fill_null("").str.contains(patterns["address"])
    by_itself = (place == 0) | addressed | (begins & (place >= n_clauses - _NEAR_THE_END))
    goes_on = words.shift(-1).over("row").fill_null("").str.contains("我", literal=True)
    claims = (
        words.str.contains(patterns["claims"])
        | (words.str.contains(patterns["as_one"]) & goes_on)
        | (words.str.contains(patterns["bare"]) & by_itself)
    )
    claimed = pl.col("claims").cast(pl.Int8).cum_max().over("row", "block").cast(pl.Boolean)
    return (
        answers.select("row", "row_id", clause=clauses(pl.col("text")))
        .explode("clause", empty_as_null=False)
        .with_columns(clause=_headed(pl.col("clause")))
        .explode("clause", empty_as_null=False)
        .with_columns(words=pl.col("clause").str.strip_chars(_MARKS_AROUND), weak=~ends_strongly(pl.col("clause")))
        .with_columns(claims=claims, further=words.str.contains(patterns["further"]))
        .with_columns(block=(~pl.col("claims") & ~pl.col("further")).cum_sum().over("row"))
        .with_columns(cut=claimed)
        .with_columns(cut=pl.col("cut") & (pl.col("claims") | pl.col("further")))
    )


def _headed(clause: pl.Expr) -> pl.Expr:
    """`clause` as a list: what announces the rest of it ("心理咨询师为您解答：") apart, where it begins so."""
    heads = map(_filled, lexicon("credentials", __file__)["heads"])
    head = pl.coalesce(clause.str.extract(pattern) for pattern in heads).fill_null("")
    rest = clause.str.slice(head.str.len_chars())
    return pl.concat_list(head, rest).list.filter(pl.element() != "")


def _joined(marked: pl.DataFrame) -> pl.DataFrame:
    """The texts without what was cut, in whole sentences. A clause that was not the end of its sentence and now is gets
    the marks of that end; a word that hung on a claim ("但是", "所以") goes with it.
    """
    clause, cut = pl.col("clause"), pl.col("cut")
    marks = clause.str.extract(r"([。！？!?；;…～~\n]+)[^\p{L}\p{N}]*$").last().over("row", "block")
    loses_its_end = pl.col("weak") & cut.shift(-1).over("row").fill_null(False) & marks.is_not_null()
    hangs = (cut & pl.col("weak")).shift(1).over("row").fill_null(False)
    left = (
        pl.when(loses_its_end)
        .then(clause.str.replace(r"[，,\s]+$", "") + marks)
        .when(hangs)
        .then(clause.str.replace(_patterns()["hanging"], ""))
        .otherwise(clause)
    )
    return (
        marked.with_columns(clause=pl.when(cut).then(pl.lit("")).otherwise(left))
        .group_by("row", maintain_order=True)
        .agg(pl.col("row_id").first(), text=clause.str.join("").str.strip_chars())
    )


def _filled(pattern: str) -> str:
    words = lexicon("credentials", __file__)
    return filled(pattern, {name: words[name] for name in ("title", "trade", "medic", "self", "years")})


@cache
def _patterns() -> dict[str, str]:
    words: dict[str, Any] = lexicon("credentials", __file__)
    return {
        "near": words["near"],
        "claims": _filled(alternation(words["claims"])),
        "further": _filled(alternation([*words["further"], words["calling"]])),
        **{name: _filled(words[name]) for name in ("as_one", "bare", "address", "hanging")},
    }
