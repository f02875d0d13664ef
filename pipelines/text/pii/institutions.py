"""Schools, hospitals, employers and places that are named beyond doubt: 武汉理工大学, but not 体验大学.

Closed shapes over lists of fact (`lexicons/institutions.toml`): of a hundred institutions that an open shape finds in
real posts, seventy are words. What stands at either end must not be part of a longer word: 上海[大学]生.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import polars as pl

from pipelines.text import lexicon as lexicons
from pipelines.text.pii import vocabulary as voc
from pipelines.text.pii.context import crossing, dictionary
from pipelines.text.pii.spans import NONE, gather, matches, spans

# What ends as a town does, and is a word: 古镇, 故乡.
_TOWNS_OF_ALL = "(?:[乡村城古小名集清市某那]|隔壁|景德)镇$|[家故他城老下水回梦醉侨同异思归还返进入原外离]乡$"
_ANY = 10**9  # a border that any word may reach over: brands are no parts of words


class Shape(NamedTuple):
    """What an institution may look like, and what must stand around it; patterns are Rust's."""

    kind: str
    hit: str
    cue: str = ""  # stands right before it, and is read with it
    before: str = ""
    behind: str = ""
    not_behind: str = ""
    not_before: str = ""
    unless: str = ""  # of the hit itself
    gate: str = ""  # what a text must hold: a plain word is found much faster than what leads to it
    border: int = 200  # times in jieba's corpus: a word as frequent must not reach over an end


def institutions_in(texts: pl.Series) -> pl.DataFrame:
    """Spans of named institutions in folded texts."""
    return gather(_spans(texts, shape) for shape in _shapes())


def _spans(texts: pl.Series, shape: Shape) -> pl.DataFrame:
    rows = texts.str.contains(shape.gate).arg_true()
    hits = matches(texts.gather(rows), shape.hit, cue=shape.cue)
    if hits.is_empty():
        return NONE
    hits = hits.with_columns(row=rows.gather(hits["row"]).cast(pl.UInt32))
    for pattern, wanted, side in (
        (shape.before, True, "before"),
        (shape.behind, True, "after"),
        (shape.not_behind, False, "after"),
        (shape.not_before, False, "before"),
        (shape.unless, False, "hit"),
    ):
        if pattern:
            hits = hits.filter(pl.col(side).str.contains(pattern) == wanted)
    around = hits.select("before", "hit", "after").iter_rows()
    whole = [_is_whole(before, hit, behind, shape.border) for before, hit, behind in around]
    return spans(hits.filter(pl.Series(whole, dtype=pl.Boolean)), shape.kind)


def _is_whole(before: str, hit: str, behind: str, border: int) -> bool:
    start = len(before)
    return max(crossing(before + hit + behind, start, start + len(hit))) < border


