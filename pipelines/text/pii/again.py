"""A name that is found once is found wherever it stands again: in the post, its answers, every turn of a dialogue."""

import re
from collections.abc import Iterator, Set
from functools import cache
from itertools import chain, product
from typing import Any, NamedTuple

import polars as pl

from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.context import context, crossing, dictionary
from pipelines.text.pii.persons import taken_apart
from pipelines.text.pii.spans import SPANS, characters, gather

_NAMED = ("name", "school", "employer", "hospital")
_A_WORD = 20  # times in jieba's corpus, from which on what is listed as no name is a word where it stands alone
_REACH = 3  # characters, by which a longer name or word may reach over an end
_LINKS = "pcdruy"  # prepositions, conjunctions, adverbs, pronouns, particles
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "miss", "professor", "prof"})
_HAN = re.compile("[\u4e00-\u9fff]")


class _Row(NamedTuple):
    """A text, and what may be a name in it, in characters."""

    text: str
    is_chinese: bool
    candidates: Set[tuple[int, int]]
    others: Set[tuple[int, int]]  # of them those that nobody in the group is called by


def with_repeats(found: pl.DataFrame, names: pl.DataFrame, texts: pl.Series, groups: pl.Series) -> pl.DataFrame:
    """The spans `found` in folded `texts`, and every other place in their group where one of them is named.

    A person is called again by the whole name, by it without a form of address, or by a part of it alone (陈晓雯 …
    晓雯). What is a part of a longer word or of another name is none of these (地[方文]化, [陈雨]桐); what is a word
    itself is one only where `names`, all candidates, has it.
    """
    of_row = pl.DataFrame({"row": pl.int_range(len(texts), dtype=pl.UInt32, eager=True), "group": groups})
    named = found.filter(pl.col("kind").is_in(_NAMED)).join(of_row, on="row").select("group", "kind", "value").unique()
    if named.is_empty():
        return found
    of_rows = named.join(of_row, on="group", nulls_equal=True)
    again = gather(_standing_alone(_places(_parts_of(named), of_row, texts), names, of_rows, texts))
    # A given name that stood with its surname is that person.
    return gather([found.join(again, on=["row", "start", "end"], how="anti"), again])


def _parts_of(named: pl.DataFrame) -> pl.DataFrame:
    """What each of the `named` may be called by; what fits two of a group belongs to the one with the longer name."""
    named = named.sort("group", "kind", "value").sort(
        pl.col("value").str.len_chars(), descending=True, maintain_order=True
    )
    parts = [(*one, part) for one in named.iter_rows() for part in _parts(*one[1:])]
    made = pl.DataFrame(parts, schema={**named.schema, "part": pl.String}, orient="row")
    return made.unique(["group", "part"], keep="first", maintain_order=True)


def _parts(kind: str, value: str) -> list[str]:
    if kind != "name":
        return [value]
    if not _HAN.match(value):
        words = [value, *re.findall("[a-z]+", value)]
        return [word for word in dict.fromkeys(words) if len(word) > 1 and word not in _TITLES]
    name = taken_apart(value)
    surname = {"full3": 1, "compound": 2}.get(name.shape)
    given = [] if surname is None else [name.core[surname:]]
    parts = [value, name.core, *given, *re.split("[·•・]", name.core)]
    return [part for part in dict.fromkeys(parts) if len(part) > 1]


def _places(parts: pl.DataFrame, of_row: pl.DataFrame, texts: pl.Series) -> pl.DataFrame:
    """Every place of a part in the rows of its group, as SPANS; each row is searched once for all of them."""
    rows = parts.group_by("group", maintain_order=True).agg("part").join(of_row, on="group", nulls_equal=True)
    rows = rows.with_columns(text=texts.gather(rows["row"]))
    part = pl.col("part")
    start, written = (
        search(part, ascii_case_insensitive=True, overlapping=True)
        for search in (pl.col("text").str.find_many, pl.col("text").str.extract_many)
    )
    return (
        rows.select("row", "group", start=start, part=written)
        .explode("start", "part")
        .drop_nulls("start")
        .with_columns(pl.col("start").cast(pl.Int64), part=part.str.to_lowercase())
        .with_columns(end=pl.col("start") + part.str.len_bytes().cast(pl.Int64))
        .join(parts, on=["group", "part"], nulls_equal=True, maintain_order="left")
        .select(SPANS.names())
        .cast(SPANS)
    )


