"""What a chain says of causes: what the writer wishes undone, what is told right before, or nothing. Invented."""

import pytest

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.reading import read
from pipelines.annotate.rules.story import story
from schemas.reasoning import Coe


def _l2(question):
    return Coe.parse(f"{ANSWERS['coe']({'question': question, 'answer': '嗯。'})}<answer>嗯。</answer>").L2


@pytest.mark.parametrize(
    ("text", "kind", "cause"),
    [
        ("我很伤心，也很自责，要是早点带它去查血就好了。", "regretted", "要是早点带它去查血就好了"),
        ("我后悔得睡不着，早知道就把口红锁起来。", "regretted", "早知道就把口红锁起来"),
        ("我一听见提示音就发抖。", "whenever", "一听见提示音"),
        ("搬到外地之后我就特别孤独。", "after", "搬到外地之后"),
        # near misses
        ("要是早点出门就好了，今天天气不错。", None, None),  # no feeling
        ("我很难过，他说要是早点分手就好了。", None, None),  # somebody else's wish
        ("我没有后悔选这条路，我只是累。", None, None),  # denied
        ("如果早点去就会好吗？我很难过。", None, None),  # asked
        ("搬到外地之后我就特别开心。", None, None),  # no trouble
        ("如果分手之后就很难过怎么办？", None, None),  # supposed
    ],
)
def test_a_regret_and_a_time_are_told_as_what_they_are(text, kind, cause):
    told = story(text)
    assert (told.cause_kind, told.cause) == (kind, cause)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("我最近很累\n室友已经投了一篇了，我真的特别焦虑。", "室友已经投了一篇了"),
        ("婚礼的事\n结果她请了大学室友。我转头哭了一晚上。", "结果她请了大学室友"),
        ("会上的事\n全部门的人都看着我。我越想越气。", "全部门的人都看着我"),
        # near misses: what is no event, or none of right before
        ("我最近很累\n我真的特别焦虑。", None),
        ("最近的事\n如果他真的走了，我会很难过。", None),
        ("最近的事\n我觉得他变了，我很难过。", None),
        ("最近的事\n我今年20了，只想躺着玩手机，我很难过。", None),
        ("最近的事\n他是不是不爱我了？我很难过。", None),
        ("最近的事\n爷爷上个月去世了，我很难过。", None),
        ("最近的事\n他上周搬走了。天很冷。饭也没吃。我很难过。", None),
        ("他昨天把门摔了\n我很难过。", None),
    ],
)
def test_an_event_is_what_is_told_right_before_the_feeling(text, event):
    assert story(text, titled=True).event == event


def test_an_event_is_never_said_to_be_the_cause():
    said = _l2("婚礼的事\n结果她请了大学室友。我转头哭了一晚上。")
    assert "「结果她请了大学室友」" in said
    assert any(one in said for one in ("没有明说", "由他自己来说", "不替求助者断定"))
    assert not read("婚礼的事\n结果她请了大学室友。我转头哭了一晚上。").causes


@pytest.mark.parametrize(
    "text",
    [
        "被骗了三万八\n晚上睡不着，觉得自己太没用了。",
        "我妈昨天翻了我的日记，我很委屈。",
        "公司裁员名单里有我\n特别愤怒。",
        "最近\n我很难过。",
    ],
)
def test_no_chain_says_that_no_cause_is_given(text):
    said = _l2(text)
    assert said
    assert not any(one in said for one in ("没有直接说缘由", "没有明说，先不下判断", "点明缘由", "看不出明显的偏差"))


def test_where_nothing_is_told_before_the_title_may_stand_as_a_title():
    assert "「公司裁员名单里有我」" in _l2("公司裁员名单里有我\n特别愤怒。")
    assert "「大家帮忙看看」" not in _l2("大家帮忙看看\n特别愤怒。")
    assert "想死" not in _l2("我想死了算了\n特别愤怒。")


def test_an_english_post_has_no_event():
    assert story("A bad day\nHe left me at the station. I feel sad.", titled=True).event is None
