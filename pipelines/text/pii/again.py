"""A name that is found once is found wherever it stands again: in the post, its answers, every turn of a dialogue."""

import polars as pl

from pipelines.text.pii.context import dictionary
from pipelines.text.pii.persons import taken_apart
from pipelines.text.pii.spans import SPANS, gather

_NAMED = ("name", "school", "employer", "hospital")
_A_WORD = 20  # times in jieba's corpus, from which on what is listed as no name is a word where it stands alone


def with_repeats(found: pl.DataFrame, texts: pl.Series, groups: pl.Series) -> pl.DataFrame:
    """The spans `found` in folded `texts`, and every other place in their group where one of them is named.

    A person is called again by the whole name, by it without a form of address, or by the given name alone (陈晓雯 …
    晓雯), unless that is a word.
    """
    of_row = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True), "group": groups})
    named = found.filter(pl.col("kind").is_in(_NAMED)).join(of_row, on="row").select("group", "kind", "value").unique()
    if named.is_empty():
        return found
    parts = [(*one, part) for one in named.sort("group", "kind", "value").iter_rows() for part in _parts(*one[1:])]
    again = pl.DataFrame(parts, schema={**named.schema, "part": pl.String}, orient="row")
    again = again.join(of_row, on="group", nulls_equal=True, maintain_order="left_right")
    again = (
        again.with_columns(text=texts.gather(again["row"]))
        .with_columns(start=pl.col("text").str.find_many(pl.concat_list("part"), ascii_case_insensitive=True))
        .explode("start")
        .drop_nulls("start")
        .with_columns(pl.col("start").cast(pl.Int64))
        .sort(pl.col("value").str.len_chars(), descending=True, maintain_order=True)
        .with_columns(end=pl.col("start") + pl.col("part").str.len_bytes().cast(pl.Int64))
        .filter(~_within_a_word())
        .select(SPANS.names())
        .cast(SPANS)
        .unique(["row", "start", "end"], keep="first", maintain_order=True)
    )
    # A given name that stood with its surname is that person.
    return gather([found.join(again, on=["row", "start", "end"], how="anti"), again])


def _within_a_word() -> pl.Expr:
    """Whether a Latin part stands within a longer word: Tom in tomorrow."""
    data, letter = pl.col("text").cast(pl.Binary), "^(?:3[0-9]|[46][1-9a-f]|[57][0-9a])$"  # a byte of a letter or digit
    before = pl.when(pl.col("start") > 0).then(data.bin.slice(pl.col("start") - 1, 1))
    beside = (one.bin.encode("hex").str.contains(letter) for one in (before, data.bin.slice("end", 1)))
    return pl.col("part").str.contains("^[a-z]") & pl.any_horizontal(beside).fill_null(False)


def _parts(kind: str, value: str) -> list[str]:
    if kind != "name":
        return [value]
    name = taken_apart(value)
    parts = [value, name.core, *([name.core[1:]] if name.shape == "full3" else [])]
    return [part for part in dict.fromkeys(parts) if len(part) > 1 and not _is_word(part)]


def _is_word(part: str) -> bool:
    known = dictionary().get(part)
    return known is not None and known.tag[:2] != "nr" and known.frequency >= _A_WORD
