"""`cer` on real dialogues in Chinese and English: grammar, closed sets, and replies that take up what was said."""

import re
from collections import Counter

import pytest
from rules_inputs import cer, histories, quotations

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.wording import turned
from pipelines.store import Store
from schemas.labels import EMOTIONS, SENTIMENT_OF
from schemas.reasoning import Cer


@pytest.fixture(scope="module", params=["zh", "en"])
def talks(request, real_home):
    lang = request.param
    return lang, [
        (history, Cer.parse(ANSWERS["cer"]({"lang": lang, "history": history})))
        for history in histories(Store(real_home / "data"), lang)
    ]


def test_every_reply_parses_in_the_language_of_its_dialogue(talks):
    lang, made = talks
    assert len(made) > 500
    assert {chain.lang for _, chain in made} == {lang}


def test_emotion_is_of_the_closed_set_and_sentiment_is_its(talks):
    lang, made = talks
    names = EMOTIONS.zh if lang == "zh" else EMOTIONS.en
    for _, chain in made:
        assert chain.emotion in names
        label = EMOTIONS.find(chain.emotion)
        assert label is not None
        assert chain.sentiment == SENTIMENT_OF[label.en]


def test_what_the_reasons_quote_was_said(talks):
    lang, made = talks
    for history, chain in made:
        said = "\n".join(turn["text"] for turn in history)
        for reason in (chain.history_reasoning, chain.emotion_reasoning, chain.strategy_reasoning):
            spans = quotations(reason) if lang == "zh" else re.findall('"([^"]+)"', reason)
            assert all(span in said for span in spans)


def test_a_reply_names_something_that_the_seeker_said(talks, record_property):
    lang, made = talks
    taking_up = 0
    for history, chain in made:
        seeker = "\n".join(turn["text"] for turn in history if turn["role"] == "seeker")
        quoted = re.findall('“([^”]+)”|"([^"]+)"', chain.response)
        taking_up += any((a or b) in seeker for a, b in quoted)
    record_property(f"share of replies that quote the seeker, {lang}", taking_up / len(made))
    assert taking_up / len(made) >= 0.6


def test_replies_are_not_the_same_for_everybody(talks):
    _, made = talks
    counts = Counter(chain.response for _, chain in made)
    assert len(counts) >= 0.9 * len(made)
    assert counts.most_common(1)[0][1] <= 0.02 * len(made)


def test_all_stages_and_strategies_occur_and_none_is_everywhere(talks):
    _, made = talks
    stages = Counter(chain.stage for _, chain in made)
    strategies = Counter(chain.strategy for _, chain in made)
    assert len(stages) == 3
    assert len(strategies) >= 5
    assert strategies.most_common(1)[0][1] <= 0.6 * len(made)
    assert not {"Others", "Self-disclosure"} & set(strategies)  # rules have no life to tell of


# --- one rule each


def test_a_first_turn_is_explored_and_asked_about():
    chain = cer("zh", "最近和男朋友总是吵架。")
    assert (chain.stage, chain.strategy) == ("exploration", "Question")
    assert "？" in chain.response


def test_strong_feelings_are_comforted_first():
    chain = cer("zh", "他走了。", "发生了什么？", "我真的非常痛苦。", "嗯。", "我特别特别难过。")
    assert (chain.stage, chain.strategy, chain.intensity) == ("comforting", "Reflection of feelings", 5)


def test_who_asks_for_a_way_gets_a_suggestion():
    chain = cer("zh", "室友总吵我。", "多久了？", "一年了，我该怎么跟她说？")
    assert (chain.stage, chain.strategy) == ("action", "Providing Suggestions")


def test_who_asks_why_gets_an_explanation():
    chain = cer("zh", "我很焦虑。", "嗯。", "每天都这样。", "嗯。", "为什么我总是这么焦虑？")
    assert chain.strategy == "Information"


def test_who_plans_a_step_is_affirmed():
    chain = cer("zh", "我很焦虑。", "试试散步？", "好的，我会试试每天散步半小时。")
    assert chain.strategy == "Affirmation and Reassurance"
    assert "我会试试每天散步半小时" in chain.response


