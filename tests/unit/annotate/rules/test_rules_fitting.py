"""Advice that answers the question, the main topic that the trouble has, and what an answer does. Invented."""

import json

import pytest

from pipelines.annotate.rules.advice import circles
from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.coe import acts
from pipelines.annotate.rules.ecot import suggestions
from pipelines.annotate.rules.story import story
from schemas.reasoning import Coe


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("论文跑不出来\n导师两周没理我，我特别焦虑，也不敢跟爸妈讲。我该怎么和导师沟通啊？", "老师"),
        ("戒不掉游戏\n打的时候也不快乐。怎么才能戒？", "引子"),
        ("前任把我的信息挂到网上了\n听见提示音就发抖，特别害怕。现在能做什么？", "截图"),
        ("被骗了三万八\n我又后悔又羞愧。怎么跟家里人开口？", "三句话"),
        ("她不跟我说话\n我很心疼妹妹，她同学说她被孤立了。我怎么样才能让她开口？", "不追问"),
        ("升了职\n我又高兴又难受。要不要放弃陪他考啊？", "几种选择"),
        ("绩效给了C\n我越想越气。现在要不要去找大老板说清楚？", "几种选择"),
    ],
)
def test_what_is_suggested_answers_the_question(text, words):
    said = suggestions(story(text, titled=True))
    assert said
    assert all(words in one for one in said)


@pytest.mark.parametrize(
    "text",
    [
        "孩子查出自闭症\n我老公抽了半包烟，我很难过。有没有过来人告诉我去哪个机构看？",
        "辅导员说我装病\n我很害怕，也不敢说话。我还能找谁？",
        "怎么学会游泳\n我很难过。",
    ],
)
def test_who_asks_for_one_thing_is_told_of_no_other(text):
    assert not suggestions(story(text, titled=True))


def test_who_asks_what_to_do_with_a_feeling_is_told_what_helps_with_it():
    assert suggestions(story("最近\n我很难过，怎么办？", titled=True))
    assert suggestions(story("最近\n我很焦虑，怎么才能不这么焦虑？", titled=True))


def test_a_threat_is_no_fear_to_get_used_to():
    exposed = story("害怕\n他威胁我，每天有陌生人加我骂我，我不敢开手机，很害怕。怎么办？", titled=True)
    assert not any("排成几级" in one for one in suggestions(exposed))
    ill = story("怎么过\n体检查出结节，医生让复查，我不敢告诉妈妈，很害怕。怎么办？", titled=True)
    assert not any("排成几级" in one for one in suggestions(ill))
    shy = story("害怕\n我不敢跟陌生人说话，很害怕。怎么办？", titled=True)
    assert any("排成几级" in one for one in suggestions(shy))


@pytest.mark.parametrize(
    ("text", "named"), [("她同学跟我说的。", False), ("我同学跟我说的。", True), ("同学跟我说的。", True)]
)
def test_another_s_circle_is_not_the_writers(text, named):
    assert ("mate" in circles(text, "zh")) is named


@pytest.mark.parametrize(
    ("title", "body", "topic"),
    [
        ("论文数据跑不出来", "我是研二的学生，室友已经投了一篇，我不敢跟爸妈讲，怎么和导师沟通？", "成长"),
        ("猫走了", "领导问什么事，我说家里有事。我妈说再买一只。我很伤心，也很自责。", "情绪"),
        ("被骗了三万八", "本来想给女儿报班。刷单，不敢告诉老公。怎么跟家里人开口？", "人际"),
        ("高考倒计时47天", "模考掉了，我妈叹气，同学都在笑，老师找我谈话。", "成长"),
        ("闺蜜结婚没请我当伴娘", "她请了室友。我老公说我小题大做。", "人际"),
        ("爸爸得了老年痴呆，把我当成偷钱的贼", "弟弟在外地。我很累。", "家庭"),
        ("戒不掉游戏", "室友都去上课了，宿舍就剩我一个，爸妈不知道。", "行为"),
        ("楼上的邻居", "我找了物业三次，烦躁得想砸东西。", "人际"),
        ("升职名单没有我，我一点也不生气", "同事都替我抱不平。", "职业"),
        ("考编第四年", "家里亲戚见了面就问，我妈说嫁人吧，同学的孩子都上幼儿园了。", "成长"),
        ("大家帮忙看看", "我妹妹十六岁，突然不跟我说话，我爸只会骂。我作为姐姐很心疼。", "家庭"),
        # near misses: where the person is the trouble, or the word stands in the title
        ("室友从来不跟我说话", "我写论文的时候她总叹气。", "人际"),
        ("总找我帮忙，我不好意思说不", "同事天天这样。", "人际"),
        ("我结婚以后", "老公什么都不管，闺蜜劝我想开点。", "婚姻"),
        ("儿子偷钱去网吧", "我很生气。", "家庭"),
    ],
)
def test_the_topic_is_what_happened_and_not_whom_the_post_mentions(title, body, topic):
    assert json.loads(ANSWERS["topics"]({"title": title, "description": body}))["topic"] == topic


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("合唱团换人了\n老师说我声音太老，我很难过。", "none"),  # one word, of somebody mentioned
        ("送餐第三年\n客人骂我，我站在雨里道歉，很难过。", "none"),
        ("老师不喜欢我\n我很难过。", "成长"),  # in the title
        ("最近的事\n加班到半夜，领导还嫌慢，我想辞职，很难过。", "职业"),  # several words
    ],
)
def test_a_chain_names_a_topic_only_where_enough_is_said_of_it(text, about):
    assert story(text, titled=True).about == about
    step = Coe.parse(f"{ANSWERS['coe']({'question': text, 'answer': '嗯。'})}<answer>嗯。</answer>").L1
    assert ("困扰落在眼前的生活上" in step) is (about == "none")


def test_an_eating_disorder_is_a_persons_trouble():
    said = json.loads(
        ANSWERS["topics"]({"title": "吃了就抠", "description": "吃了就抠喉咙吐，站起来就晕，怎么才能停下来？"})
    )
    assert said["relevant"]
    assert said["subtopic"] == "暴食节食"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("你的愤怒太正当了。接下来做三件小事：给银行打电话，把离职协议看清楚。", {"affirms", "suggests"}),
        ("要先动的是那些事。把挂的四科列出来，然后接辅导员的电话。", {"suggests"}),
        ("我当年二模也掉了六十分。", {"discloses"}),
        ("男的也会难受。", set()),
    ],
)
def test_the_steps_of_an_answer_are_seen(answer, wanted):
    assert {act for act, _ in acts(answer)} == wanted


def test_the_last_step_claims_no_more_of_an_answer_than_was_seen():
    answer = "要先动的是那些事。把挂的四科列出来，再接辅导员的电话。"
    step = Coe.parse(f"{ANSWERS['coe']({'question': '我很难过。', 'answer': answer})}<answer>{answer}</answer>").L4
    assert "给出具体的做法" in step
    assert "只做一件事" not in step
    assert "不另作铺陈" not in step
