"""False readings that a reviewer listed: plain statements as beliefs, whose family it is, a good moment as the trouble.

Each beside a near miss, on sentences that we invented.
"""

import pytest

from pipelines.annotate.rules.advice import Need, fitting
from pipelines.annotate.rules.reading import read
from pipelines.annotate.rules.story import story
from pipelines.annotate.rules.topics import subject

DATE = "约一个不被打扰的时间"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("三个未接，都是我爸打的。", None),
        ("这些菜都是我妈做的。", None),
        ("每次约会都是我先到的。", None),
        ("他们吵成这样，都怪我。", "self_blame"),
        ("他走了，都是我的错。", "self_blame"),
        ("家里散了，都是我害的。", "self_blame"),
        ("我俩坐在地上，谁都没说话。", None),
        ("谁都没在乎过我。", "always"),
        ("是所有人都这样吗？", None),
        ("所有人都看不起我。", "always"),
        ("没有那个想法，从来没有。", None),
        ("他从来没有理解过我。", "always"),
        ("我总是搞砸。", "always"),
        ("车站里所有人都在等车。", None),
    ],
)
def test_a_belief_is_a_judgement_and_no_statement(text, kind):
    kinds = {one.kind for one in read(text).beliefs}
    assert kinds == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("text", "persons"),
    [
        ("他女儿跟我差不多大，没有骂我。", ()),
        ("我女儿跟他差不多大。", ("女儿",)),
        ("病人的儿子在走廊里等我。", ()),
        ("老公要加班，他儿子都不认得他了。", ("老公", "儿子")),
        ("她说她三十岁，离异带个女儿。", ()),
        ("我三十岁，离异带个女儿。", ("女儿",)),
        ("想请教一下老师，这是怎么回事？", ()),
        ("昨天老师找我谈话。", ("老师",)),
        ("我在镇上小学当老师，一个月三千。", ()),
        ("最近在看一部剧，有一集妈妈走了，儿子才回来。", ()),
        ("最近在看一部剧，有一集让我想起妈妈。", ("妈妈",)),
    ],
)
def test_persons_are_those_of_the_writers_own_life(text, persons):
    assert story(text).persons == persons


def test_a_patients_daughter_makes_no_trouble_of_the_family():
    others = "规培第二年，没救回来\n出去说的是我。他女儿跟我差不多大，他女儿没有骂我。"
    assert subject("规培第二年，没救回来", others).topic == "职业"
    own = "最近的一件事\n我女儿跟我说话就喊，我女儿不肯吃饭。"
    assert subject("最近的一件事", own).topic == "家庭"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("我爸住院那阵子，她陪我说话。", False),
        ("我住院那阵子，她陪我说话。", True),
        ("体检做过，医生说没问题。", False),
        ("医生说我要按时复诊。", True),
    ],
)
def test_a_treatment_is_the_writers_own(text, told):
    assert story(text).diagnosis is told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("什么都是三分钟热度\n买琴那天我是真快乐。可我都三十七了，是不是没有毅力？", ()),
        ("笑一天，回家不想说话\n我是真喜欢孩子。可第二天又要剪纸到半夜，要不要转行？", ()),
        ("什么都是三分钟热度\n我买了琴，很快乐，怎么坚持下去？", ("快乐",)),
        ("喜欢上了对面座位的人\n我很喜欢她，可一直没敢开口，怎么办？", ("喜欢",)),
    ],
)
def test_a_happy_moment_is_not_the_trouble(text, words):
    assert [word for word in story(text, titled=True).words if word in ("快乐", "喜欢")] == list(words)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("谁家姑娘结婚了，爸妈就要讲一遍，我很烦，怎么办？", False),
        ("爸妈一直催我结婚，我很烦，怎么办？", False),
        ("我老公什么都不跟我说，我很烦，怎么办？", True),
    ],
)
def test_a_date_with_a_partner_needs_a_partner(text, named):
    said = fitting(Need("zh", "advice", "annoyance", "家庭", text, text))
    assert any(DATE in one for one in said) is named


def test_a_turn_of_a_talk_puts_no_title_first():
    text = "昨晚没睡好\n" + "我和室友吵架了，她把我的东西都扔到走廊上。" * 5
    assert story(text, titled=True).focus.startswith("昨晚没睡好\n")
    assert "昨晚没睡好" not in story(text).focus
