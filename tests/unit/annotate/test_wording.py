"""What prompts demand of the words of a reply: on sentences that we invented."""

import pytest
from annotate_rows import ECOT, STORY

from pipelines.annotate.wording import require_polite, require_quotations, require_speech
from pipelines.llm.questions import InvalidReply


def problem(check, *args, **sections) -> str | None:
    try:
        check(*args, **sections)
    except InvalidReply as error:
        return error.problem
    return None


def test_what_a_chain_quotes_is_what_the_post_says_and_one_quotation_stands_where_it_is_asked_for():
    for first, second, expected in (
        ("您说「睡不着觉」。", "想被理解。", None),
        ("您说「晚上……是不是我太敏感了」。", "「嗯」", "quote:not_in_text"),  # 嗯 is nowhere
        ("您说「我睡不着」。", "想被理解。", "quote:not_in_text"),
        ("您说“睡不着觉”。", "想被理解。", "quote:missing"),  # other marks are for other things
        ("您心里“堵”，「睡不着觉」。", "怕自己“太敏感”“不合群”。", None),
        ("睡不着觉。", "您说「睡不着觉」。", "quote:missing"),
        ("您「着」。", "想被理解。", "quote:missing"),  # a letter shows nothing
    ):
        assert problem(require_quotations, STORY, ("situation",), situation=first, motivation=second) == expected, first
    assert problem(require_quotations, STORY, ("L1", "L2"), L1="难受。", L2="怕「太敏感」。", L3="被理解。") is None


def test_a_repair_is_asked_for_by_the_words_that_are_wrong():
    with pytest.raises(InvalidReply, match="「我睡不着」 in L2 does not stand in question") as caught:
        require_quotations(STORY, ("L1",), L1="「睡不着觉」", L2="「我睡不着」")
    assert "睡不着" not in caught.value.problem


def test_you_is_polite_outside_of_quotations():
    for text, expected in (
        (ECOT.answer, None),
        ("你辛苦了。", "address:answer"),
        ("你好，您辛苦了。", "address:answer"),
        ("妳辛苦了。", "address:answer"),
        ("您写「你又不听」，可以说：“你先别急。”或『你说呢』。", None),
        ("你们之间的话不多，您心里清楚。", None),  # 您 has no plural
        ("你一言我一语的，你追我赶，您跟着累；您那条迷你裙，你我都见过。", None),
        ("谢谢您，你们和你都不容易。", "address:answer"),
    ):
        assert problem(require_polite, situation="您累了。", answer=text) == expected, text


def test_an_answer_is_talk_by_somebody():
    for text, expected in (
        ("那天发生了什么？", None),
        ("可以这样：\n1. 早点睡\n2. 少喝咖啡", "form:list"),
        ("两件事：1、早点睡；2、少喝咖啡。", "form:list"),
        ("- an earlier night\n- less coffee", "form:list"),
        ("首先，早点睡。其次，少喝咖啡。最后，出去走走。", "form:list"),
        ("第一，早点睡；第二，少喝咖啡。", "form:list"),
        ("先早点睡，再少喝点咖啡，第一天会难一点，第二天就好些。", None),
        ("It was 1.5 hours, and first of all you slept.", None),
        ("作为一个AI，我没法替你拿主意。", "artefact:ai"),
        ("As an AI, I am here for you.", "artefact:ai"),
        ("作为一名人工智能专业的学生，你压力不小。", None),
        ("希望我的回答对你有帮助。", None),  # people say so
        ("How can I help you today?", None),
    ):
        assert problem(require_speech, text) == expected, text
