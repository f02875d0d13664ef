"""Schools, employers, hospitals and addresses, where they are named: 育才中学 but not 重点中学.

Every token of a text (see `segmentation`) is one letter, its class; a rule is a regular expression over these letters.
`lexicons/places.toml` says which words have which class. Classes that all kinds share:

    p place   x name   w word that things are called by   o institution   y rare word   u single character
    n other noun   z verb   g generic: adds nothing to a name   k 省, 市, 中国 …   h Chinese number   d digits
    l Latin letters   - word that no name has in it   ~ blank or hyphen   , other sign
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pipelines.core.arrow import strings
from pipelines.text.pii import lattice
from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.segmentation import Segmented
from pipelines.text.pii.spans import SPANS, gather, matches


class Rule(NamedTuple):
    """A pattern of classes, and what must stand before and behind it."""

    hit: str
    cue: str = ""
    tail: str = ""
    value: str = ""  # a regex that the text of the hit must match
    unless: str = ""  # a regex that it must not match
    cut: str = ""  # a regex, of what belongs to the word behind it: 李家村|长大 is read as 李家|村长|大


# What makes a name one, and what may stand between that and the last word.
_PROPER = "(?:[xwoy]|uu|u[xwpyn]|[pxwyn]u)"
_REST = "[pkxwyounghlJ]{0,5}?"

# The town that lends its name; the short name of a school.
_TOWN = "(?:[nuwyx]{1,2}k)?"
_SHORT = "(?:[pkuwynx]{0,2}Q|[pkuwynx]{1,2}B)"

# A building or a part of one; a street; a place to live; a village. Each with what the next larger is called before it.
_NUMBERED = "(?:~?[dhl]{1,2}~?[DUqR]{1,2}|[NM])"
_ROAD = f"(?:[un]?r|(?:[pC]|{_PROPER}|k(?:h|u))[pxwyounh]{{0,2}}[RY])"
_HOME = f"(?:(?:p|{_PROPER})[pxwyoungl]{{0,3}}C+|(?:p|{_PROPER})[nu]{{0,2}}(?:[dhl]{{1,2}}U|N)?(?:[dhl]{{1,2}}[Dq]|N))"
_VILLAGE = f"(?:u?v[Vk]?|n?(?:[pxZ]|{_PROPER})u?[VW])"
_DISTRICT = "(?:[pkZ]{0,3}Z(?:[px]|uu)|[pk]{0,3}Z)"
_STREET = f"(?:(?:[pwZ]~){{0,4}}(?:[pkZ]~?|[pxoyunw]{{1,2}}[kq]~?){{0,4}}(?:{_ROAD}|{_HOME}|{_VILLAGE})|{_DISTRICT})"
_PARTS = f"(?:~?(?:{_STREET}|[pwnuyxglh]{{0,3}}[RCVk]|[pwnuyx]{{0,2}}{_NUMBERED}))*"
_FURTHER = f"{_PARTS}(?:~?d|~h+)*"
_SOMEWHERE = "(?:[pxoy]|uu|w[nwpu]|[nu]u)[nupwxydg]{0,2}"

_FIRM = "T(?:[pkBbCc]{0,3}[wxynu]{0,2}s|[pkBbCc]{0,3})"
_AT_WORK = "(?:[^,]{0,3}?[WP]|-?[VP])"

_TRADE = (
    "(?:方面|行业|领域|部门|岗位|系统|体制|流水线|车间|办公室|平台|环境|状态|电脑|手机|过程|[家里上中时内外下地的])"
)
_OFFICE = "(?:[局办委府所处队]|[法检察]院|[支分]行|歌舞团|中心)$"
_ESTATE = f"(?:{'|'.join(voc.lexicon('places')['classes']['estate'])})$"
_SURNAMES = "".join(voc.lexicon("surnames")["single"][:150])
_FAMILY_VILLAGE = f"^[{_SURNAMES}][村庄屯寨]"
_PLACES = voc.lexicon("places")
# Cities, and what everybody lives in: 上海, 学生宿舍.
_ANYWHERE = "^(?:{})*(?:{})$|^(?:{})+[省市]?$".format(
    *(
        "|".join(words)
        for words in (_PLACES["classes"]["generic"] + _PLACES["house"], _PLACES["house"], _PLACES["city"])
    )
)

RULES: dict[str, tuple[Rule, ...]] = {
    "school": (
        Rule(f"{_TOWN}[pk]{{0,3}}i?(?:[pQ]|{_PROPER}|kw|[pk]h){_REST}[SN](?:{_REST}[SNsA])*"),
        Rule("[pxu]zs"),
        Rule(f"(?:[pkQ]|{_PROPER})a"),
        Rule("[pk]{0,3}dN(?:[pwn]{0,3}[SNsA])*"),
        Rule(f"[pk]{{0,3}}(?:Q|{_PROPER}|p[pkxwyoungh]){_REST}s(?:{_REST}[SNsA])*"),
        Rule(f"{_TOWN}(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A(?:[pk]{{1,3}}[SN])?"),
        Rule("(?:i?[nuwyz]{1,2}[SA]|i?(?:[nwyz]{1,2}|uu|u[nwyz])N|k[SNAs]|a)", cue="[re]"),
        Rule("ks", value="[艺体卫警技党]校$"),
        Rule("[pu]S", value="^.{1,2}[科工财农师医]大$"),
        Rule("hc", tail="-?[qr]"),
        Rule("AA", value="附[中小属]"),
        Rule("l(?:~l){1,4}", value="^university of [a-z]+(?: [a-z]+)?$|^[a-z]+(?: [a-z]+)? (?:university|college)$"),
        Rule("[unp]A", value="^[哈大沈长吉成武昆石保邯唐赣绍柳桂厦福泉漳济青烟][一二三四五六七八九十]+中$"),
        Rule(_SHORT, cue="r[-e]?", tail="(?:[^Q]|$)"),
        Rule(_SHORT, cue="(?:^|[^Q])", tail="-?,?-?[qr]"),
        Rule("Q", cue="e", tail="(?:,|$)"),
        Rule("l", cue="[re]", tail="-?q", value=f"^(?:{'|'.join(_PLACES['school_latin'])})$"),
    ),
    "employer": (
        Rule(f"[pk]{{0,3}}(?:[Tl]|{_PROPER})[pkxwyounghlBbTz]{{0,5}}?[CK]+"),
        Rule("[pk]{0,3}[xwyounghlBbTz]{0,4}?[xwyounTz][Bb]{0,3}K[CcK]*"),
        Rule("T[Bb]*C"),
        Rule("[pk]+n{1,2}C"),
        Rule("[pk]{0,3}[nuwyxz]{1,3}g?[Bb]?C", cue="[iejJ]", tail=_AT_WORK),
        Rule(f"(?:[pkT]|{_PROPER})[pkxwyounghlBbTdz]{{0,5}}?c+"),
        Rule("[nwyu]{1,2}c+", cue="[iejJ]", tail=_AT_WORK),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="[jJ]"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}B+c?", cue="[ie]"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="[ie]", tail=_AT_WORK),
        Rule("[pk]{0,3}g?[nuwxyz]{1,3}b?B+", cue="[ie]", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="[jJ]"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="i", tail="(?:[^X]|$)"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="e", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="-e", tail="-"),
        Rule(f"[pk]{{0,2}}{_FIRM}", tail="(?:-?[WP]|-V|-l|O)"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="f", tail="[WPVO]"),
        # 优胜教育欠我工资, 被蔚蓝科技裁员, 蓝海物流上班的
        Rule("[pk]{0,3}g?[nuwxyzoT]{1,3}g?[Bb]*[BbCK]", tail="(?:O|-[WV])"),
        Rule("[pk]{0,3}[nuwxyzo][nuwxyzogcBb]{1,3}[CK]?", cue="f", tail="[WPO]"),
        Rule("[pk]{0,3}[nuwxyop]{1,3}B", tail="[WP]"),
        Rule("[pk]{0,3}(?:[xoyw]|uu|uw)[nu]?g?[Bb]+", cue="e", tail="-(?:,|$)"),
        Rule("c", cue="(?:^|,)", tail="W", value=_OFFICE),
        Rule("[nwkg]?c", cue="[jJ]"),
        Rule("[pk]{0,3}[nuwxyzot][nuwxyzogcBb]{0,3}[CK]?", cue="J"),
        Rule("t[Bb]*", cue="[iejf]", tail=_AT_WORK),
        Rule("[pk]{0,3}g?[nuwxyzo]{1,3}g?[Bb]+", cue="[iejJ]", tail=_AT_WORK),
        # An office that no place tells apart, a kindergarten: where somebody works there by the words around.
        Rule("[nwkg]?c", cue="[iejJ]", tail=_AT_WORK, value=_OFFICE),
        Rule("[nwkg]?c", cue="i", tail="(?:,|$)", value="[局办处队]$"),
        Rule("[nwkg]?c", cue="e", tail="-(?:,|$)", value=_OFFICE),
        Rule("[pk]{1,3}[nuwxyz]{1,3}", cue="i", tail="(?:,|$)", value="(?:中心|[馆站所队团社])$"),
        Rule("[pk]{0,3}[nuwxyogh]{2,3}", cue="i", tail="[WPV]", unless=f"{_ANYWHERE}|{_TRADE}$"),
        Rule("[pk]{0,3}(?:[xoyw][nuwxyogBbcp]{1,3}|uu[nuwBbcz]{0,3}|k?n[nuz]?[BbC])", cue="i", tail=_AT_WORK),
        Rule("[pk]{0,3}[nuwxyzog]{1,3}S", cue="[iejJ]", tail=_AT_WORK, value="幼儿园$"),
        # Whatever it is called, somebody works there: 在市图书馆当管理员.
        Rule("[pk]{0,3}(?:[xoyTl]|uu|[pk][nuwxyo])[nuwxyoTBbclps]{0,4}", cue="[ie]", tail="[WVP]", value="^[^阿小老]"),
        Rule("[^-,~FeijWV]{1,6}", cue="(?:^|[^ei])F,?"),  # not 打到单位是违法的
        # 瑞幸咖啡人民广场店的店长, 东风厂的工友
        Rule("[pk]{0,2}T[Bb]?[pkwxyounCcBb]{1,4}", tail="-?[WVPO]", value="店$"),
        Rule("[pk]{0,2}[pwxyo][ug]", tail="-?[WP]", value="[^工船药茶油水电]厂$"),
        *(
            Rule("l(?:~?l)?", cue=cue, tail=tail, value=f"^(?:{'|'.join(_PLACES['employer_latin'])})$")
            for cue, tail in (
                ("[jJ]-?", ""),
                ("[WVl][-e]", ""),
                ("", "~?-?[WPO]"),
                ("[ie]~?", _AT_WORK),
                ("f", "[WPVO]"),
            )
        ),
    ),
    "hospital": (
        Rule(f"[pk]{{0,3}}(?:[pQ][pQkwnuxh]{{0,5}}?|(?:{_PROPER}|[pk]h){_REST})[HM](?:{_REST}[HMA])*"),
        Rule(f"[pk]+{_REST}M(?:{_REST}[HMA])*"),
        Rule(f"(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A(?:{_REST}[HMA])*"),
        Rule(f"(?:[pk]|{_PROPER})+Q"),
        Rule("[pk]*dH"),
        Rule("(?:[nuwyx]{1,2}g?[HM]|[pk]+H)", cue="e"),
        Rule("M", cue="e", tail="[^,]{0,2}?[tT]"),
        Rule("[nuwyx]{1,2}A", value="^..{1,2}[省市县区]"),
        Rule("[nuwyx]{1,2}gJ", cue="e"),
        Rule("nH", tail="-?[tT]"),
        Rule("[pk]+J", cue="e"),
        Rule("Q", cue="e", tail="(?:,|$)", value="[院和西雅鲁金仁年卫]$"),
        Rule("d", tail="[^,]{0,2}?[tT]", value="^30[1-79]$"),
        Rule("(?:[pk]+J|k[HM]|(?:[wyx]|uu|[uwyx]n)[HJ])", tail="[^,]{0,2}?[tT]"),
        Rule(f"[pk]{{0,2}}{_PROPER}J", cue="e"),
        Rule("Q", tail="(?:[^,]{0,2}?[tT]|e-)"),
        # 同济的贺主任, 去安定住院
        Rule("[wpxnoyQ]", tail="-?[^,e]?T", value=f"^(?:{'|'.join(_PLACES['hospital_word'])})$"),
        Rule("p[wxnouy]", tail="-?[^,e]?T", value=f"(?:{'|'.join(_PLACES['hospital_word'])})$"),
    ),
    "address": (
        Rule(f"{_STREET}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}[nuwyg]{{1,2}}[RCV]{_PARTS}{_NUMBERED}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}(?:[nwuyg]{{0,2}}[nwuy][RCV]|g{{0,2}}[nuw]{{1,2}}V){_FURTHER}", cue="[eHS]"),
        # What somebody lives in by the words around, unless that is a city, or a house like any other.
        Rule(
            f"[pkZ]{{0,3}}(?:[pxoywC]|uu|[nu]p|[nuwy]{{2}})[nupwxydgCU]{{0,3}}{_FURTHER}",
            cue="H",
            unless=f"{_ANYWHERE}|[里上下外]面$",
        ),
        Rule(f"[pkZ]{{0,3}}{_SOMEWHERE}{_FURTHER}", cue="S", unless=_ANYWHERE),
        Rule(f"[pkZ]{{0,3}}{_SOMEWHERE}", cue="e", tail="-?G", unless=f"{_ANYWHERE}|[里下上]$"),
        Rule(f"[pkZ]{{0,3}}{_SOMEWHERE}", cue="(?:e|^|,)", tail="-?L", unless=f"{_ANYWHERE}|[里下上]$"),
        Rule("w[nu]{1,4}", cue="[eHS]", value=_ESTATE),
        Rule("x[un]", value=f"^[{_SURNAMES}]家[坝洼沟湾坳岭坪塘畈冲垭岗坡寨店营铺圩浜桥集台河屋院咀嘴堡]$"),
        Rule(
            f"[nwuyx]{{1,2}}[nu](?:[dhl]{{1,2}}U|[NM]){_FURTHER}",
            value="^..{1,2}[里坊湾郡庭府墅城堡轩阁榭园堤汇苑][^里]",
        ),
        Rule(f"[pkZ]{{0,3}}{_PROPER}[nu]?B", cue="[eHS]"),
        Rule("[dhl]{1,2}D", cue="H"),
        Rule("[dhl]{1,2}U(?:~?[dhl]{1,2}U)+", value="(?:[组队弄巷楼].*号|号.*[楼室房])$"),
        Rule("(?:[pxow]|uu|[nu]{1,2})[DU]", cue="[eH]", value="(?:宿舍|家属|公寓)楼?$", unless=_ANYWHERE),
        Rule("(?:[pxZ]|uu|[nu]u)m", tail="g", cut="长$"),
        Rule("[pkZ]{0,3}(?:[xwoypn]{1,2}|uu?|[xwn]u)[nu]", cue="[HS]", value=_ESTATE),
        Rule(f"u[VW]{_FURTHER}", value=_FAMILY_VILLAGE),
        Rule(f"[nwu]{{1,3}}(?:[dhl]{{1,2}}U|[NM])?(?:[dhl]{{1,2}}D|N){_FURTHER}"),
        # 阳光100北区7-2-901, 朗诗寓望京店517
        Rule("[pkZ]{0,3}[pwxoyZ][nupgCR]{0,3}d?[nupgCZqM]{0,2}d~d~d", value="[^0-9][0-9]{1,2}-[0-9]{1,2}-[0-9]{3,4}$"),
        Rule("C[pwxyoun]{1,3}d", value="店[0-9]{3,4}$"),
        Rule(f"[dhl]D(?:~?{_NUMBERED})*~?(?:{_NUMBERED}|d)"),
    ),
}

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
    classes = [
        *_SIGNS,
        *(
            (pl.col("word").is_in([one for name in names for one in _LISTED[name]]), of)
            for of, names in voc.lexicon("places")["of_kind"][kind].items()
        ),
        *_OWN[kind],
        *_SHARED,
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


_LISTED = voc.lexicon("places")["classes"]
_IN_ADDRESSES = ~_WORD.is_in(_LISTED["no_address"] + _LISTED["generic"])
_RARE_WORD = (pl.col("frequency") <= 40) & ~_TAG.is_in(["i", "j", "l", "m"])
_ROAD_WORD = _NAMED | (_TAG == "n") | _WORD.str.contains("^[五八七六]一")
# Of one kind alone.
_OWN: dict[str, Classes] = {
    "school": [
        (_WORD.str.contains(f"^{_NUMERAL}+中$"), "A"),
        (_WORD.str.contains("^.{1,3}[交师财工农医科民林]大$"), "Q"),
        (_WORD.str.contains(f"^.{{2,3}}{_NUMERAL}{{1,2}}中$"), "A"),
        (_WORD == "中", "c"),
        (_WORD == "小", "i"),
    ],
    "employer": [
        (_WORD.str.contains(f"^{_NUMERAL}+局$"), "c"),
        (_WORD.str.contains("^..{1,2}[厂局]$") & _TAG.is_in(["n", "nt", "j"]), "c"),
    ],
    "hospital": [(_WORD == "爱", "u")],
    "address": [
        (_WORD.is_in(["家", "里", "上", "下", "前", "后", "子"]), "n"),
        (_WORD.str.contains(f"^{_NUMERAL}+(号|栋|幢|单元|号楼)$"), "N"),
        (_WORD.str.contains(f"^{_NUMERAL}+(楼|期|组|队|室|层|段|区|巷)$"), "M"),
        (_WORD == "区", "q"),
        (_WORD.str.contains("..区$") & (_TAG == "ns"), "Z"),
        (_WORD.str.contains("^.县$") & (_TAG == "ns"), "v"),
        (_WORD.str.contains("..[县镇乡村屯庄寨]$|碧桂园") & (_NAMED | _RARE_WORD) & _IN_ADDRESSES, "v"),
        (_WORD.str.contains("^.[镇村乡]$") & _RARE_WORD, "V"),
        (_WORD.str.contains("..[路街巷弄]$|.大道$|胡同$") & _ROAD_WORD & _IN_ADDRESSES, "r"),
    ],
}
_SINGLE = _WORD.str.len_chars() == 1
# Of all kinds.
_SHARED: Classes = [
    (_WORD.is_in(_LISTED["place"]), "p"),
    (_WORD.str.contains(f"^第{_NUMERAL}+$"), "w"),
    (_WORD.is_in(_LISTED["administration"]), "k"),
    (_WORD.is_in(_LISTED["stop"]) | _WORD.str.contains("^不.|^.+[了着过的是]$"), "-"),
    (_WORD.str.contains("^..+[省市区县州]$") & (_NAMED | (pl.col("frequency") <= 30)), "p"),
    (_WORD.is_in(_LISTED["name_word"]), "w"),
    (_WORD.is_in(_LISTED["generic"]), "g"),
    (_WORD.str.contains("^[〇零一二三四五六七八九十百]+$"), "h"),
    (_SINGLE & _TAG.is_in(["p", "c", "r", "u", "ul", "uj", "uz", "y", "e", "m"]), "-"),
    (_SINGLE, "u"),
    (_TAG == "ns", "p"),
    (_TAG == "nt", "o"),
    (_TAG.is_in(["nr", "nz"]) | _WORD.str.contains(f"^[{''.join(voc.lexicon('surnames')['single'])}]家$"), "x"),
    (_TAG.is_in(["p", "c", "r", "d", "u", "ul", "y", "e", "o", "q", "m", "t", "i"]), "-"),
    (_TAG == "v", "z"),
    ((pl.col("frequency") <= _RARE) & pl.col("ours").is_null(), "y"),
]
