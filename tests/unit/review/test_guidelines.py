"""What people are told and asked, in Chinese: it fits the contract, and says in a crisis what docs/crisis.md says."""

import re
from typing import get_args

import pytest
import review_tasks

from pipelines.errors import RequestError
from pipelines.review.contract import ANSWERS, Choice, Kind, Verdict
from pipelines.review.questions import answers_of, batch_of, crisis, headings_of, screen_of, sections_of
from pipelines.settings import ROOT
from schemas.labels import STAGES, STRATEGIES

KINDS: tuple[Kind, ...] = get_args(Kind)


def test_the_crisis_page_is_docs_crisis_word_for_word() -> None:
    written = (ROOT / "docs" / "crisis.md").read_text(encoding="utf-8")
    page = re.sub(r"\*\* ?|\n", "", written)
    help_ = crisis()
    lines = [help_.title, *help_.opening, *help_.elsewhere, *help_.if_somebody]
    assert [line for line in lines if line not in page] == []
    table = re.findall(r"^\| \*\*(\d+)\*\* \| ([^|]+) \|", written, re.MULTILINE)
    assert len(table) > 3
    assert list(help_.numbers) == table


def test_the_choices_are_those_of_the_contract() -> None:
    values = {
        (kind, question.field): [choice.value for choice in question.choices]
        for kind in KINDS
        for question in screen_of(review_tasks.batch(kind, 1)[0]).questions
    }
    steps = {("cer", f"step{n}"): [True, False] for n in (1, 2, 3)}
    places = {("rank", f"place{n}"): [1, 2, 3] for n in (1, 2, 3)}
    preferences = {(kind, "preference"): list(get_args(Choice)) for kind in ("cer", "compare")}
    assert values == {("coe", "verdict"): list(get_args(Verdict)), **steps, **preferences, **places}


@pytest.mark.parametrize("kind", KINDS)
def test_any_choice_of_each_question_makes_answers_of_the_contract(kind: Kind) -> None:
    screen = screen_of(review_tasks.batch(kind, 1)[0])
    written = {text.field: "改" if kind == "coe" else "" for text in screen.texts}
    for n in range(len(screen.questions[0].choices)):
        chosen = {
            question.field: question.choices[(n + at) % len(question.choices)].value
            for at, question in enumerate(screen.questions)
        }
        edits = written if chosen.get("verdict") == "mend" else {}
        ANSWERS[kind].model_validate(answers_of(kind, chosen, edits))


def test_the_guidelines_name_every_stage_strategy_level_and_choice() -> None:
    said = {kind: "\n".join(line for section in sections_of(kind, "sheet") for line in section.lines) for kind in KINDS}
    wanted = {"cer": [*STAGES.zh, *STRATEGIES.zh], "coe": ["L1", "L2", "L3", "L4"], "rank": [], "compare": []}
    for kind in KINDS:
        [task] = review_tasks.batch(kind, 1)
        choices = [choice.label for question in screen_of(task).questions for choice in question.choices]
        names = [*wanted[kind], *(choices if kind != "rank" else ["第1名"])]
        assert [name for name in names if name not in said[kind]] == [], kind
        assert "{" not in said[kind]


def test_calibration_comes_first_each_task_once() -> None:
    tasks = review_tasks.batch("cer", 4)
    batch = batch_of(tasks, tasks[2:3])
    assert [task.item_id for task in batch] == ["cer-2", "cer-0", "cer-1", "cer-3"]
    assert headings_of(batch, tasks[2:3]) == [
        "练习 1 / 1",
        "第 1 题 / 共 3 题",
        "第 2 题 / 共 3 题",
        "第 3 题 / 共 3 题",
    ]


def test_tasks_of_two_kinds_or_two_persons_do_not_go_out_together() -> None:
    one, other = review_tasks.batch("coe", 1)[0], review_tasks.batch("cer", 1)[0]
    for tasks in ([one, other], [one, one.model_copy(update={"annotator": "p08", "task_id": "x"})]):
        with pytest.raises(RequestError, match="more than one kind or person"):
            batch_of(tasks, [])
    with pytest.raises(RequestError, match="no task"):
        batch_of([], [])
