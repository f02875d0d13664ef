"""What holds for every task, whatever its rows and whatever comes back."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import dataframely as dy
import polars as pl
import pytest
from accounted import accounted
from annotate_rows import RISK, answer, dialogue, dialogues, good, post, posts, rounds, sampled_round, splits
from scripted import Scripted

from pipelines.annotate import cer, coe, coherence, ecot, emotions, topics
from pipelines.llm.questions import REASONS, Question
from pipelines.llm.tasks import Plan, Result
from pipelines.settings import Settings
from schemas.dialogues import UniqueDialogues
from schemas.ids import unit_interval
from schemas.posts import UniquePosts
from schemas.table import Table
from schemas.tables import TABLES
from schemas.training import SampledTurns

ONE, MODELS = ("a",), ("a", "b")
GROUPS = splits()


class Task(NamedTuple):
    plan: Callable[[pl.DataFrame], Plan]
    table: type[Table]
    framed: Callable[..., pl.DataFrame]
    row: Callable[..., dict[str, Any]]
    units: tuple[str, ...]
    calls: int  # a new row that is asked about
    trains: bool


def a_dialogue(number: int, **more: Any) -> dict[str, Any]:
    return dialogue(number, "seeker: 我睡不着", "supporter: 多久了？", **more)


def a_post(number: int, **more: Any) -> dict[str, Any]:
    return post(number, **({"answers": [answer(f"s:{number}/0")], "topic": None} | more))


def a_round(number: int, **more: Any) -> dict[str, Any]:
    return sampled_round(number, 1, **more)


_POSTS = (UniquePosts, posts, a_post)
TASKS: dict[str, Task] = {
    "coherent_dialogues": Task(
        lambda rows: coherence.plan(rows, ONE), UniqueDialogues, dialogues, a_dialogue, ("dialogue",), 1, False
    ),
    "topics": Task(lambda rows: topics.plan(rows, ONE), *_POSTS, ("post",), 1, False),
    "emotions": Task(lambda rows: emotions.plan(rows, ONE), *_POSTS, ("post", "answer"), 2, False),
    "ecot_chains": Task(lambda rows: ecot.plan(rows, GROUPS, None, ONE), *_POSTS, ("post",), 1, True),
    "coe_chains": Task(lambda rows: coe.plan(rows, GROUPS, None, ONE, human_only=False), *_POSTS, ("post",), 1, True),
    "cer_candidates": Task(
        lambda rows: cer.plan(rows, GROUPS, MODELS, Settings()), SampledTurns, rounds, a_round, ("round",), 2, False
    ),
}
each_task = pytest.mark.parametrize("name", TASKS)


def unreliable(question: Question[Any]) -> Any:
    """Good replies, nonsense, and every reason why there is none."""
    place = int(unit_interval(1, question.row_id, question.model) * 8)
    return (good(question), good(question), "OK", "{}", *((reason, "figure 3") for reason in REASONS))[place]


def made(name: str, frame: pl.DataFrame, answers: Callable[[Question[Any]], Any] = good) -> Result:
    plan = TASKS[name].plan(frame)
    made = plan.finish(Scripted(answers).ask(plan.questions))
    kept, dropped = accounted(name, TASKS[name].units, [frame], made)
    assert set(plan.dropped.rows()) <= set(dropped.rows())
    return kept, dropped


def with_answers(frame: pl.DataFrame) -> pl.DataFrame:
    """Every second answer may teach. Their ids follow the post's, as in the real table; a sample draws some twice."""
    if "answers" not in frame.columns:
        return frame
    fit = ({}, {"risk": [], "under_18": False})
    numbered = [
        [one | {"answer_id": f"{post_id}/{n}"} | fit[n % 2] for n, one in enumerate(answers)]
        for post_id, answers in frame.select("post_id", "answers").iter_rows()
    ]
    return frame.with_columns(pl.Series("answers", numbered, dtype=frame.schema["answers"]))


@each_task
def test_whatever_the_schemas_allow_and_whatever_comes_back_is_accounted_for(name: str):
    given = {
        "group_id": [("g1", "g1", "g2", "g3")[n % 4] for n in range(80)],
        "under_18": [n % 5 == 4 for n in range(80)],
        "risk": [RISK if n % 7 == 6 else [] for n in range(80)],
    }
    given |= {"needs_media": [n % 9 == 8 for n in range(80)]} if name == "cer_candidates" else {}
    frame = with_answers(TASKS[name].table.sample(80, generator=dy.random.Generator(1), overrides=given))
    before = frame.clone()
    kept, dropped = made(name, frame, unreliable)
    assert not kept.is_empty()
    assert {"invalid_reply", "refused"} <= set(dropped["reason"])
    assert frame.equals(before)


def test_every_candidate_of_a_round_that_is_asked_about_is_kept_or_dropped():
    plan = cer.plan(rounds(*map(a_round, range(30))), GROUPS, MODELS, Settings())
    kept, dropped = plan.finish(Scripted(unreliable).ask(plan.questions))
    assert len(plan.questions) == 60 == kept.height + dropped.filter(pl.col("reason") != "no_candidate").height


@each_task
def test_one_more_row_asks_one_thing_more_and_changes_no_other_question(name: str):
    task = TASKS[name]
    few = asked(task.plan(task.framed(*(task.row(number) for number in range(5)))))
    more = asked(task.plan(task.framed(*(task.row(number) for number in (9, *reversed(range(5)))))))
    assert len(more) == len(few) + task.calls
    assert {key: more[key] for key in few} == few


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.trains])
def test_no_held_out_row_is_ever_asked_about(name: str):
    task = TASKS[name]
    rows = [task.row(number, group_id=f"g{number % 3 + 1}") for number in range(12)]
    kept, dropped = made(name, task.framed(*rows))
    assert set(kept["group_id"]) == {"g1"}
    out = dropped.filter(reason="not_train")
    assert out.height == 8
    assert set(out["detail"]) == {"validation", "test"}
    about = {re.split("[/#]", question.row_id)[0] for question in task.plan(task.framed(*rows)).questions}
    assert about == {f"s:{number}" for number in range(0, 12, 3)}


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.trains] + ["cer_candidates", "emotions"])
def test_minors_and_signs_of_risk_are_not_asked_about(name: str):
    task = TASKS[name]
    for change, reason in (({"risk": RISK}, "risk"), ({"under_18": True}, "under_18")):
        frame = task.framed(task.row(1, **change), task.row(2))
        kept, dropped = made(name, frame)
        assert set(dropped["reason"]) == {reason}
        assert all(row_id.startswith("s:1") for row_id in dropped["row_id"])
        assert kept.height == task.calls
        assert all(question.row_id.startswith("s:2") for question in task.plan(frame).questions)


@each_task
def test_replies_in_another_order_are_refused(name: str):
    task = TASKS[name]
    plan = task.plan(task.framed(task.row(1), task.row(2)))
    replies = Scripted(good).ask(plan.questions)
    with pytest.raises(ValueError, match="stands where"):
        plan.finish(list(reversed(replies)))
    with pytest.raises(ValueError, match="argument"):
        plan.finish(replies[:-1])
    kept, dropped = task.plan(task.framed()).finish([])  # no rows ask nothing
    assert kept.schema == TABLES[name].polars_schema()
    assert kept.is_empty()
    assert dropped.is_empty()


def asked(plan: Plan) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (question.row_id, question.model): (question.task, question.prompt, dict(question.inputs), question.sample)
        for question in plan.questions
    }