@cache
def _shapes() -> tuple[Shape, ...]:
    listed = lexicons.lexicon("institutions", __file__)
    words = {name: value.split() for name, value in listed["words"].items()}
    sign: dict[str, str] = listed["signs"]
    places, classes = voc.lexicon("places"), voc.lexicon("places")["classes"]
    county = _any(one for one in words["county"] if len(one) > 2)
    city = sorted(set(places["city"]) - set(words["no_city"]))
    # 兴县 is a county; 兴 is a word.
    stems = [one[:-1] for one in words["county"] if len(one) > 2 and one[:-1] not in dictionary()]
    number = "第?[一二三四五六七八九十]{1,3}"
    part = {name: _any(one) for name, one in words.items()}
    part |= {
        "city": _any(city),
        "place": f"{_any([*city, *words['county'], *stems])}(?:省|市)?",
        "stem": rf"[\p{{Han}}--[{sign['function']}]]",
    }
    perhaps = set(classes["school_short"]) | set(words["perhaps_school"])
    perhaps -= {
        "长大",
        *city,
        *words["surely_school"],
        *(one for one in perhaps if _is_word(one, {"nt", "ns", "nz", "j", "nr"})),
    }
    brands = {one for one in classes["brand"] if len(one) > 1 and not one.isdigit()}
    known = brands - set(classes["brand_word"]) - set(words["used_by_all"]) | set(words["bank"])
    # Of one that its place and its subjects name.
    university = (
        f"(?:{part['city']}(?:省|市)?(?:{part['discipline']}{{0,4}}|{part['stem']}{{1,3}}{part['discipline']}{{1,3}})|"
        f"{part['region']}{part['discipline']}{{1,4}})(?:大学|学院)"
    )
    any_town = f"{_TOWNS_OF_ALL.replace('城', '').replace('集', '')}|{sign['any_town']}"
    no_student, no_town = r"^生(?:[^物命]|$)|^城", r"^[荒方街道门]|^外卖|^卖"
    return (
        Shape("school", _any([*words["university"], *_universities()]), not_behind=no_student),
        Shape(
            "school",
            university,
            gate="大学|学院",
            not_behind=no_student,
            unless="^(?:中国|南方|北方)(?:社会|民办|重点|师范|理工|工业|国际|城市|政治|经济|开放)",
        ),
        Shape(
            "school", _any(words["surely_school"]), not_behind=no_town, not_before="[湖河东西中江华台淮山]$", border=20
        ),
        Shape(
            "school",
            _any(perhaps),
            before=sign["studies_before"],
            behind=sign["studies_behind"],
            border=20,
        ),
        Shape(
            "school",
            f"{part['city']}(?:省|市)?{_any(set(classes['school_half']) - {'工业', '轻工', '海事', '航院', '科院'})}",
            not_behind="^(?:类|科(?:[^大]|$)|专业|男|女|学|大|系统|部门|局|界|培训|考|企业|园|城|圈)",
        ),
        Shape(
            "school",
            f"{part['place']}{part['stem']}{{0,4}}?(?:{number}(?:高级)?中学?|{part['middle']})",
            not_behind="^[国间旬午秋期]",
            unless="专科",
        ),
        Shape("school", f"{part['stem']}{{2,4}}(?:镇|乡)(?:中心)?(?:小学|中学)", gate="[镇乡](?:中心)?[小中]学"),
        Shape(
            "hospital",
            f"(?:{part['place']}[县区]?(?:{part['hospital_type']}|{part['hospital_name']}){{0,4}}(?:医院|卫生院|(?:精神|心理)卫生中心|"
            f"妇幼保健院|附属[一二三]院|附[一二三]院?|[一二三四五六七八九十]院)|{part['hospital_name']}(?:医院|精神卫生中心)|北医[三六]院|"
            "北大[一三六]院|上海精卫|北京回龙观)",
            unless="^(?:中国|美国)",
        ),
        Shape(
            "hospital",
            f"(?:(?:{part['place']}|{part['region']})[县区]?{part['stem']}{{1,6}}?|{university}{part['stem']}{{0,7}}?)(?:医院|医疗中心)",
            gate="医院|医疗中心",
            unless="^..+(?:公立|私立|民营|正规|专业|知名|附近|当地|各大|三甲|本地|专科|省级|市级|定点)",
        ),
        Shape(
            "hospital",
            part["hospital_name"],
            before=r"(?:在|去|到|从|[，。、；！？\s]|^)$",
            behind=sign["treated_behind"],
        ),
        Shape("employer", _any(known), before=sign["works_before"], behind=sign["works_behind"], border=_ANY),
        Shape("employer", _any(known), before=sign["works_surely_before"], border=_ANY),
        Shape("employer", _any(known), behind="^(?:员工|公司的|的?offer|校招|的?面试机会)", border=_ANY),
        Shape(
            "employer",
            _any(words["used_by_all"]),
            before=sign["works_before"],
            behind=sign["works_behind"].replace("的?offer|", ""),
        ),
        Shape("employer", r"中[铁建交水冶][一二三四五六七八九十0-9]{1,3}[局航](?:集团)?"),
        Shape(
            "employer",
            rf"(?:{part['place']})?{part['stem']}{{2,16}}(?:股份有限公司|有限责任公司|有限公司|律师事务所|会计师事务所)",
            gate="公司|事务所",
            unless="^(?:知名|国内|外资|私营|民营|小型|大型|当地|本地|其他|之前|一线|律师|会计|上市|房地产|软件|互联网)",
            border=_ANY,
        ),
        Shape(
            "employer",
            rf"{part['city']}(?:省|市)?(?:{part['utility']}|{part['stem']}{{2,6}}(?:科技|教育|传媒|咨询|置业|地产|物流|电子|贸易|集团))"
            "(?:集团|公司|局|总公司|分公司)",
            gate="集团|公司|局",
        ),
        Shape(
            "employer",
            rf"{part['place']}{part['stem']}{{2,6}}(?:印务|制药|机械|服装|电子|皮鞋|纺织|食品|化工|钢铁|福利)厂",
            gate="厂",
        ),
        Shape(
            "employer",
            rf"{part['stem']}{{2,10}}",
            cue="(?:叫做?|名叫|名为)(?:什么)?",
            behind="^的(?:一家)?(?:公司|单位|机构|企业|工厂|工作室|律所)",
        ),
        Shape(
            "address",
            f"(?:{part['city']}(?:省|市)?)?{county}(?:{part['stem']}{{1,4}}(?:镇|乡|街道|村))?",
        ),
        Shape(
            "address",
            f"{_any([one for one in words['county'] if len(one) == 2])}",
            before=r"(?:省|市|在|是|住|[，。\s]|^)$",
        ),
        Shape(
            "address",
            f"{part['stem']}{{2,5}}(?:镇|乡|街道)",
            gate="镇|乡|街道",
            unless=_TOWNS_OF_ALL,
            border=10,
        ),
        # Behind a word of going or being somewhere a town may have any letter in it: 在李家营镇.
        Shape(
            "address",
            rf"[\p{{Han}}--[{sign['clause']}]]{{2,5}}?(?:镇|乡|街道)",
            gate="镇|乡|街道",
            cue=sign["somewhere"],
            unless=any_town,
            not_behind="^[长企民定静痛压守江海下村亲镇里愁土音间]",
            border=_ANY,
        ),
        Shape(
            "address",
            rf"[\p{{Han}}--[{sign['clause']}]]{{2,4}}(?:镇|乡)",
            gate="镇|乡",
            before=r"(?:^|[（(：:/、])$",
            behind="^(?:[）)/、。]|$)",
            unless=any_town,
        ),
        Shape("address", part["known_place"]),
        Shape(
            "address",
            rf"{part['stem']}{{2,6}}(?:路|大道|大街|街|巷|弄|胡同)[0-9一二三四五六七八九十]{{1,5}}号(?:院|楼|室|[0-9]+号?)?",
            gate="号",
        ),
        Shape(
            "address",
            rf"(?:{part['city']}(?:省|市)?)?{part['stem']}{{2,6}}?(?:{part['house']}{{1,2}}|镇|街道|村)",
            gate=f"{part['house']}|镇|街道|村",
            before=sign["lives_before"],
            behind=r"^(?:[，。、的里上住租0-9\s!！?？]|$|[一二三四五六七八九十]号)",
            unless="^(?:单身|青年|学生|人才|员工|教师|高档|附近|旁边|外面|别墅|宿舍|农|城|山|乡|老|新|旧|贫|隔)",
        ),
        Shape(
            "address",
            rf"{part['stem']}{{1,6}}{part['house']}[0-9]{{1,3}}(?:栋|幢|号楼|座)(?:[0-9]{{1,2}}单元)?(?:[0-9]{{2,4}}室?)?",
            gate="栋|幢|号楼|座",
        ),
    )


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(map(re.escape, words), key=lambda one: (-len(one), one)))})"


def _is_word(word: str, names: set[str]) -> bool:
    """Whether the dictionary has it, as anything but a name of some kind, and not seldom."""
    known = dictionary().get(word)
    return known is not None and known.frequency >= 20 and known.tag not in names


def _universities() -> list[str]:
    """Those that jieba lists by their names, without kinds of universities."""
    words = lexicons.lexicon("institutions", __file__)["words"]
    kinds = "|".join([*words["discipline"].split(), *words["kind_of_university"].split()])
    kinds = f"^(?:{kinds})+(?:大学|学院)$"
    return [
        word
        for word, known in dictionary().items()
        if known.tag in ("nt", "n")
        and word.endswith(("大学", "学院"))
        and len(word) >= 4
        and "科学院" not in word
        and not re.search(kinds, word)
    ]
