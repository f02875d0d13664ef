"""What only the answer says may not stand in the first three steps (E §3.2)."""

import tomllib
import tracemalloc
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.annotate.hindsight import KINDS, leaks

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("hindsight.toml").read_text(encoding="utf-8"))[
    "case"
]
LEAKING = [(case, leak) for case in CASES for leak in case["leaks"]]
CLEAN = [(case, steps) for case in CASES for steps in case["clean"]]


def test_the_sample_is_a_hundred_chains():
    assert (len(LEAKING), len(CLEAN)) == (40, 60)


def test_at_most_two_in_a_hundred_slip_through():
    slipped = [
        (case["name"], leak["kind"])
        for case, leak in LEAKING
        if not leaks(case["question"], case["answer"], leak["steps"])
    ]
    assert len(slipped) <= 0.02 * (len(LEAKING) + len(CLEAN)), slipped
    # And of those no other than facts in other words, which no check of spans can see.
    assert {kind for _, kind in slipped} <= {"paraphrase"}


def test_few_honest_chains_are_dropped():
    alarmed = [
        (case["name"], found) for case, steps in CLEAN if (found := leaks(case["question"], case["answer"], steps))
    ]
    assert len(alarmed) <= 0.05 * len(CLEAN), alarmed


def test_the_question_gives_nothing_away_and_the_answer_does():
    assert CASES
    for case in CASES:
        question, answer = case["question"], case["answer"]
        assert leaks(question, answer, [question]) == (), case["name"]
        assert leaks(question, answer, [answer]) != (), case["name"]
        assert leaks(f"{question}{answer}", answer, [answer]) == (), case["name"]


@pytest.mark.parametrize(
    ("question", "answer", "step", "kinds"),
    [
        ("我三年没睡好", "你试试睡前20分钟不看手机", "他睡前二十分钟还看手机", "number"),
        ("我三年没睡好", "三年很长", "他3年没有睡好", ""),
        ("我今年三十了", "三十岁正是时候", "他到了30岁，心里着急", ""),
        ("我工作第4年了", "四年不短", "工作四年，他累了", ""),
        ("我等了他两个星期", "两周太久了", "他等了2周", ""),
        ("我等了他两个月", "两周太久了", "他等了2周", "number"),
        ("他借了我一笔钱", "让他每月还五百", "他没想过让对方还五百", "number"),
        ("我没钱", "他借走三千块也不还", "他没有提那3千块", "number"),
        ("我欠了3千块", "三千块不多", "他欠了三千块", ""),
        ("我很累", "一个人太累了", "他一个人扛着", ""),
        ("我不想回家", "春节可以只住一晚", "他怕春节", "date"),
        ("我不想回家", "去年3月15日我也没回", "从3月15日起他就没回过家", "number, date"),
        ("我睡不着", "看看《活着》", "他该读《活着》", "title"),
        ("我睡不着", "看看《身体从未忘记》", "他的身体从未忘记", "title"),
        ("我读了《活着》", "《活着》我也读过", "他读了《活着》", ""),
        ("我睡不着", "你要学会“课题分开”", "他不会“课题分开”", "quote"),
        ("他说“想太多”", "“想太多”很伤人", "一句「想太多」让他难受", ""),
        ("我睡不着", "因为你累", "他没有说「因为」什么", ""),
        ("我睡不着", "你的“旁白”太坏", "他给沉默配上「旁白」", "quote"),
        ("我睡不着", "可以做CBT", "他没有做过 CBT", "latin, method"),
        ("我在做HR", "HR不好做", "他做HR，很累", ""),
        ("我睡不着", "去找[姓名]聊聊", "他该找[姓名]聊聊", "placeholder"),
        ("我和[姓名]吵架了", "[姓名]也难受", "他和[姓名]吵架了", ""),
        ("我和[姓名]吵架了", "[姓名2]也难受", "他和[姓名2]也难受", "placeholder"),
        ("我睡不着", "阿德勒讲过", "按阿德勒的看法", "person, word"),
        ("我睡不着", "我在苏州也失眠过", "他在苏州失眠", "place"),
        ("我睡不着", "我是护士", "他没有护士的知识", "profession"),
        ("大夫说没事", "听医生的", "医生说没事，他还是怕", ""),
        ("我抑郁了", "抑郁症能好", "他担心自己得了抑郁症", ""),
        ("我难过", "可能是抑郁症", "他可能有抑郁症", "diagnosis"),
        ("我难过", "试试正念", "他没有做正念", "method, word"),
        ("我爸妈离异", "离婚不是你的错", "父母离婚让他难过", ""),
        ("我难过", "你爸酗酒不是你的错", "父亲酗酒让他难过", "event"),
        ("我难过", "可以去仲裁", "他不知道可以仲裁", "law"),
        ("我难过", "养一盆薄荷", "他没有薄荷可养", "word"),
        ("我难过", "戈特曼观察过", "戈特曼那样的观察他没有", "word"),
        ("我难过", "安全感不是别人给的", "他缺少安全感", ""),
        ("我很难过", "你百般忍让，千万别怪自己", "他百般委屈，千万个不愿意", ""),
        ("我累", "一万块", "万" * 3000 + "块", ""),
        ("我难过", "有意见由他去说话才好接住", "有意见由他去说，话才好接", "phrase"),
        ("", "", "", ""),
    ],
)
def test_what_is_known_and_what_is_not(question: str, answer: str, step: str, kinds: str):
    assert ", ".join(leaks(question, answer, [step])) == kinds


TEXT = st.text(
    alphabet="我你他三十二月日年次个《》“”「」。，的医生护士0123456789abC[姓名]半第万亿百千两～．①½", max_size=60
)


@given(TEXT, TEXT, st.lists(TEXT, min_size=3, max_size=3))
def test_any_text_is_read_and_the_kinds_are_known_and_in_order(question: str, answer: str, steps: list[str]):
    found = leaks(question, answer, steps)
    assert list(found) == [kind for kind in KINDS if kind in found]
    assert leaks(question, "", steps) == leaks(question, answer, [question]) == ()


def test_a_long_text_that_is_shared_whole_takes_no_more_than_its_length():
    shared = "他说要去看一看那里的人和事，写日记和散步会好一些" * 600
    started = process_time()
    tracemalloc.start()
    assert leaks("我难过" * 10, shared, [shared[:10_000]]) != ()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50e6
    assert process_time() - started < 60
