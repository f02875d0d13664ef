"""The size of a stage: what is asked about is drawn by the seed; a greater size keeps what a smaller one has drawn."""

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted
from unique_rows import post

from pipelines.annotate import cer, emotions
from pipelines.llm.tasks import Plan, sampled
from pipelines.settings import Settings
from schemas.posts import UniquePosts


def plan(rows: int) -> Plan:
    frame = pl.DataFrame([post(n, f"我很难过，第{n}天了") for n in range(rows)], schema=UniquePosts.polars_schema())
    return emotions.plan(frame, ("m",))


def asked(one: Plan) -> set[str]:
    return {question.row_id for question in one.questions}


@given(st.integers(0, 12), st.integers(1, 12), st.integers(1, 12), st.integers(0, 3))
def test_a_greater_size_keeps_what_a_smaller_one_has_drawn_and_without_one_all_are_asked_about(rows, size, more, seed):
    of = plan(rows)
    assert sampled(of, None, seed) is of
    few, many = sampled(of, size, seed), sampled(of, size + more, seed)
    assert len(few.questions) == min(size, rows)
    assert asked(few) <= asked(many) <= asked(of)


@given(st.sets(st.integers(0, 11)), st.integers(1, 12), st.integers(0, 12), st.integers(0, 3), st.data())
def test_what_is_held_out_is_passed_on_the_way_and_moves_nothing_that_trains(out, size, most, more, data):
    """`held_out` caps it, and both sizes are nested."""
    rows = [f"s:{n}" for n in range(12)]
    held_out = {rows[n] for n in out}
    of = replace(plan(12), held_out=held_out)
    drawn = asked(sampled(of, size, 7))
    bare = plan(12)
    alone = replace(bare, questions=[one for one in bare.questions if one.row_id not in held_out])
    assert drawn - held_out == asked(sampled(alone, size, 7))
    wider = asked(sampled(of, size + more, 7))
    assert drawn <= wider
    if len(rows) - len(held_out) <= size:  # all that trains is drawn, and so is all that does not
        assert held_out <= drawn
    capped = asked(sampled(of, size, 7, most))
    assert capped - held_out == drawn - held_out
    assert len(capped & held_out) == min(most, len(drawn & held_out))
    assert capped <= asked(sampled(of, size, 7, most + more)) <= drawn
    assert capped <= asked(sampled(of, size + more, 7, most))


def test_the_held_out_share_is_that_of_all_rows():
    """300 of 3,000 are held out: with 500 that train there come about 55 (binomially: within four deviations)."""
    of = plan(3000)
    of = replace(of, held_out={f"s:{n}" for n in range(300)})
    few = asked(sampled(of, 500, 0)) & set(of.held_out)
    assert abs(len(few) - 500 / 9) < 4 * (500 / 9) ** 0.5


def test_what_has_no_room_is_dropped_with_its_reason():
    few = sampled(plan(6), 2, 0)
    said = '{"emotion": "悲伤", "intensity": 4, "why": "说了难过。"}'
    kept, dropped = few.finish(Scripted(lambda _: said).ask(few.questions))
    assert kept["intensity"].to_list() == [4, 4]
    assert Counter(dropped["reason"]) == {"not_sampled": 4}
    assert set(dropped.filter(reason="not_sampled")["row_id"]).isdisjoint(asked(few))


def test_questions_about_one_thing_are_asked_together_or_not():
    of = plan(4)
    pairs = [one for question in of.questions for one in (question, question)]
    asked_twice = [replace(one, row_id=f"{one.row_id}/{n % 2}", about=one.row_id) for n, one in enumerate(pairs)]
    both = Plan(asked_twice, of.dropped, of.finish)
    few = sampled(both, 2, 0)
    assert len(few.questions) == 4
    assert set(Counter(question.about for question in few.questions).values()) == {2}


@pytest.mark.parametrize(("size", "more"), [(None, {}), (3, {"size": 3, "seed": 0})])
def test_a_size_decides_what_a_table_is_and_none_changes_nothing(size, more):
    stage = emotions.plan.stage  # type: ignore[attr-defined]
    settings = Settings(annotate={"sizes": {"emotions": size}})
    assert stage.settings(settings) == {"models": ("qwen-plus",)} | more
    of_both = Settings(annotate={"sizes": {"cer_candidates": 5, "cer_candidates_held_out": 0}})
    assert cer.plan.stage.settings(of_both).items() >= {"size": 5, "held_out": 0, "seed": 0}.items()  # type: ignore[attr-defined]
