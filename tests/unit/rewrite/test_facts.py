"""Which facts a rewrite changed: on lines that we invented (facts.toml)."""

import tomllib
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rewrite import facts as home
from pipelines.rewrite.facts import KINDS, changed, facts, spans
from pipelines.rewrite.figure import shown
from pipelines.rewrite.figures import figures
from pipelines.text.words import spelled

LEXICONS = Path(home.__file__).parent / "lexicons"
LEXICON_ZH = tomllib.loads((LEXICONS / "facts.zh.toml").read_text(encoding="utf-8"))

CASES = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))["case"]
SAME = [(case, after) for case in CASES for after in case.get("same", ())]
CHANGED = [(case, kind, after) for case in CASES for kind in KINDS for after in case.get(kind, ())]


def _changed(case, after):
    return changed([(case["before"], after, case.get("who", "seeker") == "seeker")], case.get("lang", "zh"))


def test_there_are_lines_enough_of_every_kind():
    assert len(SAME) + len(CHANGED) >= 80
    assert {kind for _, kind, _ in CHANGED} == set(KINDS)
    assert sum(case.get("lang") == "en" for case, _ in SAME) >= 10
    assert sum(case.get("lang") == "en" for case, _, _ in CHANGED) >= 10


@pytest.mark.parametrize(("case", "after"), SAME, ids=[after[:24] for _, after in SAME])
def test_a_fact_in_other_words_is_the_same(case, after):
    assert _changed(case, after) == {}


@pytest.mark.parametrize(("case", "kind", "after"), CHANGED, ids=[after[:24] for _, _, after in CHANGED])
def test_a_fact_that_was_changed_lost_or_added_is_caught(case, kind, after):
    assert kind in _changed(case, after)


@pytest.mark.parametrize(("case", "kind", "after"), CHANGED, ids=[after[:24] for _, _, after in CHANGED])
def test_both_ways(case, kind, after):
    """What is lost one way is added the other; but a looser word may take the place of a name, and not the reverse."""
    if case.get("loose"):
        assert changed([(after, case["before"], True)], case.get("lang", "zh")) == {}
        return
    turned = {"before": after, "who": case.get("who", "seeker"), "lang": case.get("lang", "zh")}
    assert set(_changed(turned, case["before"])) & {kind, "diagnosis", "negated_diagnosis"}


@pytest.mark.parametrize("case", CASES, ids=[case["before"][:24] for case in CASES])
def test_a_mention_may_be_dropped_or_moved_to_another_line(case):
    lang, said = case.get("lang", "zh"), case["before"]
    assert changed([(said, said, True), (said, "嗯", True)], lang) == {}
    assert changed([(said, "嗯", True), ("嗯", said, True)], lang) == {}


def test_she_for_a_mother_who_is_named_elsewhere():
    before = ["我妈妈不让我出门", "妈妈说外面危险"]
    after = ["我妈不许我出门", "她说外头不安全"]
    assert changed([(one, other, True) for one, other in zip(before, after, strict=True)], "zh") == {}


def test_one_that_took_the_place_of_another_is_one_change():
    assert changed([("三年前确诊抑郁症", "五年前确诊焦虑症", True)], "zh") == {"number": 1, "diagnosis": 1}


def test_other_people_are_facts_where_the_seeker_tells_of_them():
    lines = ("我的同事不理我", "大家不理我")
    assert changed([(*lines, True)], "zh") == {"person": 1}
    assert changed([(*lines, False)], "zh") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("一起去", "一下", "一些", "一直", "第一，先睡", "十分难过", "千万别急", "万一呢", "百分百", "半天", "一个人"),
        *("三心二意", "有一天", "一天比一天", "几十次", "好几百", "这两天", "过两年", "两口子", "我们俩", "两难"),
        *("七上八下", "一模一样", "三分钟热度", "大一点", "[姓名2]"),
    ],
)  # fmt: skip
def test_what_counts_nothing_is_no_figure(text):
    assert figures(text, "zh") == ()


@pytest.mark.parametrize(
    "text", ["one day", "no one", "one of us", "a couple of days", "24/7", "covid-19", "you two", "3rd", "one year"]
)
def test_what_counts_nothing_in_english_is_no_figure(text):
    assert figures(text, "en") == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("三年", "36个月"), ("半年", "6个月"), ("两周", "14天"), ("两个星期", "2周"), ("九十分钟", "一个半小时")),
        *(("两年半", "30个月"), ("五千块", "5000元"), ("120斤", "60公斤"), ("百分之三十", "30%"), ("星期天", "周日")),
        *(("高三", "高中三年级"), ("2万", "两万")),
        *(("三四年", "3-4年"), ("22:30", "22点半"), ("1,200元", "一千二百元"), ("１２岁", "12岁")),
    ],
)  # fmt: skip
def test_the_same_figure_is_the_same_however_it_is_written(one, other):
    found = [{(figure.value, figure.unit) for figure in figures(text, "zh")} for text in (one, other)]
    assert found[0] == found[1] != set()


