"""Schools, employers, hospitals and addresses, where they are named: 育才中学 but not 重点中学.

The tokens of a text (see `segmentation`) become a string of classes, a letter each, and the rules of `place_rules` are
matched against it.
"""

from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import strings
from pipelines.text.pii import lattice
from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.place_rules import RULES, Rule
from pipelines.text.pii.segmentation import Segmented
from pipelines.text.pii.spans import SPANS, gather, matches

Lists = dict[str, list[str]]

_HIDDEN = "^x+[^a-z]|某"  # XX公司: nobody's

_RARE = 10  # times in jieba's corpus of 60 million words: 宏远, 药科


def places_in(segmented: Segmented) -> pl.DataFrame:
    """Spans of schools, employers, hospitals and addresses in segmented texts."""
    spans = []
    for kind, rules in RULES.items():
        classes = strings(_letters(kind)[segmented.tokens], segmented.row_tokens)
        spans += [_spans(segmented, classes, kind, rule) for rule in rules]
    return gather(spans)


def _spans(segmented: Segmented, classes: pl.Series, kind: str, rule: Rule) -> pl.DataFrame:
    hits = matches(classes, rule.hit, cue=rule.cue, tail=rule.tail)
    if hits.is_empty():
        return pl.DataFrame(schema=SPANS)
    row = hits["row"].to_numpy()
    first = segmented.row_tokens[row]
    start = segmented.begins[first + hits["start"].to_numpy()] - segmented.offsets[row]
    end = segmented.ends[first + hits["end"].to_numpy() - 1] - segmented.offsets[row]
    data = segmented.texts.gather(row).cast(pl.Binary)
    value = pl.col("data").bin.slice(pl.col("start"), pl.col("end") - pl.col("start")).cast(pl.String)
    value = value.str.replace(rule.cut, "") if rule.cut else value
    return (
        pl.DataFrame({"row": row, "start": start, "end": end, "data": data})
        .with_columns(value=value)
        .select(
            "row",
            "start",
            end=pl.col("start") + pl.col("value").str.len_bytes().cast(pl.Int64),
            kind=pl.lit(kind),
            value=pl.col("value").str.to_lowercase(),
        )
        .filter(
            pl.col("value").str.contains(rule.value),
            ~pl.col("value").str.contains(f"{_HIDDEN}|{rule.unless}" if rule.unless else _HIDDEN),
        )
        .cast(SPANS)
    )


@cache
def _letters(kind: str) -> npt.NDArray[np.uint8]:
    """The class of each word by its id, as ASCII."""
    listed = voc.lexicon("places")["classes"]
    classes = [
        *_SIGNS,
        *(
            (pl.col("word").is_in([one for name in names for one in listed[name]]), of)
            for of, names in voc.lexicon("places")["of_kind"][kind].items()
        ),
        *(_OWN[kind](listed) if kind in _OWN else ()),
        *_shared(listed),
    ]
    letter = pl.lit("n")
    for condition, of in reversed(classes):
        letter = pl.when(condition).then(pl.lit(of)).otherwise(letter)
    letters = voc.vocabulary().words.select(letter).to_series()
    return np.frombuffer("".join(letters.to_list()).encode("ascii"), np.uint8)


# Conditions and the class of what meets them; the first that is met decides.
Classes = list[tuple[pl.Expr, str]]

_WORD, _TAG = pl.col("word"), pl.col("tag")
_NAMED = _TAG.is_in(["ns", "nr", "nt", "nz"])
_NUMERAL = "[一二三四五六七八九十]"

_SIGNS: Classes = [
    (pl.col("id") == lattice.DIGITS, "d"),
    (pl.col("id") == lattice.LATIN, "l"),
    (pl.col("id") == lattice.UNKNOWN, "u"),
    (pl.col("id") == lattice.JOINER, "~"),
    (pl.col("id").is_in([lattice.LINE_END, lattice.SIGN]), ","),
]


def _of_schools(_: Lists) -> Classes:
    return [
        (_WORD.str.contains(f"^{_NUMERAL}+中$"), "A"),
        (_WORD.str.contains("^.{1,3}[交师财工农医科民林]大$"), "Q"),
        (_WORD.str.contains(f"^.{{2,3}}{_NUMERAL}{{1,2}}中$"), "A"),
        (_WORD == "中", "c"),
        (_WORD == "小", "i"),
    ]


def _of_employers(_: Lists) -> Classes:
    return [
        (_WORD.str.contains(f"^{_NUMERAL}+局$"), "c"),
        (_WORD.str.contains("^..{1,2}[厂局]$") & _TAG.is_in(["n", "nt", "j"]), "c"),
    ]


def _of_addresses(listed: Lists) -> Classes:
    address = ~_WORD.is_in(listed["no_address"] + listed["generic"])
    rare = (pl.col("frequency") <= 40) & ~_TAG.is_in(["i", "j", "l", "m"])
    road = _NAMED | (_TAG == "n") | _WORD.str.contains("^[五八七六]一")
    return [
        (_WORD.is_in(["家", "里", "上", "下", "前", "后", "子"]), "n"),
        (_WORD.str.contains(f"^{_NUMERAL}+(号|栋|幢|单元|号楼)$"), "N"),
        (_WORD.str.contains(f"^{_NUMERAL}+(楼|期|组|队|室|层|段|区|巷)$"), "M"),
        (_WORD == "区", "q"),
        (_WORD.str.contains("..区$") & (_TAG == "ns"), "Z"),
        (_WORD.str.contains("^.县$") & (_TAG == "ns"), "v"),
        (_WORD.str.contains("..[县镇乡村屯庄寨]$|碧桂园") & (_NAMED | rare) & address, "v"),
        (_WORD.str.contains("^.[镇村乡]$") & rare, "V"),
        (_WORD.str.contains("..[路街巷弄]$|.大道$|胡同$") & road & address, "r"),
    ]


def _of_hospitals(_: Lists) -> Classes:
    return [(_WORD == "爱", "u")]


_OWN = {"hospital": _of_hospitals, "school": _of_schools, "employer": _of_employers, "address": _of_addresses}


def _shared(listed: Lists) -> Classes:
    surnames = "".join(voc.lexicon("surnames")["single"])
    single = _WORD.str.len_chars() == 1
    return [
        (_WORD.is_in(listed["place"]), "p"),
        (_WORD.str.contains(f"^第{_NUMERAL}+$"), "w"),
        (_WORD.is_in(listed["administration"]), "k"),
        (_WORD.is_in(listed["stop"]) | _WORD.str.contains("^不.|^.+[了着过的是]$"), "-"),
        (_WORD.str.contains("^..+[省市区县州]$") & (_NAMED | (pl.col("frequency") <= 30)), "p"),
        (_WORD.is_in(listed["name_word"]), "w"),
        (_WORD.is_in(listed["generic"]), "g"),
        (_WORD.str.contains("^[〇零一二三四五六七八九十百]+$"), "h"),
        (single & _TAG.is_in(["p", "c", "r", "u", "ul", "uj", "uz", "y", "e", "m"]), "-"),
        (single, "u"),
        (_TAG == "ns", "p"),
        (_TAG == "nt", "o"),
        (_TAG.is_in(["nr", "nz"]) | _WORD.str.contains(f"^[{surnames}]家$"), "x"),
        (_TAG.is_in(["p", "c", "r", "d", "u", "ul", "y", "e", "o", "q", "m", "t", "i"]), "-"),
        (_TAG == "v", "z"),
        ((pl.col("frequency") <= _RARE) & pl.col("ours").is_null(), "y"),
    ]
