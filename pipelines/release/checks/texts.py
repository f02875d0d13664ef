"""The texts of released rows, one a line, each with who says it: what the checks read."""

import json
from typing import Any

import polars as pl

from pipelines.release.strings import strings

# Who says a text. `judged` is a prompt of a reward model, with all that is to be judged in it; `generic` is nobody's.
PARTS = ("seeker", "supporter", "answer", "model", "judged", "generic", "label")

_COLUMNS = ("config", "row_id", "split", "part", "place", "text")
_ANSWER = r"(?s)<answer>(.*?)</answer>"


def texts_of(config: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The texts of the rows of a config.

    Returns:
        `config`, `row_id`, `split`, `part` (of PARTS), `place` (among those of its part in the row, from 0) and `text`.
        System prompts are left out: they are ours, and the same in every row.
    """
    if config.startswith("grpo_"):
        # A round of a dialogue is answered by its supporter, a post by whoever read it.
        found = _prompts(rows, "supporter" if config == "grpo_cer" else "answer")
    elif config == "rm_triplets":
        found = _triplets(rows)
    else:
        found = _chats(rows, judged=config.startswith("rm_"))
    told = pl.concat(found).filter(pl.col("text").str.len_chars() > 0)
    return told.select(pl.lit(config).alias("config"), *_COLUMNS[1:])


def answers_alone(text: pl.Expr) -> pl.Expr:
    """What stands inside `<answer>` where a text has such a tag, without the reasoning before it; else the whole."""
    return pl.coalesce(text.str.extract(_ANSWER), text)


def _prompts(rows: pl.DataFrame, answerer: str) -> list[pl.DataFrame]:
    extra = pl.col("extra_info").struct
    dialogue = _each(rows, extra.field("dialogue")).with_columns(
        part=pl.col("text").struct.field("role"), text=pl.col("text").struct.field("text")
    )
    answers = _each(rows, extra.field("references")).with_columns(part=pl.lit(answerer))
    drawn = pl.col("reward_model").struct.field("ground_truth")
    truth = rows.filter(~extra.field("references").list.contains(drawn)).select(
        "row_id", "split", place=pl.lit(0, pl.Int64), text=drawn
    )
    label = rows.select("row_id", "split", place=pl.lit(0, pl.Int64), text=extra.field("topic")).drop_nulls("text")
    return [
        _ordered(dialogue),
        _ordered(answers),
        _ordered(truth.with_columns(part=pl.lit(answerer))),
        _ordered(label.with_columns(part=pl.lit("label"))),
    ]


def _triplets(rows: pl.DataFrame) -> list[pl.DataFrame]:
    generic = pl.when(pl.col("kind") == "generic").then(pl.lit("generic")).otherwise(pl.lit("answer"))
    parts = {"query": pl.lit("seeker"), "positive": pl.lit("answer"), "negative": generic}
    return [
        _ordered(rows.select("row_id", "split", place=pl.lit(0, pl.Int64), text=name, part=part))
        for name, part in parts.items()
    ]


def _chats(rows: pl.DataFrame, *, judged: bool) -> list[pl.DataFrame]:
    said = _each(rows, pl.col("messages"))
    role, content = pl.col("text").struct.field("role"), pl.col("text").struct.field("content")
    user = pl.lit("judged" if judged else "seeker")
    part = pl.when(role == "user").then(user).otherwise(pl.lit("model"))
    told = said.filter(role != "system").with_columns(part=part, text=content)
    if judged:
        shown = pl.col("text").map_elements(_shown, return_dtype=pl.String)
        told = told.with_columns(text=pl.when(pl.col("part") == "judged").then(shown).otherwise("text"))
    return [_ordered(told)]


def _shown(asked: str) -> str:
    """What a judge is shown (`release.judge_turns`), a line a text: the quotes and names around are nobody's words."""
    try:
        told = json.loads(asked, object_hook=_without_role)
    except ValueError:
        return asked
    return "\n".join(strings(told))


def _without_role(turn: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in turn.items() if name != "role"}


def _each(rows: pl.DataFrame, texts: pl.Expr) -> pl.DataFrame:
    """`row_id`, `split`, `place` and `text` of every member of a list."""
    places = pl.int_ranges(texts.list.len(), dtype=pl.Int64)
    return rows.select("row_id", "split", place=places, text=texts).explode("place", "text").drop_nulls("place")


def _ordered(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.select(_COLUMNS[1:])