def test_what_comes_and_goes_is_looked_at_line_by_line():
    """A line may have several lines of text; 晚上 of another line excuses nothing."""
    before = ["早上\n我哭了", "晚上睡不着", "我天天想他"]
    assert (
        changed([(one, other, True) for one, other in zip(before, ["清晨\n我落泪了", *before[1:]], strict=True)], "zh")
        == {}
    )
    spoiled = ["晚上\n我落泪了", "早上睡不着", "我偶尔想他"]
    pairs = [(one, other, True) for one, other in zip(before, spoiled, strict=True)]
    assert changed(pairs, "zh") == {"time": 2, "frequency": 1}


def test_cities_are_those_of_the_list_of_places():
    """But for those that are words as well: 成长治愈, 安康."""
    listed = facts(["从石家庄到纽约，再去印度"], "zh").named
    assert listed == {("place", "石家庄"), ("place", "纽约"), ("place", "印度")}
    assert facts(["成长治愈人，愿你安康，农村也好，南方也好"], "zh").named == frozenset()
    assert facts(["I moved from New York to St Louis"], "en").named == {("place", "new_york"), ("place", "st louis")}


def test_only_what_may_not_be_put_in_other_words_has_a_span():
    said = "我天天早上跟妈妈说我在北京"
    assert [said[start:end] for start, end in spans(said, "zh")] == ["妈妈", "北京"]


@pytest.mark.parametrize("whose", "我你他她")
def test_kin_are_the_same_whoever_s_they_are(whose):
    """Law over the whole list: 我姐夫 is a 姐夫, and no 我姐."""
    words = {word for pattern in LEXICON_ZH["kin"].values() for word in spelled(pattern)}
    assert len(words) > 200
    assert {word for word in words if facts([whose + word], "zh").named != facts([word], "zh").named} == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [("我哥特别疼我", "brother_elder"), ("我妈的手", "mother"), ("我妈宝贝我", "mother"), ("他妈呀，真好", "mother")],
)
def test_what_stands_behind_kin_in_short_is_no_part_of_them(text, name):
    assert ("kin", name) in facts([text], "zh").named


@pytest.mark.parametrize(
    ("text", "lang", "written"),
    [
        ("我跟3个朋友冷战了半年，欠5000块", "zh", ["3", "0.5", "5000"]),
        ("周三22:30，百分之三十的人，第20名", "zh", ["三", "22.5", "30", "20"]),
        ("I take 0.5 mg, my gpa is 0.9. I sleep at 10:30.", "en", ["0.5", "0.9", "10.5"]),
        ("我10:30、11:00都醒着", "zh", ["10.5", "11"]),
        ("I slept 3 hours twice this week, at 10:30, for half an hour, 4 nights", "en", ["3", "2", "10.5", "0.5", "4"]),
    ],
)
def test_figures_stand_in_the_order_of_the_text(text, lang, written):
    assert [figure.written for figure in figures(text, lang)] == written


@given(st.integers(10**14, 10**15 - 2))
def test_figures_of_fifteen_digits_are_told_apart(value):
    assert shown(value) != shown(value + 1)


@pytest.mark.parametrize(
    ("before", "after", "lang"),
    [
        *(("他走了。", "他去世了。", "zh"), ("妈妈很忙。", "妈妈住院了。", "zh"), ("他抱了我。", "他性侵了我。", "zh")),
        *(("He hugged me.", "He raped me.", "en"), ("I am tired.", "I am tired and pregnant.", "en")),
    ],
)
def test_an_event_that_was_never_told_may_not_be_brought(before, after, lang):
    assert changed([(before, after, True)], lang) == {"event": 1}
    assert changed([(after, before, True)], lang) == {}  # careful wording


@pytest.mark.parametrize(
    ("before", "after", "lang"),
    [
        ("爷爷没了。", "爷爷去世了。", "zh"),
        ("他动手打我。", "他家暴我。", "zh"),
        ("他们离异了。", "他们离婚了。", "zh"),
        ("I lost my dad.", "My dad passed away.", "en"),
        ("We split last year.", "We broke up last year.", "en"),
    ],
)
def test_an_event_may_be_given_its_name(before, after, lang):
    assert changed([(before, after, True)], lang) == {}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_for_every_event_is_listed_what_else_tells_of_it(lang):
    listed = tomllib.loads((LEXICONS / f"facts.{lang}.toml").read_text(encoding="utf-8"))
    events = {name for kind in ("union", "birth", "injury", "loss", "wrong") for name in listed[kind]}
    assert set(listed["told_by"]) == events


@pytest.mark.parametrize("text", ["我没有抑郁症，妈妈说可能是" * 2_000, "好" * 40_000 + "三", "下午" * 10_000 + "三点"])
def test_a_hostile_text_takes_no_more_than_its_length(text):
    started = process_time()
    facts([text], "zh")
    assert process_time() - started < 5


def test_the_longest_word_is_the_fact():
    """男朋友 is no 朋友, 儿媳妇 no 媳妇, 婆婆妈妈 is a way to be."""
    assert facts(["男朋友"], "zh").named == {("kin", "boyfriend")}
    assert facts(["儿媳妇"], "zh").named == {("kin", "daughter_in_law")}
    assert facts(["师姐和学长都说妈呀"], "zh").named == frozenset()
    assert facts(["my ex-boyfriend"], "en").named == {("kin", "boyfriend_former")}
