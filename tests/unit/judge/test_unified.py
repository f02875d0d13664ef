"""C's judge: both ways of asking, with an answer that the test gives."""

import asyncio
from itertools import product

import pytest

from pipelines.judge.judging import MODES, OUTCOME, PROCESS, UNIFIED, judge
from pipelines.judge.turns import Case
from pipelines.llm.questions import Question, read

MODELS = dict.fromkeys((UNIFIED, PROCESS, OUTCOME), "a")
HISTORY = [
    {"role": "seeker", "text": "室友天天打呼噜，我整夜睡不着。"},
    {"role": "supporter", "text": "这样多久了？"},
    {"role": "seeker", "text": "一个月了，白天上课犯困，特别烦躁，该怎么办？"},
]
STEPS = ["阶段：探索\n他睡不好", None, "策略：提问\n先问清楚"]


class Asked:
    """Finds the first step right and every other wrong, and the response better that is said to be; keeps questions."""

    def __init__(self, better: str) -> None:
        self.better = better
        self.questions: list[Question] = []

    async def __call__(self, question: Question):
        self.questions.append(question)
        step = question.inputs.get("step")
        words = {None: f"回应{self.better}更好。", 1: "第一步正确。\n说得对", 3: "第三步不正确。"}[step]
        return read(question, words)


def judged(mode: str, ask, case: Case):
    return asyncio.run(judge("r", "zh", case, MODELS, ask, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("first", [True, False])
def test_both_ways_of_asking_find_the_same(mode, first):
    ask = Asked("B" if first else "A")
    found = judged(mode, ask, Case(HISTORY, STEPS, "要不要先试试耳塞？", "加油！", first))
    assert (found.steps, found.preference) == ((True, False, False), "second")
    assert found.words.splitlines() == ["第一步正确。", "说得对", "第三步不正确。", f"回应{ask.better}更好。"]
    assert [question.inputs.get("step") for question in ask.questions] == [1, 3, None]  # the missing step is not asked
    tasks = {question.task for question in ask.questions}
    assert tasks == ({UNIFIED} if mode == "unified" else {PROCESS, OUTCOME})


def test_in_one_conversation_each_verdict_comes_after_those_before_it_without_their_grounds():
    ask = Asked("A")
    judged("unified", ask, Case(HISTORY, STEPS, "要不要先试试耳塞？", "加油！", True))
    said = [[exchange.reply for exchange in question.before] for question in ask.questions]
    right, missing, wrong = "第一步正确。", "第二步不正确。", "第三步不正确。"
    assert said == [[], [right, missing], [right, missing, wrong]]


def test_apart_no_question_shows_what_another_was_answered():
    case = Case(HISTORY, ["一", "二", "三"], "要不要先试试耳塞？", "加油！", True)
    asked = []
    for answers in product(["正确", "不正确"], ["正确", "不正确"], ["正确", "不正确"], ["A更好", "B更好", "都好"]):
        questions: list[Question] = []

        async def ask(question: Question, answers=answers, questions=questions):
            questions.append(question)
            step = question.inputs.get("step")
            both = "两个回应都好。" if answers[3] == "都好" else f"回应{answers[3]}。"
            return read(question, f"第{'一二三'[step - 1]}步{answers[step - 1]}。" if step else both)

        judged("apart", ask, case)
        asked.append([(question.task, question.inputs, question.before) for question in questions])
    assert [task for task, *_ in asked[0]] == [PROCESS, PROCESS, PROCESS, OUTCOME]
    assert all(questions == asked[0] for questions in asked)
    assert not any(before for *_, before in asked[0])


def test_without_a_response_the_reference_has_won_and_nobody_is_asked():
    for mode in MODES:
        ask = Asked("B")
        found = judged(mode, ask, Case(HISTORY, STEPS, None, "加油！", True))
        assert (found.preference, len(ask.questions)) == ("first", 2)