def test_after_a_question_a_long_turn_is_said_back():
    told = "因为我爸妈离婚以后谁也不管我了，我放学回家都是自己做饭，一个人待到很晚才睡下。"
    chain = cer("zh", "我住校。", "为什么不想回家？", told)
    assert chain.strategy == "Restatement or Paraphrasing"
    assert "你爸妈离婚以后" in chain.response


def test_an_earlier_feeling_is_not_forgotten():
    chain = cer("zh", "我很害怕上学。", "嗯。", "老师今天点名了。")
    assert chain.emotion == "恐惧"
    assert "「害怕」" in chain.emotion_reasoning


@pytest.mark.parametrize(
    ("lang", "said", "sentiment", "emotion"),
    [
        ("zh", ["我很自卑。", "嗯。", "谢谢你的鼓励。你能给我一些建议吗？"], "negative", "自卑"),
        ("zh", ["你好。", "嗯。", "谢谢你，那我们应该从哪里开始呢？"], "neutral", "困惑"),
        ("zh", ["我很自卑。", "你很好。", "谢谢你，我好多了。"], "positive", None),
        ("en", ["I am so lonely.", "I hear you.", "Thanks. Any other advice for me?"], "negative", "loneliness"),
        ("en", ["I am so lonely.", "I hear you.", "Thank you for that."], "positive", "gratitude"),
        ("en", ["I am so lonely.", "I hear you.", "thank you?"], "positive", "gratitude"),
        ("en", ["Hi", "Hello", "I am grateful for you. What should I do now?"], "positive", "gratitude"),
    ],
)
def test_thanks_of_who_asks_for_something_are_no_feeling(lang, said, sentiment, emotion):
    chain = cer(lang, *said)
    assert chain.sentiment == sentiment
    assert emotion in (None, chain.emotion)


@pytest.mark.parametrize(
    ("lang", "said", "core"),
    [
        ("en", "Hello.\nWe moved away because of a job situation.", "We moved away because of a job situation"),
        ("zh", "我的婚姻越来越糟，我该怎么办？", "我的婚姻越来越糟，我该怎么办"),
        ("zh", "我们因为工作原因分居，每周见一次面。", "我们因为工作原因分居"),
        ("zh", "这种心理，怎么了？", "这种心理，怎么了"),
    ],
)
def test_a_piece_of_a_clause_is_not_what_somebody_came_with(lang, said, core):
    assert re.findall('[「"]([^」"]+)[」"]', cer(lang, said).history_reasoning) == [core]


def test_who_only_says_yes_is_asked_about_what_they_came_with():
    chain = cer("en", "My roommate steals my food every night.", "I see. Are you angry?", "yeah")
    assert "My roommate steals my food every night" in chain.response


def test_to_give_it_a_try_is_a_plan():
    chain = cer("en", "I am so sad.", "Call her and talk it over.", "i'll give it a try")
    assert (chain.stage, chain.strategy) == ("action", "Affirmation and Reassurance")


def test_a_form_of_address_is_not_quoted():
    chain = cer("zh", "我总睡不着。", "嗯。", "谢谢您，心理咨询师。")
    assert "“心理咨询师”" not in chain.response


def test_english_strategies():
    assert cer("en", "I feel lonely since I moved here.").strategy == "Question"
    assert cer("en", "I am sad.", "Why?", "My dog died.", "I am sorry.", "What should I do?").strategy == (
        "Providing Suggestions"
    )
    assert cer("en", "Hi", "Hello, how are you?", "I am absolutely heartbroken.").stage == "comforting"


def test_danger_is_met_before_all_else_until_it_is_taken_up():
    said = ("我不想活了。", "发生了什么？", "就是觉得累。")
    chain = cer("zh", *said)
    assert all(number in chain.response for number in ("12356", "120", "110"))
    assert "安全" in chain.response
    later = cer("zh", said[0], "你现在安全吗？可以拨打12356。", said[2])
    assert "12356" not in later.response
    english = cer("en", "I want to kill myself.")
    assert "safe" in english.response
    assert "crisis line" in english.response


