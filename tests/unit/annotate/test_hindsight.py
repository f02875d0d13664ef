"""What only the answer says may not stand in the first three steps (E §3.2)."""

import tomllib
import tracemalloc
from pathlib import Path
from time import process_time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipelines.annotate.hindsight import KINDS, leaks

FILE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("hindsight.toml").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = FILE["case"]
LEAKING = [(case, leak) for case in CASES for leak in case["leaks"]]
CLEAN = [(case, steps) for case in CASES for steps in case["clean"]]


def test_at_most_two_in_a_hundred_slip_through():
    assert (len(LEAKING), len(CLEAN)) == (40, 60)
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


def test_what_is_known_and_what_is_not():
    rows = [*FILE["spans"]["rows"], ("我累", "一万块", "万" * 3000 + "块", "")]
    assert len(rows) == 41
    found = [(*row[:3], ", ".join(leaks(*row[:2], [row[2]]))) for row in rows]
    assert [(one, row[3]) for one, row in zip(found, rows, strict=True) if one[3] != row[3]] == []


TEXT = st.text("我你他三十二月日年次个《》“”「」。，的医生护士0123456789abC[姓名]半第万亿百千两～．①½", max_size=60)


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
