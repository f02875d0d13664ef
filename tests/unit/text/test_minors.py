"""Who says to be a minor: sentences written for this test, of writers who do and of those who only look like it."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.ingest.importing import read
from pipelines.text.minors import _near, _patterns, minors, under_18

UNDER_14 = """
    我是女生，13，初一
    我是个男孩，12，不想回家
    过完生日才14岁
    我今年13岁
    我今年才十二岁，没有人信我
    我今年11，爸妈要离婚
    本人13岁女
    我12岁了，还是怕黑
    我是一个十三岁的女孩，很内向
    我是13岁的初一学生
    12岁女生，被同桌孤立怎么办
    13岁，不想上学
    我上小学六年级，同学都不理我
    我是一名五年级的学生
    本人小学六年级
    我是小学生，可以在这里说话吗
    六年级学生，怕小升初
    我还没满14岁
    楼主今年10岁
    今年我们搬家了。我九岁，弟弟五岁
    I'm 13 and nobody at school talks to me. I'm 13.
    i am 12 years old
    I just turned 11!
    I’m in 5th grade and I hate it
    我今年 12 岁
    我 13 岁
    年龄：13岁
    性别女 年龄13岁
    十三岁了
    今年13岁了
    才13岁的我
    我还没满14
    未满十四
    正在上小学的我
    12岁小女孩求助
    我才小学六年级
    我才小学六年级就想死
    13yo girl
    I'm 13F
    i am thirteen
    我今年 12 岁，读六年级
    我今年 11，爸妈要离婚
    我今年12 岁
    本人年龄13岁，女
    性别：女，年龄：12岁，总是哭
    我的年龄是13岁
    在学校没有朋友，十三岁了，还是怕黑
    求助，今年13岁了，不敢上学
    今年十二岁，不想活
    才13岁的我，每天都很累
    我还没到14，医生不给看
    未满十四，能打热线吗
    正在上小学的我没有朋友
    在上六年级的我，压力好大
    五年级的我，每天被同学笑
    12岁小女孩求助，爸爸打我
    13岁小姑娘，不想说话
    我才小学六年级，就想退学
    我才13，为什么要这么累
    我十二三岁，说了也没人信
    13yo girl here, nobody talks to me
    I'm 13F and lonely
    im 13 and sad
    I'm twelve years old
    12f, my mom hates me
    hi, 13 year old boy here
    I (13f) hate school
    我今年13岁了啊
    都12岁了，还尿床
    我是个12岁的孩子，没有人管
    我今年刚满12岁，小学快毕业了
"""
UNDER_18 = """
    我今年虚岁17，爸妈总吵架
    我在上中学，和室友处不来
    我还在读国中，老师不管
    高中生一枚，压力好大
    高二一枚，不想上学
    刚中考完，和爸妈吵了一架
    我刚考完中考
    我是男的，16，在班里老被笑话
    我是女生，17，高二
    本人15，高一，没有朋友
    过完生日就18了，还是不敢说
    下个生日我就18了
    女生，16，不想上学
    男，17，高三
    我今年15岁
    我今年刚满十六岁
    我是一名十七岁的高中女生
    我是一个16岁的男孩，辍学两年了
    我17岁，总觉得自己惹人厌
    我快18岁了
    15岁女生，夜里总是哭
    女，16岁，重度抑郁
    我上初二，在班里像空气
    我今年初三
    我现在高一，住校
    本人高三，压力很大
    我才高二就想退学
    我是个高二女生
    我是一名初三的学生
    我是高中生，不敢和人说话
    高三学生，模考越考越差
    初中生，被好朋友背叛
    高二女生，太敏感怎么办
    我九年级了，没有朋友
    作为一个高三党，我已经撑不住了
    身为一名初中生，我也有烦恼
    我还未成年，能去看心理科吗
    我没成年，医生要求家长陪
    我还有一个月就高考了
    我马上中考，晚上睡不着
    还有三十天就要高考，心慌
    高考在即，静不下心
    我在读中专，十六岁
    我14岁，进入青春期了
    我是一名17岁高二女生
    我15岁自己住校，别人都有人接。我今年15岁
    I'm 15 and I can't sleep
    I am a 16 year old girl
    as a 17-year-old I feel lost
    I am in 8th grade
    I'm in high school and my parents fight
    I'm a sophomore in high school
    I am still a minor
    初三的我
    在读高中
    我在上高二
    未成年
    我还未满十八
    17岁女生一枚
    i am sixteen
    16F
    初三的我，每天都在哭
    在读高中，想休学
    我在上高二，成绩一直掉
    未成年，可以打热线吗
    我还未满十八，能自己去医院吗
    17岁女生一枚，求安慰
    I'm 16F
    16F here, my parents fight
    I am seventeen and I feel lost
    as a fifteen year old I feel lost
    失眠半年了，现在高二，不敢告诉爸妈
    今年16了，还没有朋友
    我十五六岁，没有朋友
    目前在读高一，住校
    我 16 岁，休学在家
    年龄：16岁，性别：男
    还未成年的学生，求助
    未成年人，没有钱看医生
    正在上高三的我压力好大
    我才16，不想这样
    本人还在上初二，同学都不理我
    马上升高三了，好怕
    今年中考，刚满15岁
    我是初三（2）班的课代表，压力好大
    我在市一中读高二，没有朋友
    高一刚开学就不想上学了
    我爸是大学毕业，我现在高二，他总骂我
    我喜欢一个比我大四岁的人，我才高二
