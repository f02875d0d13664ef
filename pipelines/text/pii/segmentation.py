"""Texts read as words, the way that is most probable word by word, and where a name of a person would read better.

A run of Chinese characters is a lattice of the words that could stand in it; the cost of a word is the negative
logarithm of its probability, the reading is the cheapest path. A name of a person is a further edge of the lattice,
whose cost follows from how names are made (`name_model`); how much cheaper the run reads with that edge than without
any is its `margin`, in nats.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import buffers
from pipelines.core.kernels import Places
from pipelines.text.pii import lattice as la
from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.lattice import code_points, read_runs
from pipelines.text.pii.vocabulary import vocabulary


class Segmented(NamedTuple):
    """A column as words, and the names that could stand in it.

    `tokens`: the word id of each token; `begins` and `ends`: its bytes, counted through the column; `row_tokens` and
    `offsets`: the first token and byte of each row (n + 1). `names`: a frame of `row`, `start`, `core`, `end` (bytes of
    the row; the core is the name without a form of address behind it), `made`, `margin`, and roles: `left` and `right`
    of the words beside it, `own` of the word that it is (see `lattice`).
    """

    texts: pl.Series
    tokens: npt.NDArray[np.int32]
    begins: Places
    ends: Places
    row_tokens: Places
    offsets: Places
    names: pl.DataFrame


def segment(texts: pl.Series) -> Segmented:
    """`texts` (folded, without nulls) as words and candidate names."""
    data, offsets = buffers(texts)
    codes, at, rows = code_points(data, offsets)
    words = vocabulary()
    tokens, starts, row_tokens, places, margins = read_runs(
        codes, rows, words.keys, words.ids, words.costs, words.of_character, *name_model()
    )
    start, core, end, made, left, right, own = places.T
    row = np.searchsorted(rows, start, side="right") - 1
    names = pl.DataFrame(
        {
            "row": row.astype(np.uint32),
            "start": at[start] - offsets[row],
            "core": at[core] - offsets[row],
            "end": at[end] - offsets[row],
            "made": made.astype(np.uint8),
            "margin": margins,
            "left": left.astype(np.uint32),
            "right": right.astype(np.uint32),
            "own": own.astype(np.uint32),
        }
    )
    begins = at[starts]
    return Segmented(texts, tokens, begins, np.append(begins[1:], at[-1]), row_tokens, offsets, names)


# Times in jieba's corpus: what it lists more often as a person's name is a word (明白) or a hero.
_LISTED_AT_MOST = 1000

# Characters that hold a sentence together: no given name has them.
_NO_GIVEN = (
    "的了我你您他她它们在是不有和就都也还很这那被把给对跟说着过吗呢吧啊呀么什怎让叫要会个没去到得上下里为从向比等又再才但而且"
    "因所以于之与或并其此该只最太更非每某"
)


class NameModel(NamedTuple):
    """By code point: the cost of a surname and of a character of a given name, in nats (lattice.NEVER: it is none);
    surnames that are words as well; those that are counted (上周); 小, 老 and 阿; characters that are doubled. Surnames
    of two characters, sorted. The roles of each word, by its id."""

    surname: la.Floats
    given: la.Floats
    ordinary: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
    before: npt.NDArray[np.bool_]
    doubled: npt.NDArray[np.bool_]
    compound: npt.NDArray[np.uint32]
    roles: la.Roles


@cache
def name_model() -> NameModel:
    """The tables, made once."""
    surnames, given = voc.lexicon("surnames"), voc.lexicon("given_names")
    # A surname's frequency falls with its rank about like this: 王 and 李 have 7 % each, the hundredth 0.2 %.
    share = 0.085 / (1 + 0.18 * np.arange(len(surnames["single"]))) ** 1.25
    of_surname = np.full(0x10000, la.NEVER, np.float32)
    of_surname[_codes(surnames["single"])] = -np.log(share)
    of_given = np.full(0x10000, la.NEVER, np.float32)
    of_given[0x4E00:0xA000] = la.RARE_GIVEN
    of_given[_codes(list(_NO_GIVEN))] = la.NEVER
    of_given[_codes(given["usual"])] = -np.log(0.42 / len(given["usual"]))
    of_given[_codes(given["frequent"])] = -np.log(0.55 / len(given["frequent"]))
    compound = [_codes(list(one)) for one in surnames["compound"]]
    words = set(voc.vocabulary().words["word"])
    return NameModel(
        of_surname,
        of_given,
        _flags(surnames["ordinary"]),
        _flags(surnames["counted"]),
        _flags(voc.lexicon("names")["title"]["before"]),
        # And those that no word of the language doubles: 晨晨, but not 常常.
        _flags([*given["doubled"], *(one for one in given["frequent"] if one + one not in words)]),
        np.sort(np.array([(one << 16) + other for one, other in compound], np.uint32)),
        _roles(),
    )


def _codes(characters: list[str]) -> list[int]:
    return [ord(one) for one in characters]


def _flags(characters: list[str]) -> npt.NDArray[np.bool_]:
    flags = np.zeros(0x10000, np.bool_)
    flags[_codes(characters)] = True
    return flags


def _roles() -> la.Roles:
    word, tag = pl.col("word"), pl.col("tag")
    names, given = voc.lexicon("names"), voc.lexicon("given_names")
    public = [one for part in voc.lexicon("public_figures").values() for one in part]
    anonymous = names["anonymous"]["names"]
    long = word.str.len_chars() > 1
    of_person = tag.is_in(["nr", "nrfg", "nrt"]) & pl.col("ours").is_null() & (pl.col("frequency") < _LISTED_AT_MOST)
    of_person = of_person.fill_null(False)
    surname = f"[{''.join(voc.lexicon('surnames')['single'])}]"
    chosen = f"[{''.join(given['frequent'] + given['usual'])}]"
    # 我叫 what: a verb, a particle or a pronoun is no name.
    no_name = tag.is_in(["v", "d", "p", "c", "r", "t", "i", "l", "m", "y"]) | word.str.contains("[我你您他她它]")
    roles = {
        la.PERSON: word.is_in(names["left"]["person"]),
        la.VERB: word.is_in(names["left"]["verb"]) | (tag == "t"),
        la.CUE: word.is_in(names["cue"]["call"]),
        la.WEAK: word.is_in(names["cue"]["weak"]),
        la.NAMED: word.is_in(names["cue"]["named"]),
        la.RIGHT: word.is_in(names["right"]["word"]) | (tag == "t"),
        la.END: word.is_in(names["right"]["end"]),
        la.SPEECH: word.is_in(names["right"]["speech"]),
        la.REFUSED: word.is_in([*names["refuse"]["first"], *voc.lexicon("ordinary_words")["words"]]) | long & no_name,
        la.TITLE: word.is_in(names["title"]["long"]),
        la.SHORT_TITLE: word.is_in(names["title"]["short"]),
        la.PUBLIC: word.is_in(public),
        la.ANONYMOUS: word.is_in(anonymous),
        la.ORDINARY: long & ~word.is_in(public + anonymous) & ~of_person,
        la.LINK: tag.is_in(["p", "c", "r", "d", "u", "ul", "uj", "uz", "y", "v", "t", "f"]),
        la.NAMELIKE: of_person & word.str.contains(f"^[小{chosen[1:]}+$|^{surname}.{chosen}$"),
    }
    bits = [pl.when(condition).then(role).otherwise(0) for role, condition in roles.items()]
    return voc.vocabulary().words.select(pl.sum_horizontal(bits).cast(pl.UInt32)).to_series().to_numpy()
