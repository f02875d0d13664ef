"""How varied dialogues are before and after they were rewritten: C rewrites so that replies do not all sound alike."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.text.nearness import likeness
from schemas.labels import LANGUAGES

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")

Row = dict[str, Any]


def diversity(dialogues: pl.DataFrame, rewritten: pl.DataFrame) -> pl.DataFrame:
    """The figures of the source and of each variant, over the same dialogues.

    Args:
        dialogues: Rows of `coherent_dialogues`.
        rewritten: Rows of `rewritten_dialogues`.

    Returns:
        One row a language and figure: `lang`, `figure`, `source`, and a column a variant. The figures:

        * dialogues, turns: how many.
        * distinct-1, distinct-2: different words, or pairs of words, by all of them, over all turns together; words are
          jieba's in Chinese, in English what white space and marks part, in lower case. They fall with the number of
          words, so only columns of equal rows compare.
        * self-similarity: what two dialogues share of their wording, mean over all pairs (`nearness.likeness`).
        * strategy shares: of the supporter turns that are labelled.
    """
    columns = {
        "source": dialogues.filter(pl.col("dialogue_id").is_in(rewritten["source_dialogue_id"].unique().implode())),
        **{str(name): rows for (name,), rows in sorted(rewritten.group_by("variant"))},
    }
    lines: list[Row] = []
    for lang in LANGUAGES:
        of_lang = {name: rows.filter(lang=lang) for name, rows in columns.items()}
        if of_lang["source"].height:
            figures = {name: dict(_figures(rows, lang)) for name, rows in of_lang.items()}
            for figure in dict.fromkeys(figure for column in figures.values() for figure in column):
                lines.append({"lang": lang, "figure": figure} | {name: figures[name].get(figure) for name in columns})
    schema = {"lang": pl.String, "figure": pl.String} | dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(lines, schema=schema)


def _figures(rows: pl.DataFrame, lang: str) -> Iterator[tuple[str, float]]:
    talks = rows["turns"].to_list()
    yield "dialogues", float(len(talks))
    yield "turns", float(sum(map(len, talks)))
    spoken = [_words(turn["text"], lang) for turns in talks for turn in turns]
    yield "distinct-1", _distinct([word for words in spoken for word in words])
    yield "distinct-2", _distinct([pair for words in spoken for pair in pairwise(words)])
    if len(talks) > 1:
        yield "self-similarity", likeness(["\n".join(turn["text"] for turn in turns) for turns in talks])
    labels = Counter(label for turns in talks for turn in turns for label in turn["strategies"])
    for label, count in sorted(labels.items()):
        yield f"share of {label}", count / labels.total()


def _words(text: str, lang: str) -> list[str]:
    if lang == "zh":
        return [word for word in words(text) if any(one.isalnum() for one in word)]
    return [word.lower() for word in _WORD.findall(text)]


def _distinct(items: Sequence[Any]) -> float:
    return len(set(items)) / len(items) if items else 0.0


def words(text: str) -> list[str]:
    """The words of a Chinese text, by jieba, in order; together they are the text: 感觉到 is no 感觉."""
    return list(_tokenizer().cut(text))


@cache
def _tokenizer() -> Any:
    """jieba's own, with its dictionary read as it is installed.

    jieba itself keeps its dictionary, read once, in a file of the shared temporary folder, and believes whatever lies
    there: so this takes a fifth of a second longer, and nobody else decides where words end.
    """
    import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True  # else it looks for its cache
    return tokenizer
