"""How people fare on items with a known answer, and how long they take."""

import polars as pl
from vote_rows import vote, votes

from pipelines.review.annotators import pace, right_on_known


def test_gold_and_calibration_items_are_held_against_the_known_answers():
    known = {
        "s:1#1/1": {"step1": True, "step2": True, "step3": False, "preference": "second"},
        "s:2#1/1": {"step1": True, "step2": True, "step3": True, "preference": "both"},
    }
    given = votes(
        *(vote("a TTF second", 1, role="gold"), vote("a TFT both", 2, role="calibration")),
        *(vote("b TTT first", 1, role="gold"), vote("b TTT both", 3, role="gold")),  # of the latter nothing is known
        *(vote("c FFF first", 1), vote("c TTT both", 2, role="adjudicator")),  # none of them: do not count
    )
    frame = right_on_known("cer", given, known)
    assert frame.columns == ["annotator", "items", "right"]
    assert frame.rows() == [("a", 2, 0.5), ("b", 1, 0.0)]


def test_of_reviews_and_rankings_the_verdict_and_the_places_are_right():
    reviews = pl.DataFrame({"annotator": ["a", "b"], "role": ["gold"] * 2, "post_id": ["s:1"] * 2})
    verdicts = reviews.with_columns(verdict=pl.Series(["reject", "accept"]))
    assert right_on_known("coe", verdicts, {"s:1": {"verdict": "reject"}}).rows() == [("a", 1, 1.0), ("b", 1, 0.0)]
    places = reviews.rename({"post_id": "item_id"}).with_columns(places=pl.Series([[2, 1], [2, 2]]))
    assert right_on_known("rank", places, {"s:1": {"places": [2, 1]}})["right"].to_list() == [1.0, 0.0]
    assert right_on_known("compare", places, {"s:1": {"preference": "neither"}})["right"].to_list() == [0.0, 1.0]


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