"""
NEITHER = """
    我今年虚岁19，爸妈总吵架
    我在中学上班，和同事处不来
    我在上中学的课，学生不听
    孩子刚中考完，我们吵了一架
    我女儿高中生一枚，不想上学
    我读国中的时候被孤立过，现在工作了
    我是男的，27，单身
    我是女生，17年毕业的
    我是女的，16个月的宝宝不肯睡
    我是男生，15分钟前分手了
    我是女生，14号要面试
    儿子过完生日就18了
    她过完生日就18了
    过完生日就28了
    女，35，离异
    我是男生，17，我说的是工号，我今年28岁
    我女儿13岁，不肯上学
    我家孩子上初二，整天关着门
    我儿子今年15岁，叛逆
    我有个女儿，今年12岁，怎么教育
    15岁孩子厌学怎么办
    儿子六年级，被同学欺负
    高二女生总顶嘴，我女儿是不是不爱我了
    我13岁那年，爸爸走了
    我十五岁的时候被孤立过
    我16岁开始打工
    我高中毕业十年了
    我初中同学要结婚了
    我上高中以后变得内向
    小时候我很怕黑
    小学六年级那年的事，我到现在都记得
    我今年28岁，还像个孩子
    我今年25了，初三那年的事过不去
    我二十岁，大二
    我是大学生，不想回宿舍
    我是大一新生，今年18岁
    我今年18岁，高三
    我十八岁，高三，压力大
    我上班十五年了
    我结婚13年了
    我们恋爱16年
    她小我10岁，我不敢追
    我比他大12岁
    我弟弟17岁，天天打游戏
    我学生今年14岁，家长不管
    我是高中老师，带高三
    我是初二班主任，很累
    我在小学当老师
    我等了15分钟
    我每天睡6个小时
    我考研失败了
    我家住15楼
    她是我初中同学
    I'm 15 minutes late
    I am 13 weeks pregnant
    I'm 25 years old
    when I was 15 my father left
    my son is 14 years old
    I am a high school teacher
    I work in a primary school
    我女儿13岁
    我13岁那年
    我带的班是初三
    我13岁的儿子
    13岁开始抑郁，现在25
    高中毕业三年了
    我是高中老师
    小学老师
    孩子上小学
    我家孩子初三
    从小学到现在
    我18岁
    28岁
    陪读
    距离13岁过去十年
    我13岁的孩子，不肯上学
    那时候我才13岁，什么都不懂
    我带的班是初三，学生很累
    我13岁的儿子，天天玩手机
    13岁开始抑郁，现在25，还没好
    高中毕业三年了，没有工作
    我是高中老师，很累
    小学老师，被家长骂
    孩子上小学，作业写到半夜
    我家孩子初三，不肯说话
    从小学到现在，我都没有朋友
    我从小学到现在都没有朋友
    我18岁，不想上学
    28岁，没有对象
    陪读三年，跟老公没话说
    我在陪读，孩子高二
    距离13岁过去十年，我还记得
    我弟弟很皮，今年13岁了，怎么管
    我表妹很内向，现在高二，不肯上学
    他才15岁，现在高一
    儿子很懒，十三岁了，还不会穿衣服
    初三的我很自卑，现在大学了还是这样
    我工作五年了，梦里还是高三的我
    当时我十三岁，不敢反抗
    我今年30了，初三的我没有朋友
    未成年人保护法有用吗
    我被未成年骗了钱
    不满14周岁的孩子能坐前排吗
    我还没到14楼
    恋爱快18年了
    我才15分钟没回消息，他就生气
    我才10块钱
    今年15号开学
    我今年15个月没上班
    年龄13-60岁都可以来
    年龄：35岁，性别：女
    心理年龄13岁，身体30岁
    我家狗今年13岁了，走了
    教高二的我，每天都很累，我是班主任
    我初中同学今年结婚
    老公今年28岁，现在是高中老师
    现在的初中生都谈恋爱
    我现在教高二
    我现在是高中老师
    现在高中同学都结婚了
    结婚才12年
    已经十六年了，还是想他
    I'm 13 weeks pregnant
    I'm ten minutes late
    my 13yo girl won't talk to me
    my son is thirteen
    I'm 25F and tired
    I am twenty years old
    I was sixteen when he left
    I have 10m to go
    七岁女儿不听话怎么办
    我是一个大四的学生，出车祸是在我初二，一直忘不掉
    当时我是初二，谈了个女朋友，现在准大一
    我是一个初中生的妈妈，她不理我
    我表妹明年就要高考了，很紧张
    我在阳光中学教高二，很累
    i am 6 ft tall
    the 14yo girl next door
    I'm seven months pregnant
