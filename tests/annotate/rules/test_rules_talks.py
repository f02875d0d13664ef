"""`cer` on real dialogues in Chinese and English: grammar, closed sets, and replies that take up what was said."""

import re
from collections import Counter

import pytest

from pipelines.annotate.rules.answers import ANSWERS
from pipelines.annotate.rules.wording import turned
from pipelines.store import Store
from schemas.labels import EMOTIONS, SENTIMENT_OF
from schemas.reasoning import Cer
from tests.annotate.rules.rules_inputs import histories, quotations


def _cer(lang: str, *said: str) -> Cer:
    """A talk in which the seeker begins and both take turns."""
    history = [{"role": ("seeker", "supporter")[n % 2], "text": text} for n, text in enumerate(said)]
    return Cer.parse(ANSWERS["cer"]({"lang": lang, "history": history}))


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
    chain = _cer("zh", "最近和男朋友总是吵架。")
    assert (chain.stage, chain.strategy) == ("exploration", "Question")
    assert "？" in chain.response


def test_strong_feelings_are_comforted_first():
    chain = _cer("zh", "他走了。", "发生了什么？", "我真的非常痛苦。", "嗯。", "我特别特别难过。")
    assert (chain.stage, chain.strategy, chain.intensity) == ("comforting", "Reflection of feelings", 5)


def test_who_asks_for_a_way_gets_a_suggestion():
    chain = _cer("zh", "室友总吵我。", "多久了？", "一年了，我该怎么跟她说？")
    assert (chain.stage, chain.strategy) == ("action", "Providing Suggestions")


def test_who_asks_why_gets_an_explanation():
    chain = _cer("zh", "我很焦虑。", "嗯。", "每天都这样。", "嗯。", "为什么我总是这么焦虑？")
    assert chain.strategy == "Information"


def test_who_plans_a_step_is_affirmed():
    chain = _cer("zh", "我很焦虑。", "试试散步？", "好的，我会试试每天散步半小时。")
    assert chain.strategy == "Affirmation and Reassurance"
    assert "我会试试每天散步半小时" in chain.response


def test_after_a_question_a_long_turn_is_said_back():
    told = "因为我爸妈离婚以后谁也不管我了，我放学回家都是自己做饭，一个人待到很晚才睡下。"
    chain = _cer("zh", "我住校。", "为什么不想回家？", told)
    assert chain.strategy == "Restatement or Paraphrasing"
    assert "你爸妈离婚以后" in chain.response


def test_an_earlier_feeling_is_not_forgotten():
    chain = _cer("zh", "我很害怕上学。", "嗯。", "老师今天点名了。")
    assert chain.emotion == "恐惧"
    assert "「害怕」" in chain.emotion_reasoning


def test_english_strategies():
    assert _cer("en", "I feel lonely since I moved here.").strategy == "Question"
    assert _cer("en", "I am sad.", "Why?", "My dog died.", "I am sorry.", "What should I do?").strategy == (
        "Providing Suggestions"
    )
    assert _cer("en", "Hi", "Hello, how are you?", "I am absolutely heartbroken.").stage == "comforting"


def test_danger_is_met_before_all_else_until_it_is_taken_up():
    said = ("我不想活了。", "发生了什么？", "就是觉得累。")
    chain = _cer("zh", *said)
    assert all(number in chain.response for number in ("12356", "120", "110"))
    assert "安全" in chain.response
    later = _cer("zh", said[0], "你现在安全吗？可以拨打12356。", said[2])
    assert "12356" not in later.response
    english = _cer("en", "I want to kill myself.")
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
    assert _cer(lang, *said).lang == lang
