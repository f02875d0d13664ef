"""Which facts a rewrite changed: on lines that we invented (facts.toml)."""

import tomllib
from pathlib import Path
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewrite.facts import KINDS, changed, figures, names
from pipelines.rewrite.figure import shown
from pipelines.text.pii.vocabulary import lexicon

CASES = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))["case"]
SAME = [(case["before"], after, case.get("lang", "zh")) for case in CASES for after in case.get("same", ())]
CHANGED = {
    kind: [(case["before"], after, case.get("lang", "zh")) for case in CASES for after in case.get(kind, ())]
    for kind in KINDS
}


def test_a_fact_in_other_words_is_the_same():
    assert {key for case in CASES for key in case} == {"before", "lang", "same", *KINDS}
    assert len(SAME) >= 60
    assert sum(lang == "en" for _, _, lang in SAME) >= 20
    for kind, cases in CHANGED.items():
        assert {lang for _, _, lang in cases} == {"zh", "en"}, kind
    changes = {(before, after): changed(before, after, lang) for before, after, lang in SAME}
    assert {pair: kinds for pair, kinds in changes.items() if kinds} == {}


def test_a_fact_that_was_changed_lost_or_added_is_caught():
    assert [(kind, one) for kind, cases in CHANGED.items() for one in cases if kind not in changed(*one)] == []


def test_what_is_lost_one_way_is_added_the_other_and_a_fact_may_be_mentioned_once_less():
    both = [*SAME, *(one for cases in CHANGED.values() for one in cases)]
    assert [(one, other) for one, other, lang in both if changed(one, other, lang) != changed(other, one, lang)] == []
    assert [text for text, _, lang in both if changed(f"{text}\n{text}\n", text, lang)] == []


def test_one_that_took_the_place_of_another_is_one_change():
    before, after = "三年前我在北京，[姓名]也在。", "五年前我在上海，[姓名2]也在。"
    assert changed(before, after, "zh") == {"number": 1, "placeholder": 1, "name": 1}


def test_what_counts_nothing_is_no_figure():
    chinese = """
    一起去 一下 一些 一直 第一，先睡 十分难过 千万别急 万一呢 百分百 半天 一个人 三心二意 有一天 一天比一天 几十次
    好几百 这两天 过两年 两口子 我们俩 两难 七上八下 一模一样 三分钟热度 大一点 [姓名2]
    """
    english = ["one day", "no one", "one of us", "a couple of days", "24/7", "covid-19", "you two", "3rd", "one year"]
    assert [text for text in chinese.split() if figures(text, "zh")] == []
    assert [text for text in english if figures(text, "en")] == []


def test_the_same_figure_is_the_same_however_it_is_written():
    for one, other in (
        *(("三年", "36个月"), ("半年", "6个月"), ("两周", "14天"), ("两个星期", "2周"), ("九十分钟", "一个半小时")),
        *(("两年半", "30个月"), ("五千块", "5000元"), ("120斤", "60公斤"), ("百分之三十", "30%"), ("星期天", "周日")),
        *(("高三", "高中三年级"), ("2万", "两万")),
        *(("三四年", "3-4年"), ("22:30", "22点半"), ("1,200元", "一千二百元"), ("１２岁", "12岁")),
    ):
        values = [{(figure.value, figure.unit) for figure in figures(text, "zh")} for text in (one, other)]
        assert values[0] == values[1] != set(), one


def test_cities_and_people_are_those_of_the_lists():
    """But for cities that are words as well (成长治愈, 安康), and for people of two characters (上个月老公)."""
    assert names("从石家庄到纽约，再去印度，像莎士比亚", "zh") == sorted(["石家庄", "纽约", "印度", "莎士比亚"])
    assert names("成长治愈人，愿你安康，农村也好，南方也好，上个月老公说何老师", "zh") == []
    assert names("帝都，内蒙，内蒙古", "zh") == ["内蒙古", "北京"]
    assert names("说话干脆，一是一，二是二。两种心情都留着，不催人。", "zh") == []
    people = {name for names in lexicon("public_figures").values() for name in names}
    missed = {name for name in people if len(name) > 3 and not names(f"他说{name}。", "zh")}
    assert missed == set()


def test_english_names_stand_in_the_midst_of_a_sentence():
    found = names("So she moved to New York. Anna called then. [NAME] met Robert", "en")
    assert found == ["[NAME]", "new", "robert", "york"]
    assert names("On Monday I saw Mom, and she said that I Really am, well, really lost", "en") == []


def test_figures_of_a_text():
    for text, lang, written in (
        ("我跟3个朋友冷战了半年，欠5000块", "zh", {"3", "0.5", "5000"}),
        ("周三22:30，百分之三十的人，第20名", "zh", {"三", "22.5", "30", "20"}),
        ("I take 0.5 mg, my gpa is 0.9. I sleep at 10:30.", "en", {"0.5", "0.9", "10.5"}),
        ("我10:30、11:00都醒着", "zh", {"10.5", "11"}),
        ("I slept 3 hours twice this week, at 10:30, for half an hour, 4 nights", "en", {"3", "2", "10.5", "0.5", "4"}),
    ):
        assert {figure.written for figure in figures(text, lang)} == written


@given(st.integers(10**14, 10**15 - 2))
def test_figures_of_fifteen_digits_are_told_apart(value):
    assert shown(value) != shown(value + 1)


def test_a_hostile_text_takes_no_more_than_its_length():
    for text, lang in (
        *(("我没有抑郁症，妈妈说可能是" * 2_000, "zh"), ("好" * 40_000 + "三", "zh"), ("下午" * 10_000 + "三点", "zh")),
        ("and, Anna " * 9_000, "en"),
    ):
        started = process_time()
        changed(text, f"{text}了", lang)
        assert process_time() - started < 5, text[:8]
