"""Generic sentences: those that stand in answers to a great many questions, whatever these are (E eq. 5, negatives 2).

What is frequent is learnt from the train split alone. E gives no threshold: ours is a number of questions (groups that
hang together count once) and a share of them, of which the larger counts. Formulas at either end of answers are gone by
then (`clean.signatures`); what is left is what people say in between: 你要相信自己。 一切都会好起来的。
"""

import polars as pl

from pipelines.settings import Training
from pipelines.text import keys

# A sentence ends with its mark, and what closes a quotation behind it, or with its line. The full stop of English is no
# mark here: E's questions are Chinese.
_SENTENCE = r"[^。！？!?；;…\n]+[。！？!?；;…]*[”’」』）)]*"
_ENDS = r"[。！？!?；;…”’」』）)]$"
# Of fewer characters a sentence says nothing: 嗯嗯。 是的。 ours.
_LEAST_CHARS = 4
_MARKS = r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$"


def sentences(answers: pl.DataFrame) -> pl.DataFrame:
    """The sentences of answers, each once an answer.

    Args:
        answers: `answer_id`, `text`, and any other columns.

    Returns:
        The same columns, `text` being a sentence, ended where it was not, and `sentence`, its key: without white space,
        case and outer marks.
    """
    split = answers.with_columns(pl.col("text").str.extract_all(_SENTENCE)).explode("text", empty_as_null=False)
    keyed = split.with_columns(
        text=_ended(pl.col("text").str.strip_chars()),
        sentence=keys.key(pl.col("text")).str.replace_all(_MARKS, ""),
    )
    telling = keyed.filter(pl.col("sentence").str.len_chars() >= _LEAST_CHARS)
    return telling.unique(["answer_id", "sentence"], keep="first", maintain_order=True)


def _ended(sentence: pl.Expr) -> pl.Expr:
    """A sentence that a line ended, with a full stop, so that others can follow it."""
    return pl.when(sentence.str.contains(_ENDS)).then(sentence).otherwise(sentence + "。")


def generic_sentences(answers: pl.DataFrame, settings: Training) -> pl.DataFrame:
    """The generic sentences of each split and language, as they stand in answers of that split.

    Args:
        answers: `answer_id`, `group_id`, `split`, `lang`, `text`.
        settings: From how many questions on a sentence is generic.

    Returns:
        `split`, `lang`, `sentence` (its key), and `group_id`, `answer_id`, `text` as it was written in one of the
        answers that hold it, the first by id; sorted. What is frequent in the train split and stands in no answer of
        another one is not generic there.
    """
    written = sentences(answers.select("answer_id", "group_id", "split", "lang", "text").sort("answer_id"))
    n_groups = pl.col("group_id").n_unique()
    train = answers.filter(split="train").group_by("lang").agg(least=(settings.generic_share * n_groups).ceil())
    counted = written.filter(split="train").group_by("lang", "sentence").agg(met=n_groups).join(train, on="lang")
    least = pl.max_horizontal("least", pl.lit(settings.generic_questions))
    frequent = counted.filter(pl.col("met") >= least).select("lang", "sentence")
    generic = written.join(frequent, on=["lang", "sentence"]).sort("answer_id")
    once = generic.unique(["split", "lang", "sentence"], keep="first", maintain_order=True)
    return once.select("split", "lang", "group_id", "sentence", "text", "answer_id").sort("split", "lang", "sentence")
