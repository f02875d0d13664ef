"""Schools, employers, hospitals and addresses, where they are named: 育才中学 but not 重点中学.

For each kind every token (see `reading`) becomes one letter, its class, and the rules are regular expressions over these
letters; `lexicons/places.toml` says which words have which class.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.clean.buffers import strings
from pipelines.clean.personal_data import lattice
from pipelines.clean.personal_data import vocabulary as voc
from pipelines.clean.personal_data.reading import Reading, read
from pipelines.clean.personal_data.spans import SPANS, gather, matches


class Rule(NamedTuple):
    """A pattern of classes, and what must stand before and behind it."""

    hit: str
    cue: str = ""
    tail: str = ""
    ends: str = ""  # a list of the lexicon: with one of these words the hit must end


# Classes that every kind has: p place, x name of a person or of the unknown, w word that things are called by, o
# institution, y rare word, u single character, n other noun, z verb, g generic, k 省 市 区 县, h Chinese number, d digits, l Latin, - word that
# is never part of a name, ~ blank or hyphen, `,` other sign.
_PROPER = "(?:[xwoy]|uu|u[xwpyn]|[pxwyn]u)"
_REST = "[pkxwyounghlJ]{0,5}?"

_CLASSES: dict[str, dict[str, tuple[str, ...]]] = {
    "school": {
        "N": ("school_numbered",),
        "a": ("school_small",),
        "S": ("school",),
        "s": ("school_weak",),
        "A": ("school_alone",),
        "Q": ("school_short",),
        "r": ("read",),
        "q": ("pupil",),
        "e": ("at",),
        "x": ("brand",),
    },
    "employer": {
        "C": ("company",),
        "K": ("firm",),
        "c": ("office",),
        "T": ("brand",),
        "j": ("join",),
        "i": ("inside",),
        "e": ("at",),
        "s": ("site",),
        "W": ("work",),
        "V": ("work_beside",),
        "X": ("customer",),
        "S": ("school", "school_numbered", "school_weak", "school_small", "school_alone", "hospital", "hospital_of", "hospital_alone"),
        "F": ("called",),
        "B": ("business",),
        "b": ("branch",),
    },
    "hospital": {
        "A": ("hospital_alone",),
        "M": ("hospital_of",),
        "H": ("hospital",),
        "Q": ("hospital_short",),
        "w": ("school_short",),
        "J": ("clinic",),
        "e": ("at",),
        "t": ("patient",),
    },
    "address": {
        "R": ("road",),
        "C": ("compound",),
        "V": ("village",),
        "Y": ("road_at",),
        "W": ("village_at",),
        "D": ("building",),
        "U": ("unit",),
        "H": ("home",),
        "e": ("at",),
    },
}

_RARE = 10  # times in jieba's corpus of 60 million words: 宏远, 药科

# A building or a part of one; a street; a place to live; a village. Each with what the next larger is called before it.
_NUMBERED = "(?:[dhl]{1,2}[DUqR]{1,2}|[NM])"
_ROAD = f"(?:[un]?r|(?:[pC]|{_PROPER}|k(?:h|u))[pxwyounh]{{0,2}}[RY])"
_HOME = f"(?:(?:p|{_PROPER})[pxwyoungl]{{0,3}}C+|(?:p|{_PROPER})[nu]{{0,2}}(?:[dhl]{{1,2}}U|N)?(?:[dhl]{{1,2}}[Dq]|N))"
_VILLAGE = f"(?:v[Vk]?|n?(?:[paxZ]|{_PROPER})u?[VW])"
_DISTRICT = f"(?:[pkZ]{{0,3}}Z(?:[pxoyw]|uu)|[pk]{{1,3}}Z)"
_STREET = f"(?:(?:[pkZ]|[pxoyunw]{{1,2}}[kq]){{0,4}}(?:{_ROAD}|{_HOME}|{_VILLAGE})|{_DISTRICT})"
_PARTS = f"(?:~?(?:{_STREET}|[pwnuyxgla]{{0,3}}[RCVk]|[pwnuyx]{{0,2}}{_NUMBERED}))*"
_FURTHER = f"{_PARTS}(?:~?d)*"

_FIRM = "T(?:[pkBbCc]{0,3}[wxynu]{0,2}s|[pkBbCc]{0,3})"
_AT_WORK = "(?:[^,]{0,3}?W|-?V)"

_RULES: dict[str, tuple[Rule, ...]] = {
    "school": (
        Rule(f"[pk]{{0,3}}(?:[pQ]|{_PROPER}|kw|[pk]h){_REST}[SN](?:{_REST}[SNsA])*"),
        Rule(f"(?:[pkQ]|{_PROPER})a"),
        Rule("[pk]{0,3}dN(?:[pwn]{0,3}[SNsA])*"),
        Rule(f"[pk]{{0,3}}(?:Q|{_PROPER}|p[pkxwyoungh]){_REST}s(?:{_REST}[SNsA])*"),
        Rule(f"(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A"),
        Rule("[nuwyz]{1,2}[SA]", cue="[re]"),
        Rule("hc", tail="-?[qr]"),
        Rule("Q", cue="r[-e]?", tail="(?:[^Q]|$)"),
        Rule("Q", cue="(?:^|[^Q])", tail="-?q"),
    ),
    "employer": (
        Rule(f"[pk]{{0,3}}(?:[Tl]|{_PROPER})[pkxwyounghlBbTz]{{0,5}}?[CK]+"),
        Rule("[pk]{0,3}[xwyounghlBbTz]{0,4}?[xwyounTz][Bb]{0,3}K[CcK]*"),
        Rule("T[Bb]*C"),
        Rule("[pk]+n{1,2}C"),
        Rule("[pk]{0,3}[nuwyxz]{1,3}[Bb]?C", cue="[iej]", tail=_AT_WORK),
        Rule(f"(?:[pkT]|{_PROPER})[pkxwyounghlBbTdz]{{0,5}}?c+"),
        Rule("[nwyu]{1,2}c+", cue="[iej]", tail=_AT_WORK),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="j"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}B+c?", cue="[ie]"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="[ie]", tail=_AT_WORK),
        Rule("[pk]{0,3}g?[nuwxyz]{1,3}b?B+", cue="[ie]", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="j"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="i", tail="(?:[^X]|$)"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="e", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="e", tail="-"),
        Rule(f"[pk]{{0,2}}{_FIRM}", tail="-?W"),
        # Whatever it is called, somebody works there: 在市图书馆当管理员.
        Rule("[pk]{0,3}(?:[xoyTl]|uu|[pk][nuwxyo])[nuwxyoTBbclps]{0,4}", cue="[ie]", tail="[WV]"),
        Rule("[^-,~FeijWV]{1,6}", cue="F,?"),
    ),
    "hospital": (
        Rule(f"[pk]{{0,3}}(?:[pQ][pQkwnuxh]{{0,5}}?|(?:{_PROPER}|[pk]h){_REST})[HM](?:{_REST}[HMA])*"),
        Rule(f"[pk]+{_REST}M(?:{_REST}[HMA])*"),
        Rule(f"(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A(?:{_REST}[HMA])*"),
        Rule(f"(?:[pk]|{_PROPER})+Q"),
        Rule("[pk]*dH"),
        Rule("[nuwy]{1,2}[HM]", cue="e"),
        Rule(f"[pk]{{0,2}}{_PROPER}J", cue="e"),
        Rule("Q", tail="[^,]{0,2}?t"),
    ),
    "address": (
        Rule(f"{_STREET}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}[nuwyg]{{1,2}}[RCV]{_PARTS}{_NUMBERED}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}(?:[nwuyg]{{0,2}}[nwuy][RCV]|g{{0,2}}[nuw]{{1,2}}V){_FURTHER}", cue="[eH]"),
        Rule(f"[pkZ]{{0,3}}(?:[xo]|uuu|Z[nuxyw])[nu]{{0,2}}{_FURTHER}", cue="H"),
        Rule("[pkZ]{0,3}(?:[xwoypn]{1,2}|uu?|[xwn]u)[nu]", cue="H", ends="estate"),
        Rule(f"[nwu]{{1,3}}(?:[dhl]{{1,2}}U|[NM])?(?:[dhl]{{1,2}}D|N){_FURTHER}"),
        Rule(f"[dhl]D(?:~?{_NUMBERED})*~?(?:{_NUMBERED}|d)"),
    ),
}


def find_places(texts: pl.Series) -> pl.DataFrame:
    """Spans of schools, employers, hospitals and addresses in folded texts."""
    return places_in(read(texts))


def places_in(reading: Reading) -> pl.DataFrame:
    """Spans of schools, employers, hospitals and addresses in texts that have been read."""
    return gather(_found(reading, kind, rule) for kind, rules in _RULES.items() for rule in rules)


def _found(reading: Reading, kind: str, rule: Rule) -> pl.DataFrame:
    classes = strings(_letters(kind)[reading.tokens], reading.row_tokens)
    found = matches(classes, rule.hit, cue=rule.cue, tail=rule.tail)
    if found.is_empty():
        return pl.DataFrame(schema=SPANS)
    row = found["row"].to_numpy()
    first = reading.row_tokens[row]
    start = reading.begins[first + found["start"].to_numpy()] - reading.offsets[row]
    end = reading.ends[first + found["end"].to_numpy() - 1] - reading.offsets[row]
    data = reading.texts.gather(row).cast(pl.Binary)
    value = pl.col("data").bin.slice(pl.col("start"), pl.col("end") - pl.col("start")).cast(pl.String)
    ends = "|".join(voc.lexicon("places")["classes"][rule.ends]) if rule.ends else ""
    return (
        pl.DataFrame({"row": row, "start": start, "end": end, "data": data})
        .select("row", "start", "end", kind=pl.lit(kind), value=value.str.to_lowercase())
        .filter(pl.col("value").str.contains(f"(?:{ends})$"))
        .cast(SPANS)  # type: ignore[arg-type]
    )


@cache
def _letters(kind: str) -> npt.NDArray[np.uint8]:
    """The class of each word by its id, as ASCII."""
    listed = voc.lexicon("places")["classes"]
    word, tag = pl.col("word"), pl.col("tag")
    single = word.str.len_chars() == 1
    surnames = "".join(voc.lexicon("surnames")["single"])
    letter = (
        pl.when(pl.col("id") == lattice.DIGITS).then(pl.lit("d"))
        .when(pl.col("id") == lattice.LATIN).then(pl.lit("l"))
        .when(pl.col("id") == lattice.UNKNOWN).then(pl.lit("u"))
        .when(pl.col("id") == lattice.JOINER).then(pl.lit("~"))
        .when(pl.col("id").is_in([lattice.LINE_END, lattice.SIGN])).then(pl.lit(","))
    )  # fmt: skip
    for of_kind, names in _CLASSES[kind].items():
        words = [one for name in names for one in listed[name]]
        letter = letter.when(word.is_in(words)).then(pl.lit(of_kind))
    named = tag.is_in(["ns", "nr", "nt", "nz"])
    if kind == "school":
        letter = letter.when(word == "中").then(pl.lit("c"))
    if kind == "employer":
        letter = letter.when(word.str.contains("^..{1,2}[厂局]$") & tag.is_in(["n", "nt", "j"])).then(pl.lit("c"))
    if kind == "address":
        no_address = word.is_in(listed["no_address"] + listed["generic"])
        rare = (pl.col("frequency") <= 40) & ~tag.is_in(["i", "j", "l", "m"])
        letter = (
            letter.when(word.is_in(["家", "里", "上", "下", "前", "后", "子"])).then(pl.lit("n"))
            .when(word.str.contains("^[一二三四五六七八九十]+(号|栋|幢|单元|号楼)$")).then(pl.lit("N"))
            .when(word.str.contains("^[一二三四五六七八九十]+(楼|期|组|队|室|层|段|区|巷)$")).then(pl.lit("M"))
            .when(word == "区").then(pl.lit("q"))
            .when(word.str.contains("..区$") & (tag == "ns")).then(pl.lit("Z"))
            .when((tag == "ns") & word.str.contains("^.县$")).then(pl.lit("v"))
            .when((named | rare) & word.str.contains("..[县镇乡村屯庄寨]$|碧桂园") & ~no_address).then(pl.lit("v"))
            .when(rare & word.str.contains("^.[镇村乡]$")).then(pl.lit("V"))
            .when((named | (tag == "n") | word.str.contains("^[五八七六]一")) & word.str.contains("..[路街巷弄]$|.大道$|胡同$") & ~no_address)
            .then(pl.lit("r"))
            .when(word.is_in(voc.lexicon("surnames")["single"][:150]) & ~word.is_in(listed["stop"] + listed["generic"]))
            .then(pl.lit("a"))
        )  # fmt: skip
    letter = (
        letter.when(word.is_in(listed["place"])).then(pl.lit("p"))
        .when(word.str.contains("^第[一二三四五六七八九十百]+$")).then(pl.lit("w"))
        .when(word.is_in(listed["administration"])).then(pl.lit("k"))
        .when(word.is_in(listed["stop"]) | word.str.contains("^不.|^.+[了着过的是]$")).then(pl.lit("-"))
        .when(word.str.contains("^..+[省市区县州]$") & (named | (pl.col("frequency") <= 30))).then(pl.lit("p"))
        .when(word.is_in(listed["name_word"])).then(pl.lit("w"))
        .when(word.is_in(listed["generic"])).then(pl.lit("g"))
        .when(word.str.contains("^[〇零一二三四五六七八九十百]+$")).then(pl.lit("h"))
        .when(single & tag.is_in(["p", "c", "r", "u", "ul", "uj", "uz", "y", "e", "m"])).then(pl.lit("-"))
        .when(single).then(pl.lit("u"))
        .when(tag == "ns").then(pl.lit("p"))
        .when(tag == "nt").then(pl.lit("o"))
        .when(tag.is_in(["nr", "nz"]) | word.str.contains(f"^[{surnames}]家$")).then(pl.lit("x"))
        .when(tag.is_in(["p", "c", "r", "d", "u", "ul", "y", "e", "o", "q", "m", "t", "i"])).then(pl.lit("-"))
        .when(tag == "v").then(pl.lit("z"))
        .when((pl.col("frequency") <= _RARE) & pl.col("ours").is_null()).then(pl.lit("y"))
        .otherwise(pl.lit("n"))
    )  # fmt: skip
    letters = voc.vocabulary().words.select(letter).to_series()
    return np.frombuffer("".join(letters.to_list()).encode("ascii"), np.uint8)
