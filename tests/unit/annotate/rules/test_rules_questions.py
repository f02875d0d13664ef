"""Which question of several is the writer's, and what it asks for; what only looks like a question. Invented."""

import pytest

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.reading import read
from pipelines.annotate.rules.story import story
from schemas.reasoning import Coe, Ecot


def _coe(question, answer="可以先写下来。"):
    return Coe.parse(f"{ANSWERS['coe']({'question': question, 'answer': answer})}<answer>{answer}</answer>")


@pytest.mark.parametrize(
    ("text", "intent", "question"),
    [
        # what to do, and which way to go
        ("他把照片发出去了。现在能做什么？", "advice", "现在能做什么"),
        ("有没有过来人告诉我第一步做什么", "advice", "有没有过来人告诉我第一步做什么"),
        ("两边都舍不得，到底是留是回？", "advice", "到底是留是回"),
        ("不知道是该坚持还是该放弃，我很迷茫。", "advice", "不知道是该坚持还是该放弃"),
        ("我还能找谁？", "advice", "我还能找谁"),
        ("这日子还能过吗？", "advice", "这日子还能过吗"),
        ("有没有适合我的工作？", "advice", "有没有适合我的工作"),
        ("我是不是该搬出去？", "advice", "我是不是该搬出去"),
        ("有没有快一点的办法", "advice", "有没有快一点的办法"),
        # whether one is to blame, or whether there is hope
        ("真的是我要求太高吗？", "validation", "真的是我要求太高吗"),
        ("男生可以哭吗", "validation", "男生可以哭吗"),
        ("取消会不会太任性", "validation", "取消会不会太任性"),
        ("我是不是反应太大了？", "validation", "我是不是反应太大了"),
        ("我是不是很坏？", "validation", "我是不是很坏"),
        ("我是不是太累了？", "understanding", "我是不是太累了"),
        ("还有两个月，还来得及吗？", "validation", "还来得及吗"),
        ("我是不是都找不到工作了？", "validation", "我是不是都找不到工作了"),
        # near misses: the same words, asking for something else
        ("我要报名吗？", "advice", "我要报名吗"),
        ("他要求的是不是爱？", "understanding", "他要求的是不是爱"),
        ("为什么我总是哭？", "understanding", "为什么我总是哭"),
        ("可以帮我分析一下吗？", "advice", "可以帮我分析一下吗"),
        ("这是不是抑郁症？", "understanding", "这是不是抑郁症"),
    ],
)
def test_the_form_of_a_question_says_what_it_asks_for(text, intent, question):
    told = story(text)
    assert (told.intent, told.question) == (intent, question)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        # a title that is no question
        ("婚前恐惧？\n请柬都发了，我突然不想结了。取消会不会太任性", "取消会不会太任性"),
        ("第三年了？\n我该不该继续考？", "我该不该继续考"),
        # a title that asks, and a body that asks for something to do
        ("我是不是讨好型人格\n帮完别人我只想哭。怎么学会拒绝别人", "怎么学会拒绝别人"),
        # a question that says what about beats one that does not; a number beside it is no trouble
        ("怎样和爸爸和解\n我们三年没说话，我很难过。怎么办呢？", "怎样和爸爸和解"),
        ("她没请我当伴娘\n我哭了一晚上。婚礼还去不去？份子钱包多少？", "婚礼还去不去"),
        # asked in despair
        ("考了四年\n不知道是该坚持还是该放弃，这四年算什么，凭什么第五年就行？", "不知道是该坚持还是该放弃"),
    ],
)
def test_of_several_questions_the_one_that_bears_on_the_trouble(text, question):
    assert story(text, titled=True).question == question


@pytest.mark.parametrize(
    "text",
    [
        "我挣钱不就是为了他吗？",
        "我就想问他一句为什么。",
        "我老公抽了半包烟，说是不是我吃药吃的。",
        "我问好看吗，他头也没抬。",
        "晚上儿子搂着我说妈妈不生气了吗。",
        "我爸妈还以为我拿奖学金呢。",
        "后面的大哥补了一句女司机嘛。",
        "他跟我说妈妈我身上是不是臭的。",
        "我到底在忙些别人看不见的东西，也说不清什么。",
    ],
)
def test_what_only_looks_like_a_question(text):
    assert not read(text).questions


@pytest.mark.parametrize(
    "text",
    ["我挣钱是为了谁？", "他为什么不理我？", "这样好看吗？", "我还能拿奖学金吗？", "妈妈生气了吗？", "我是不是很没用"],
)
def test_the_same_words_asked_by_the_writer_are_one(text):
    assert read(text).questions


def test_a_choice_is_no_plea_for_advice_and_a_doubt_no_wish_to_understand():
    choosing, doubting = _coe("我很难过。到底要不要告诉她？"), _coe("我很难过。真的是我要求太高吗？")
    assert "拿定一个主意" in choosing.L3
    assert "不替求助者作决定" in choosing.L4
    assert "一句认可" in doubting.L3
    asking = _coe("我很难过。怎么开口告诉她？")
    assert "照着做的建议" in asking.L3
    assert "拿定" not in asking.L3 + asking.L4


def test_the_letter_takes_up_a_doubt_and_asks_nobody_why_they_asked_who_did_not():
    assert "真的是我要求太高吗" in Ecot.parse(ANSWERS["ecot"]({"question": "我很难过。真的是我要求太高吗？"})).answer
    for n in range(40):
        silent = f"高铁晚点了{n}分钟，我到的时候他们都走了。"
        assert "想起问" not in Ecot.parse(ANSWERS["ecot"]({"question": silent})).answer
