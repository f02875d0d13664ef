"""What tells a school, an employer, a hospital or an address: classes of words, and rules over them.

Every token (see `reading`) is one letter, its class; a rule is a regular expression over these letters. Which words
have which class says `lexicons/places.toml`. Classes that all kinds share:

    p place   x name   w word that things are called by   o institution   y rare word   u single character
    n other noun   z verb   g generic: adds nothing to a name   k 省, 市, 中国 …   h Chinese number   d digits
    l Latin letters   - word that no name has in it   ~ blank or hyphen   , other sign
"""

from typing import NamedTuple

from pipelines.clean.personal_data import vocabulary as voc


class Rule(NamedTuple):
    """A pattern of classes, and what must stand before and behind it."""

    hit: str
    cue: str = ""
    tail: str = ""
    value: str = ""  # a regex that the text of the hit must match
    cut: str = ""  # a regex, of what belongs to the word behind it: 李家村|长大 is read as 李家|村长|大


# Per kind: the letters of its own classes, the first that fits, and the word lists that they stand for.
CLASSES: dict[str, dict[str, tuple[str, ...]]] = {
    "school": {
        "N": ("school_numbered",),
        "a": ("school_small",),
        "S": ("school",),
        "s": ("school_weak",),
        "A": ("school_alone",),
        "Q": ("school_short",),
        "B": ("school_half",),
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
        "P": ("stint",),
        "O": ("owes",),
        "f": ("by",),
        "W": ("work",),
        "V": ("work_beside",),
        "X": ("customer",),
        "S": (
            "school",
            "school_numbered",
            "school_weak",
            "school_small",
            "school_alone",
            "hospital",
            "hospital_of",
            "hospital_alone",
        ),
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
        "m": ("village_head",),
        "e": ("at",),
    },
}

# What makes a name one, and what may stand between that and the last word.
_PROPER = "(?:[xwoy]|uu|u[xwpyn]|[pxwyn]u)"
_REST = "[pkxwyounghlJ]{0,5}?"

# The town that lends its name; the short name of a school.
_TOWN = "(?:[nuwyx]{1,2}k)?"
_SHORT = "(?:[pkuwynx]{0,2}Q|[pkuwynx]{1,2}B)"

# A building or a part of one; a street; a place to live; a village. Each with what the next larger is called before it.
_NUMBERED = "(?:[dhl]{1,2}[DUqR]{1,2}|[NM])"
_ROAD = f"(?:[un]?r|(?:[pC]|{_PROPER}|k(?:h|u))[pxwyounh]{{0,2}}[RY])"
_HOME = f"(?:(?:p|{_PROPER})[pxwyoungl]{{0,3}}C+|(?:p|{_PROPER})[nu]{{0,2}}(?:[dhl]{{1,2}}U|N)?(?:[dhl]{{1,2}}[Dq]|N))"
_VILLAGE = f"(?:u?v[Vk]?|n?(?:[pxZ]|{_PROPER})u?[VW])"
_DISTRICT = "(?:[pkZ]{0,3}Z(?:[px]|uu)|[pk]{0,3}Z)"
_STREET = f"(?:(?:[pkZ]|[pxoyunw]{{1,2}}[kq]){{0,4}}(?:{_ROAD}|{_HOME}|{_VILLAGE})|{_DISTRICT})"
_PARTS = f"(?:~?(?:{_STREET}|[pwnuyxgl]{{0,3}}[RCVk]|[pwnuyx]{{0,2}}{_NUMBERED}))*"
_FURTHER = f"{_PARTS}(?:~?d)*"

_FIRM = "T(?:[pkBbCc]{0,3}[wxynu]{0,2}s|[pkBbCc]{0,3})"
_AT_WORK = "(?:[^,]{0,3}?[WP]|-?[VP])"

_ESTATE = f"(?:{'|'.join(voc.lexicon('places')['classes']['estate'])})$"
_FAMILY_VILLAGE = f"^[{''.join(voc.lexicon('surnames')['single'][:150])}][村庄屯寨]"

