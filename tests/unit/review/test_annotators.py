"""How people fare on items with a known answer, and how long they take."""

import polars as pl
from vote_rows import vote, votes

from pipelines.review.annotators import gold_accuracy, pace


def test_gold_votes_are_held_against_the_known_answers():
    answers = votes(vote("x TTF second", 1), vote("x TTT both", 2)).drop("annotator", "role")
    given = votes(
        *(vote("a TTF second", 1, role="gold"), vote("a TFT both", 2, role="gold")),
        *(vote("b TTT first", 1, role="gold"), vote("b TTT both", 3, role="gold")),  # of the latter nothing is known
        *(vote("c FFF first", 1), vote("c TTT both", 2, role="adjudicator")),  # no gold: do not count
    )
    assert gold_accuracy(given, answers).rows() == [
        ("a", 2, 1.0, 0.5, 1.0, 1.0, 0.5),
        ("b", 1, 1.0, 1.0, 0.0, 0.0, 0.0),
    ]
    assert gold_accuracy(given, answers).columns == [
        "annotator",
        "items",
        "step1",
        "step2",
        "step3",
        "preference",
        "all",
    ]


def test_what_took_less_than_two_seconds_is_named():
    times = {"a": (1.5, 30.0, 40.0, 1.75), "b": (2.0, None), "c": (None,)}
    rows = [vote(f"{who} TTT both", n, seconds=one) for who, took in times.items() for n, one in enumerate(took, 1)]
    frame = pace(votes(*rows))
    assert frame.schema["too_fast"] == pl.List(pl.String)
    assert frame.rows() == [
        ("a", 4, 4, 15.875, ["s:1#1/1 a", "s:4#1/1 a"]),
        ("b", 2, 1, 2.0, []),
        ("c", 1, 0, None, []),
    ]
    assert pace(votes(*rows), fast=35)["too_fast"].list.len().to_list() == [3, 1, 0]