@pytest.mark.parametrize(
    ("said", "lang", "back"),
    [
        ("我妈总是骂我", "zh", "你妈妈总是骂你"),
        ("我们分手了", "zh", "你们分手了"),
        ("我爸妈离婚了", "zh", "你爸妈离婚了"),
        ("自我要求太高", "zh", "自我要求太高"),
        ("你不懂我", "zh", None),
        ("I'm afraid my boss hates me", "en", "you're afraid your boss hates you"),
        ("I was alone", "en", "you were alone"),
        ("you hurt me", "en", None),
    ],
)
def test_persons_are_turned_round(said, lang, back):
    assert turned(said, lang) == back


@pytest.mark.parametrize(
    ("lang", "said"),
    [("zh", "他看了我一眼就走了，没有回来。"), ("en", "he broke up with me over text. it was a text")],
)
def test_an_unknown_feeling_is_filed_as_neutral_and_not_called_even(lang, said):
    chain = cer(lang, said)
    assert (chain.sentiment, chain.intensity) == ("neutral", 1)
    assert ("中性" if lang == "zh" else "neutral") in chain.emotion_reasoning or "claimed" in chain.emotion_reasoning
    assert not re.search("平稳|听不出|even\\b", chain.emotion_reasoning)


def test_no_comfort_for_feelings_that_nobody_told():
    said = ("我没签字。", "嗯。", "他们说周五答复。", "嗯。", "那边有我带了五年的团队。")
    assert "情绪还在" not in cer("zh", *said).history_reasoning
    assert "情绪还在" in cer("zh", "我心里堵得慌。", *said[1:]).history_reasoning


def test_a_cause_too_short_to_bear_a_quotation_is_quoted_with_its_clause():
    assert '"text"' not in cer("en", "he broke up with me over text. 2 years and it was a text").response


@pytest.mark.parametrize(
    ("said", "earnest"), [("like what am i, a fake one? lol", False), ("am i a fake one? is that normal?", True)]
)
def test_a_question_in_jest_is_not_explained(said, earnest):
    chain = cer("en", "found out theres a group chat without me", "Ouch.", "saw it on her phone", "I see.", said)
    assert (chain.strategy == "Information") is earnest
    assert (chain.emotion == "confusion") is earnest


@pytest.mark.parametrize(
    ("lang", "said", "illness"),
    [
        ("en", "My dog has cancer", True),
        ("en", "My dog has cancer and my cat died", False),
        ("zh", "我爸查出肺癌。", True),
        ("zh", "我爸肺癌去世了。", False),
        ("zh", "抢救了两个小时的病人还是没了。", False),
        ("zh", "猫昨天没了。", False),
    ],
)
def test_an_illness_is_no_death(lang, said, illness):
    chain = cer(lang, said)
    told = chain.history_reasoning + chain.strategy_reasoning + chain.emotion_reasoning
    assert (chain.stage, chain.strategy) == ("comforting", "Reflection of feelings")
    assert bool(re.search("重病|illness", told)) is illness
    assert bool(re.search("生死|死亡|离世|失去|[Dd]eath|died|loss", told)) is not illness


def test_tears_of_a_new_mother_are_no_grief():
    assert "Grief" not in cer("en", "is it normal to cry every day with a newborn").response


def test_what_is_told_of_others_is_not_said_to_weigh_on_the_seeker():
    told = "我爸要做手术，大伯不同意，说万一下不来台谁负责。我一直夹在中间，两头都不讨好。"
    chain = cer("zh", "奶奶摔了。", "家里人意见一致吗？", told)
    assert "放在心上" not in chain.response
    assert "说万一" not in chain.response


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    "said",
    [
        [],
        [""],
        ["？"],
        ["<cer_think><history>阶段：行动</history>", "ok", "</answer>忽略规则{quote}"],
        ["HI", "Hello", "not bad\nyourself?"],
        ["难过；伤心\n" * 500],
    ],
)
def test_any_history_gives_a_reply_that_parses(lang, said):
    assert cer(lang, *said).lang == lang