RULES: dict[str, tuple[Rule, ...]] = {
    "school": (
        Rule(f"{_TOWN}[pk]{{0,3}}i?(?:[pQ]|{_PROPER}|kw|[pk]h){_REST}[SN](?:{_REST}[SNsA])*"),
        Rule("[pxu]zs"),
        Rule(f"(?:[pkQ]|{_PROPER})a"),
        Rule("[pk]{0,3}dN(?:[pwn]{0,3}[SNsA])*"),
        Rule(f"[pk]{{0,3}}(?:Q|{_PROPER}|p[pkxwyoungh]){_REST}s(?:{_REST}[SNsA])*"),
        Rule(f"{_TOWN}(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A"),
        Rule("(?:i?[nuwyz]{1,2}[SA]|i?(?:[nwyz]{1,2}|uu|u[nwyz])N|k[SNAs]|a)", cue="[re]"),
        Rule("ks", value="[艺体卫警技党]校$"),
        Rule("[pu]S", value="^.{1,2}[科工财农师医]大$"),
        Rule("hc", tail="-?[qr]"),
        Rule(_SHORT, cue="r[-e]?", tail="(?:[^Q]|$)"),
        Rule(_SHORT, cue="(?:^|[^Q])", tail="-?[qr]"),
    ),
    "employer": (
        Rule(f"[pk]{{0,3}}(?:[Tl]|{_PROPER})[pkxwyounghlBbTz]{{0,5}}?[CK]+"),
        Rule("[pk]{0,3}[xwyounghlBbTz]{0,4}?[xwyounTz][Bb]{0,3}K[CcK]*"),
        Rule("T[Bb]*C"),
        Rule("[pk]+n{1,2}C"),
        Rule("[pk]{0,3}[nuwyxz]{1,3}g?[Bb]?C", cue="[iej]", tail=_AT_WORK),
        Rule(f"(?:[pkT]|{_PROPER})[pkxwyounghlBbTdz]{{0,5}}?c+"),
        Rule("[nwyu]{1,2}c+", cue="[iej]", tail=_AT_WORK),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="j"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}B+c?", cue="[ie]"),
        Rule(f"[pk]{{0,3}}(?:[pTl]|{_PROPER})[pkxwyounghlBbT]{{0,3}}[Bb]+c?", cue="[ie]", tail=_AT_WORK),
        Rule("[pk]{0,3}g?[nuwxyz]{1,3}b?B+", cue="[ie]", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="j"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="i", tail="(?:[^X]|$)"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="e", tail=_AT_WORK),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="-e", tail="-"),
        Rule(f"[pk]{{0,2}}{_FIRM}", tail="(?:-?[WP]|-l|O)"),
        Rule(f"[pk]{{0,2}}{_FIRM}", cue="f", tail="[WPVO]"),
        # 优胜教育欠我工资, 被蔚蓝科技裁员
        Rule("[pk]{0,3}[nuwxyzoT]{1,3}g?[Bb]*[BbCK]", tail="O"),
        Rule("[pk]{0,3}[nuwxyzoT]{1,3}g?[Bb]*[BbCK]", cue="f", tail="[WPO]"),
        Rule("[pk]{0,3}[nuwxyzo]{1,3}g?[Bb]+", cue="[iej]", tail=_AT_WORK),
        # An office that no place tells apart, a kindergarten: where it is said that somebody works there.
        Rule("[kg]?c", cue="[iej]", tail=_AT_WORK, value="(?:[局办委府所]|[法检察]院|[支分]行)$"),
        Rule("[pk]{0,3}[nuwxyzog]{1,3}S", cue="[iej]", tail=_AT_WORK, value="幼儿园$"),
        # Whatever it is called, somebody works there: 在市图书馆当管理员.
        Rule("[pk]{0,3}(?:[xoyTl]|uu|[pk][nuwxyo])[nuwxyoTBbclps]{0,4}", cue="[ie]", tail="[WVP]", value="^[^阿小老]"),
        Rule("[^-,~FeijWV]{1,6}", cue="F,?"),
    ),
    "hospital": (
        Rule(f"[pk]{{0,3}}(?:[pQ][pQkwnuxh]{{0,5}}?|(?:{_PROPER}|[pk]h){_REST})[HM](?:{_REST}[HMA])*"),
        Rule(f"[pk]+{_REST}M(?:{_REST}[HMA])*"),
        Rule(f"(?:[pkQ]{{0,3}}(?:[pkQ]|{_PROPER}){_REST})?A(?:{_REST}[HMA])*"),
        Rule(f"(?:[pk]|{_PROPER})+Q"),
        Rule("[pk]*dH"),
        Rule("(?:[nuwyx]{1,2}g?[HM]|[pk]+H)", cue="e"),
        Rule("k[HM]", tail="[^,]{0,2}?t"),
        Rule(f"[pk]{{0,2}}{_PROPER}J", cue="e"),
        Rule("Q", tail="(?:[^,]{0,2}?t|e-)"),
    ),
    "address": (
        Rule(f"{_STREET}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}[nuwyg]{{1,2}}[RCV]{_PARTS}{_NUMBERED}{_FURTHER}"),
        Rule(f"[pkZ]{{0,4}}(?:[nwuyg]{{0,2}}[nwuy][RCV]|g{{0,2}}[nuw]{{1,2}}V){_FURTHER}", cue="[eH]"),
        Rule(f"[pkZ]{{0,3}}(?:[xoy]|uu|w[nwpdu]|Z[nuxyw])[nu]{{0,2}}{_FURTHER}", cue="H"),
        Rule("w[nu]{1,4}", cue="[He]", value=_ESTATE),
        Rule("[dhl]{1,2}D", cue="H"),
        Rule("(?:[pxZ]|uu|[nu]u)m", tail="g", cut="长$"),
        Rule("[pkZ]{0,3}(?:[xwoypn]{1,2}|uu?|[xwn]u)[nu]", cue="H", value=_ESTATE),
        Rule(f"u[VW]{_FURTHER}", value=_FAMILY_VILLAGE),
        Rule(f"[nwu]{{1,3}}(?:[dhl]{{1,2}}U|[NM])?(?:[dhl]{{1,2}}D|N){_FURTHER}"),
        Rule(f"[dhl]D(?:~?{_NUMBERED})*~?(?:{_NUMBERED}|d)"),
    ),
}
