"""The words that a text is read as: the dictionary that jieba installs, without names of persons, and our lexicons."""

from functools import cache
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.text import lexicon as lexicons
from pipelines.text.pii.lattice import LONGEST, UNKNOWN, hashed

# The words with the ids of lattice.UNKNOWN … JOINER.
_SPECIAL = ["�", "0", "a", "\n", ",", " "]

# Of a word of ours: as frequent as 高兴, so that it stands whole where it can stand. What stands beside names is not
# read as a word (老师说 would hide a 方老师), only looked up: hardly ever the cheapest.
_OUR_FREQUENCY = {"names": 1, "public_figures": 3000, "ordinary_words": 3000, "places": 3000}


class Vocabulary(NamedTuple):
    """Words by id.

    `words`: a frame of `id`, `word`, `tag` and `frequency` (jieba's; null where the word is ours alone), `ours` (the
    frequency that our lexicons give it; null where they do not list it). `costs`: the negative logarithm of each word's
    probability, float32 by id. `keys` and `ids`: an open-addressing table of the words of two characters and more and
    of their beginnings (id -1). `of_character`: the id of each single character.
    """

    words: pl.DataFrame
    costs: npt.NDArray[np.float32]
    keys: npt.NDArray[np.uint64]
    ids: npt.NDArray[np.int32]
    of_character: npt.NDArray[np.int32]


@cache
def lexicon(name: str) -> dict[str, Any]:
    """A lexicon of this package; every string is a list of words, split at white space. Shared: nobody changes it."""
    return {key: _split(value) for key, value in lexicons.lexicon(name, __file__).items()}


def _split(value: Any) -> Any:
    return {key: _split(one) for key, one in value.items()} if isinstance(value, dict) else value.split()


@cache
def vocabulary() -> Vocabulary:
    """The vocabulary, made once."""
    known = _without_names(listed())
    total = log(known["frequency"].sum())
    ours = (
        pl.DataFrame(
            [(word, _OUR_FREQUENCY[name]) for name in _OUR_FREQUENCY for word in _flat(lexicon(name))],
            schema={"word": pl.String, "ours": pl.Int64},
            orient="row",
        )
        .filter(_is_word())
        .group_by("word", maintain_order=True)
        .agg(pl.col("ours").max())
    )
    words = pl.concat(
        [
            pl.DataFrame({"word": _SPECIAL}).select("word", frequency=0, tag=pl.lit("x"), ours=1),
            known.join(ours, on="word", how="full", coalesce=True, maintain_order="left_right"),
        ],
        how="vertical_relaxed",
    ).with_row_index("id")
    single = pl.col("word").str.len_chars() == 1
    frequency = pl.max_horizontal("frequency", pl.when(~single).then("ours"), pl.lit(1))
    costs = words.select((total - frequency.log()).cast(pl.Float32)).to_series().to_numpy()
    of_character = np.full(0x10000, UNKNOWN, np.int32)
    characters = words.filter(single, pl.col("id") >= len(_SPECIAL))
    of_character[np.array([ord(one) for one in characters["word"]])] = characters["id"].to_numpy()
    longer = words.filter(pl.col("word").str.len_chars().is_between(2, LONGEST))
    lengths = longer["word"].str.len_chars().to_numpy()
    codes = np.frombuffer("".join(longer["word"].to_list()).encode("utf-16-le"), np.uint16)
    ends = np.cumsum(lengths, dtype=np.int64)
    keys, ids = hashed(codes, ends - lengths, ends, longer["id"].to_numpy().astype(np.int32))
    return Vocabulary(words.select("id", "word", "tag", "frequency", "ours"), costs, keys, ids, of_character)


def _is_word() -> pl.Expr:
    return pl.col("word").str.contains(rf"^[\x{{3007}}\x{{4e00}}-\x{{9fff}}]{{1,{LONGEST}}}$")


def listed() -> pl.DataFrame:
    """The dictionary that jieba installs, as `word`, `frequency` and `tag`; Chinese words of up to eight characters."""
    spec = find_spec("jieba")
    assert spec is not None
    assert spec.origin is not None
    return pl.read_csv(
        Path(spec.origin).with_name("dict.txt"),
        separator=" ",
        has_header=False,
        quote_char=None,
        schema={"word": pl.String, "frequency": pl.Int64, "tag": pl.String},
    ).filter(_is_word())


def _without_names(listed: pl.DataFrame) -> pl.DataFrame:
    """The dictionary without what our own rules are to see: names of persons and of institutions."""
    surnames, given = lexicon("surnames"), lexicon("given_names")
    ordinary = lexicon("ordinary_words")["words"]
    word = pl.col("word")
    first, rest = word.str.head(1), word.str.slice(1)
    made_as_name = (
        (pl.col("tag").is_in(["nr", "nrfg"]) | pl.col("tag").is_null())
        & first.is_in(surnames["single"])
        & (
            (rest.str.len_chars() == 1)
            & rest.is_in(given["frequent"])
            & first.is_in(surnames["single"][:120])
            & ~first.is_in(surnames["ordinary"])
            | (rest.str.len_chars() == 2)
            & rest.str.head(1).is_in(given["frequent"] + given["usual"])
            & rest.str.tail(1).is_in(given["frequent"] + given["usual"])
        )
    )
    titles = lexicon("names")["title"]
    addressed = (
        first.is_in(surnames["single"])
        & rest.is_in(titles["long"] + titles["short"])
        & ((rest.str.len_chars() > 1) | (pl.col("tag") == "nr"))
    )
    called = first.is_in(titles["before"]) & rest.is_in(surnames["single"]) & (
        pl.col("tag") == "nr"
    ) | word.str.contains("^阿.$") & (pl.col("tag") != "n")
    classes = lexicon("places")["classes"]
    kinds = ("school", "school_numbered", "school_weak", "company", "firm", "hospital", "hospital_of", "compound")
    ends = "|".join(one for kind in (*kinds, "business") for one in classes[kind] if len(one) > 1)
    institution = word.str.contains(f"^.+({ends})$|^({ends})..")
    # 带我去, 总以为你: what jieba lists of these is an accident.
    phrase = word.str.contains("[我你您他她它]") & (pl.col("frequency") <= 50)
    return listed.filter(word.is_in(ordinary) | ~(made_as_name | addressed | called | institution | phrase))


def _flat(value: Any) -> list[str]:
    return [one for part in value.values() for one in _flat(part)] if isinstance(value, dict) else value


def signs(name: str) -> dict[str, str]:
    """The patterns of a lexicon of this package, as they stand."""
    patterns: dict[str, str] = lexicons.lexicon(name, __file__)
    return patterns
