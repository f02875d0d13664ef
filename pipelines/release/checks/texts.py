"""The texts of released rows, one per line, each with its speaker: what the checks read."""

import json
import re
from collections.abc import Iterator

import polars as pl

from pipelines.text import keys
from pipelines.text.script import as_simplified
from pipelines.text.strings import strings

_COLUMNS = ("config", "row_id", "split", "part", "place", "text")
_ANSWER = r"(?s)<answer>(.*?)</answer>"


def texts_of(config: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The texts of the rows of a config: `config`, `row_id`, `split`, `part`, `place` (in its part, from 0), `text`.

    Parts are seeker, supporter, answer, model, judged (what a judge is shown besides the dialogue), generic (nobody's)
    and label. An answer at the end of a chain (`sft_coe`) counts as `answer`, and in the chain again as `model`. System
    prompts are left out: they are ours, and the same in every row.
    """
    if config.startswith("grpo_"):
        # A round of a dialogue is answered by its supporter, a post by its readers.
        parts = _prompts(rows, "supporter" if config == "grpo_cer" else "answer")
    elif config == "rm_triplets":
        parts = _triplets(rows)
    else:
        parts = _chats(config, rows)
    texts = pl.concat(part.select(_COLUMNS[1:]) for part in parts)
    return texts.filter(pl.col("text").str.len_chars() > 0).select(pl.lit(config).alias("config"), *_COLUMNS[1:])


def answers_alone(words: pl.Expr) -> pl.Expr:
    """What stands inside `<answer>` where a text has such a tag, without the reasoning before it; else the whole."""
    return pl.coalesce(words.str.extract(_ANSWER), words)


def folded(words: pl.Expr) -> pl.Expr:
    """A text as it is compared with others: its key in Simplified characters, without punctuation and pictures."""
    return as_simplified(keys.key(words)).str.replace_all(r"[\p{P}\p{S}]", "")


def _prompts(rows: pl.DataFrame, answerer: str) -> list[pl.DataFrame]:
    extra = pl.col("extra_info").struct
    dialogue = _each(rows, extra.field("dialogue")).with_columns(
        part=pl.col("text").struct.field("role"), text=pl.col("text").struct.field("text")
    )
    # The same turns again; where the two differ, both are read.
    prompt = _each(rows, pl.col("prompt")).unnest("text").filter(pl.col("role") != "system").rename({"content": "text"})
    prompt = prompt.with_columns(part=pl.when(role="user").then(pl.lit("seeker")).otherwise(pl.lit("supporter")))
    prompt = prompt.join(dialogue, on=["row_id", "text"], how="anti")
    answers = _each(rows, extra.field("references")).with_columns(part=pl.lit(answerer))
    drawn = pl.col("reward_model").struct.field("ground_truth")
    truth = _first(rows.filter(~extra.field("references").list.contains(drawn)), drawn, pl.lit(answerer))
    return [dialogue, prompt, answers, truth, _first(rows, extra.field("topic"), pl.lit("label")).drop_nulls("text")]


def _triplets(rows: pl.DataFrame) -> list[pl.DataFrame]:
    generic = pl.when(pl.col("kind") == "generic").then(pl.lit("generic")).otherwise(pl.lit("answer"))
    parts = {"query": pl.lit("seeker"), "positive": pl.lit("answer"), "negative": generic}
    return [_first(rows, pl.col(name), part) for name, part in parts.items()]


def _first(rows: pl.DataFrame, text: pl.Expr, part: pl.Expr) -> pl.DataFrame:
    """A text of each row that is the only one of its part."""
    return rows.select("row_id", "split", place=pl.lit(0, pl.Int64), text=text, part=part)


def _chats(config: str, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """In the order of the messages; a quotation counts as its speaker's."""
    spoken = [
        (row_id, split, part, words)
        for row_id, split, messages in rows.select("row_id", "split", "messages").iter_rows()
        for place, message in enumerate(messages, 1)
        for part, words in _spoken(config, message["role"], message["content"], last=place == len(messages))
    ]
    texts = pl.DataFrame(spoken, schema=dict.fromkeys(("row_id", "split", "part", "text"), pl.String), orient="row")
    place = pl.int_range(pl.len(), dtype=pl.Int64).over("row_id", "part")
    return [texts.with_columns(place=place)]


def _spoken(config: str, role: str, content: str, *, last: bool) -> Iterator[tuple[str, str]]:
    """Speaker and text of the parts of a message; nothing of a system prompt."""
    if role == "assistant" and config == "sft_cer" and not last:
        yield "supporter", content
    elif role == "assistant":
        yield "model", content
        if config == "sft_coe" and (answer := re.search(_ANSWER, content)):
            yield "answer", answer[1]
    elif role == "user" and config.startswith("rm_"):
        yield from _shown(content)
    elif role == "user":
        yield "seeker", content


def _shown(content: str) -> Iterator[tuple[str, str]]:
    """The input of a judge (`judge.turns`): the turns of the dialogue, and the rest, a line per text."""
    try:
        shown = json.loads(content)
        dialogue = [(turn["role"], turn["text"]) for turn in shown.pop("dialogue", [])]
    except (ValueError, AttributeError, TypeError, KeyError):
        yield "judged", content  # not in our form
        return
    yield from dialogue
    yield "judged", "\n".join(strings(shown))


def _each(rows: pl.DataFrame, texts: pl.Expr) -> pl.DataFrame:
    """`row_id`, `split`, `place` and `text` of every member of a list."""
    places = pl.int_ranges(texts.list.len(), dtype=pl.Int64)
    return rows.select("row_id", "split", place=places, text=texts).explode("place", "text").drop_nulls("place")
