"""Schools, hospitals, employers and places that the strict finder takes for named, and words that look like them."""

import polars as pl

from pipelines.text.pii.redaction import find

NAMED = {
    "我考上了武汉理工大学，专业不喜欢。": ["school", "武汉理工大学"],
    "他浙大毕业，我配不上他。": ["school", "浙大"],
    "明年想考南开的研究生": ["school", "南开"],
    "我在杭州第二中学读高一。": ["school", "杭州第二中学"],
    "陪妈妈去长沙市第一人民医院看过。": ["hospital", "长沙市第一人民医院"],
    "在华西住院的那段时间最难熬。": ["hospital", "华西"],
    "我在肯德基打工攒学费。": ["employer", "肯德基"],
    "我入职了星河智联科技有限公司，天天加班。": ["employer", "星河智联科技有限公司"],
    "我表哥去年进了中铁7局。": ["employer", "中铁7局"],
    "老家在永嘉县，过年才回去。": ["address", "永嘉县"],
    "我住在阳光花园小区，夜里总被吵醒。": ["address", "阳光花园小区"],
    "一家人租在幸福路88号院。": ["address", "幸福路88号院"],
}
STAYS = [
    "我梦见体验大学里的日子，醒来仍是在校大学生，没多久就离校。",
    "真希望普及所有学校的心理课！",
    "不少中国大学生都睡得很晚。",
    "上海大学生返乡以后一直隔离。",
    "我已经长大了，想好好读书。",
    "我退出了创业公司，后来到银行实习。",
    "我去百度了一下，又在小红书发了帖。",
    "吃住都在娘家，和二姐家住得近。",
    "我要求不多，只有一点点的期待。",
    "市医院的心理科说我没事。",
    "他是重点中学出来的，我只是普通二本大学。",
    "小镇和乡镇的生活不一样，我背井离乡。",
    "表姐劝我去精神医院求助，我没答应。",
]


def test_what_is_named_is_found_whole_and_of_its_kind():
    found = {text: [] for text in NAMED}
    for row, start, end, kind, _ in find(pl.Series(list(NAMED))).iter_rows():
        text = list(NAMED)[row]
        found[text].append([kind, text.encode()[start:end].decode()])
    assert {text: spans for text, spans in found.items() if spans != [NAMED[text]]} == {}


def test_words_that_only_look_like_institutions_stay():
    assert [STAYS[row] for row in find(pl.Series(STAYS))["row"].unique()] == []


def test_an_employer_that_is_named_once_is_named_wherever_it_stands_again():
    found = find(pl.Series(["我签到了交通银行，大家都说交通银行不好。"]))
    assert found["kind"].to_list() == ["employer", "employer"]