def _standing_alone(
    places: pl.DataFrame, names: pl.DataFrame, named: pl.DataFrame, texts: pl.Series
) -> Iterator[pl.DataFrame]:
    """Of the `places` those that are no part of a longer word or of another name than the `named` of their row."""
    values = _by_row(named.select("row", "value"))
    candidates = _by_row(names.select("row", "start", "end", "value"))
    for (row,), of_row in places.group_by("row", maintain_order=True):
        text, of_text = texts[row], candidates.get(row, [])
        ends = of_row.select("start", "end").rows()
        at = characters(text, chain(chain.from_iterable(ends), *(one[:2] for one in of_text)))
        spans = {_without_title(text, at[start], at[end], value): value for start, end, value in of_text}
        known = {value for (value,) in values[row]}
        others = {span for span, value in spans.items() if value not in known and _is_made_as_name(text[slice(*span)])}
        read = _Row(text, _HAN.search(text) is not None, spans.keys(), others)
        alone = [
            _stands_alone(read, at[start], at[end], kind)
            for start, end, kind in of_row.select("start", "end", "kind").iter_rows()
        ]
        yield of_row.filter(pl.Series(alone, dtype=pl.Boolean))


def _by_row(frame: pl.DataFrame) -> dict[int, list[tuple[Any, ...]]]:
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for row, *rest in frame.iter_rows():
        rows.setdefault(row, []).append(tuple(rest))
    return rows


def _without_title(text: str, start: int, end: int, value: str) -> tuple[int, int]:
    """Where the name ends that its value says, which leaves out a form of address."""
    return (start, start + len(value)) if text[start:end].startswith(value) else (start, end)


def _is_made_as_name(span: str) -> bool:
    """Whether it does not end with a word that links others: in 和陈雨同班 the wide reading sees a 陈雨同."""
    last = dictionary().get(span[-1])
    return last is None or last.tag[0] not in _LINKS


def _stands_alone(row: _Row, start: int, end: int, kind: str) -> bool:
    """Whether the characters are no part of a word or of another name, and no word themselves."""
    text = row.text
    if not _HAN.match(text[start]):
        return _is_latin_name(row, start, end)
    if kind != "name":
        return not crossing(text, start, end)[0]  # 浙大学生 are students, whatever word reaches over the end
    if _is_within(row, start, end) or (_is_word(text[start:end]) and (start, end) not in row.candidates):
        return False
    # 和方文化妆: a word may reach over an end, and another reading be the plainer one.
    return not any(crossing(text, start, end)) or all(context(text, start, end).borders)


def _is_latin_name(row: _Row, start: int, end: int) -> bool:
    """Whether it is no part of a longer word (Tom in tomorrow), nor may be a word (rose, or Rose at a start)."""
    name, beside = row.text[start:end], (row.text[max(0, start - 1) : start], row.text[end : end + 1])
    if any(one.isascii() and one.isalnum() for one in beside):
        return False
    # In Chinese sentences names are written as it comes.
    return name.lower() not in _english_words() and (name[0].isupper() or row.is_chinese)


@cache
def _english_words() -> frozenset[str]:
    return frozenset(voc.lexicon("english")["word"])


def _is_within(row: _Row, start: int, end: int) -> bool:
    """Whether a word, somebody known to all or another name holds these characters, and more."""
    firsts, lasts = range(max(0, start - _REACH), start + 1), range(end, min(len(row.text), end + _REACH) + 1)
    longer = (one for one in product(firsts, lasts) if one != (start, end))
    return any(one in row.others or row.text[slice(*one)] in _longer() for one in longer)


@cache
def _longer() -> frozenset[str]:
    """Words and public persons, in which a name may stand by chance."""
    public = chain.from_iterable(voc.lexicon("public_figures").values())
    return frozenset(chain(dictionary(), public))


def _is_word(part: str) -> bool:
    known = dictionary().get(part)
    return known is not None and known.tag[:2] != "nr" and known.frequency >= _A_WORD