"""


def lines(block: str) -> list[str]:
    return [line.strip() for line in block.strip().splitlines()]


def limits(texts: list[str | None]) -> list[str]:
    frame = pl.DataFrame({"text": texts}, schema={"text": pl.String}).select(minors(pl.col("text")).struct.unnest())
    return ["under_14" if young else "under_18" if minor else "neither" for young, minor in frame.iter_rows()]


@pytest.mark.parametrize(("block", "expected"), [(UNDER_14, "under_14"), (UNDER_18, "under_18"), (NEITHER, "neither")])
def test_writers_are_taken_at_their_word(block: str, expected: str):
    told = {text: limit for text, limit in zip(lines(block), limits(lines(block)), strict=True) if limit != expected}
    assert told == {}


@pytest.mark.parametrize(("block", "expected"), [(UNDER_14, "under_14"), (UNDER_18, "under_18")])
def test_it_is_found_in_a_later_paragraph(block: str, expected: str):
    framed = [f"怎么办\n{text}\n谢谢大家" for text in lines(block)]
    assert [text for text, limit in zip(framed, limits(framed), strict=True) if limit != expected] == []


def test_who_is_under_14_is_under_18():
    frame = pl.DataFrame({"text": lines(UNDER_14)})
    assert frame.select(under_18(pl.col("text"))).to_series().all()
    assert frame.select(minors(pl.col("text")).struct.field("under_14")).to_series().all()


def test_no_text_says_nothing():
    assert limits([None, "", "😀", "岁"]) == ["neither"] * 4
    assert limits([]) == []


def test_an_age_of_now_outweighs_one_of_then():
    assert limits(["我今年30岁。我13岁，他打我，我躲在床底"]) == ["neither"]
    assert limits(["我今年15岁，等我18岁了就走"]) == ["under_18"]


@pytest.mark.parametrize(
    ("text", "year", "expected"),
    [
        ("我是2009年的，今天很难过", 2024, (False, True)),
        ("我是一名09年的女生", 2024, (False, True)),
        ("我是12年出生的", 2024, (True, True)),
        ("我是03年的，刚上班", 2024, (False, False)),
        ("我是95年的", 2024, (False, False)),
        ("我是09年的", None, (False, False)),
        ("我是09年的老员工", 2010, (False, False)),
    ],
)
def test_a_year_of_birth_counts_where_the_day_of_the_post_is_known(
    text: str, year: int | None, expected: tuple[bool, bool]
):
    frame = pl.DataFrame(
        {"text": [text], "posted_at": [year and datetime(year, 6, 1, tzinfo=UTC)]},
        schema={"text": pl.String, "posted_at": pl.Datetime("us", "UTC")},
    )
    text_, posted_at = pl.col("text"), pl.col("posted_at")
    assert frame.select(minors(text_, posted_at).struct.unnest()).row(0) == expected


def test_what_any_pattern_finds_is_near_enough_to_be_looked_at(shared: Path):
    turns = pl.read_ndjson(shared / "near_dup" / "smile_first_turns.jsonl")["text"].to_list()
    texts = pl.Series([*lines(UNDER_14), *lines(UNDER_18), *lines(NEITHER), *turns])
    counts = _near().counted(texts)
    patterns = _patterns()
    assert patterns
    for kind, name, pattern in patterns:
        assert not (texts.str.contains(pattern) & (counts[kind] == 0)).any(), name


@settings(max_examples=40)
@given(st.lists(st.text(max_size=30) | st.none(), max_size=5))
def test_every_text_gets_an_answer_and_the_same_one_beside_others(texts: list[str | None]):
    assert limits(texts) == [limits([text])[0] for text in texts]


@given(st.integers(1, 99), st.sampled_from(["我今年{}岁", "我今年{}岁，很难过", "I am {} years old"]))
def test_an_age_in_figures_decides_by_the_age(age: int, sentence: str):
    [limit] = limits([sentence.format(age)])
    assert limit == ("neither" if age >= 18 or age < 6 else "under_14" if age < 14 else "under_18")


def test_adults_of_real_posts_are_left_alone(shared: Path):
    """Of 100 real posts, three writers say to be minors."""
    posts = read("psyqa", shared / "zh_qa" / "PsyQA_example.json").kept
    text = pl.concat_str("title", "description", separator="\n")
    told = posts.select(minors(text).struct.unnest())
    assert told.sum().row(0) == (0, 3)
