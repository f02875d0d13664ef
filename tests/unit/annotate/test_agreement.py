"""How far candidates agree with the labels of their source."""

from typing import Any

import labelled_rows
import polars as pl
import pytest
from annotate_rows import rounds, sampled_round, splits

from pipelines.operations.paper_tables import AGREEMENT, agreement
from schemas.annotations import CerCandidates
from schemas.labels import EMOTIONS


def candidate(
    source_id: int, strategy: str = "Question", emotion: str = "委屈", model: str = "a", **more: Any
) -> dict[str, Any]:
    place = {"dialogue_id": f"s:{source_id}", "round": 1, "candidate": 1 if model == "a" else 2}
    return labelled_rows.candidate(**place, strategy=strategy, emotion=emotion, model_asked=model, **more)


def candidates(*rows: dict[str, Any]) -> pl.DataFrame:
    return CerCandidates.validate(pl.DataFrame(rows, schema=CerCandidates.polars_schema()))


def lines(frame: pl.DataFrame) -> dict[tuple[str, str], tuple[Any, ...]]:
    assert set(frame["rounds"]) == {"train"}
    return {(row[1], row[3]): row[4:] for row in frame.iter_rows()}


def test_a_strategy_agrees_with_any_of_its_turn():
    turns = rounds(
        sampled_round(1, 1, strategies=["Question", "Information"]),
        sampled_round(2, 1, strategies=["Question"]),
        sampled_round(3, 1, strategies=["Providing Suggestions"]),
        sampled_round(4, 1, strategies=[]),  # without a label: not counted
    )
    said = candidates(candidate(1), candidate(2), candidate(3, "Information"), candidate(4))
    frame = agreement(said, turns, splits(g1="train"))
    assert frame.schema == AGREEMENT
    # Over the two with one label: (Question, Question), (Information, Suggestions): p_o 1/2, p_e 1/4, kappa 1/3.
    assert lines(frame) == {("a", "strategy"): (3, pytest.approx(2 / 3), 2, pytest.approx(1 / 3))}


def test_emotions_agree_in_either_language_and_by_any_of_their_names():
    anxiety = EMOTIONS.find("焦虑")
    assert anxiety is not None
    turns = rounds(
        *(sampled_round(n, 1, emotion=word) for n, word in enumerate(("anxiety", "焦虑", "愤怒", "kein", None)))
    )
    said = candidates(
        *(candidate(n, emotion=word) for n, word in enumerate(("焦虑", anxiety.en, "乱糟糟", "焦虑", "焦虑")))
    )
    [(key, values)] = lines(agreement(said, turns, splits(g1="train"))).items()
    assert key == ("a", "emotion")
    # Labelled by a name that we know: three. Two agree. p_o 2/3, p_e 4/9: kappa 2/5.
    assert values == (3, pytest.approx(2 / 3), 3, pytest.approx(0.4))


def test_models_sources_and_held_out_rounds_stand_apart():
    turns = rounds(
        *(sampled_round(number, 1, strategies=["Question"]) for number in (1, 3, 4)),
        sampled_round(2, 1, strategies=["Question"], source="t"),
    )
    held_out = (candidate(3, group_id="g2"), candidate(4, "Information", group_id="g3"))
    said = candidates(candidate(1), candidate(1, "Information", model="b"), candidate(2), *held_out)
    frame = agreement(said, turns, splits(g1="train", g2="validation", g3="test"))
    assert frame.select("source", "model_asked", "rounds", "labelled", "agreeing", "kappa").rows() == [
        ("s", "a", "held out", 2, 0.5, 0.0),
        ("s", "a", "train", 1, 1.0, None),
        ("s", "b", "train", 1, 0.0, 0.0),
        ("t", "a", "train", 1, 1.0, None),
    ]
