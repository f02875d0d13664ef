"""Agreement by question and person, worked out by hand, and what is undefined; how people fare on known items."""

from typing import Any

import polars as pl
import pytest
from table_rows import frame, row_of
from vote_rows import vote, votes

from pipelines.core.agreement import MEASURES, agreement
from pipelines.errors import UnknownName
from pipelines.review.agreement import AGREEMENT, make_agreements, measure_agreement, pace, present, right_on_known
from schemas.reviews import Agreements, CerVotes, CoeReviews, Rankings

DRAWS = 200


ALIKE = [vote(f"{who} TTT both", n) for who in ("a", "b") for n in (1, 2, 3)]
COUNTS = {"role": "annotator", "suggested": False}


def line(report: pl.DataFrame, question: str, annotator: str | None = None) -> dict[str, Any]:
    [row] = report.filter(pl.col("question") == question, pl.col("annotator").eq_missing(annotator)).to_dicts()
    return row


def test_questions_and_people_of_votes():
    given = votes(
        *(vote(one, 1) for one in ("a TTT first", "b TTF first")),
        *(vote(one, 2) for one in ("a TFT both", "b TFT both")),
        *(vote(one, 3) for one in ("a TTT first", "c TFT second")),
        *(vote(one, 4) for one in ("b TFT neither", "c TFT neither")),
        vote("a TFF first", 5),  # alone: nobody agrees or disagrees
        *(vote("c FFF second", 1, role="adjudicator"), vote("a FFF second", 6, role="gold")),
        vote("b FFF second", 6, role="gold"),
    )
    report = measure_agreement("cer", given, draws=DRAWS)
    assert report.schema == AGREEMENT
    assert report.select("question", "annotator").rows() == [
        (question, who) for question in ("step1", "step2", "step3", "preference") for who in (None, "a", "b", "c")
    ]
    assert set(report["n_items"].filter(report["annotator"].is_null())) == {4}
    preference = line(report, "preference")
    assert (preference["n_raters"], preference["raw"]) == (3, 0.75)
    # Labels of the pairs: first 3, second 1, both 2, neither 2. Alpha: 1 - 7 x 2 / (64 - 9 - 1 - 4 - 4).
    assert preference["alpha"] == pytest.approx(1 - 14 / 46)
    # a and b: kappa 1 over two; a and c over one: 0 (p_o 0, p_e 0); b and c: one label, undefined.
    assert preference["kappa"] == pytest.approx(0.5)
    assert preference["undefined"] == []
    # Of a: three pairs, two of them alike; with b and c.
    assert (line(report, "preference", "a")["n_items"], line(report, "preference", "a")["n_raters"]) == (3, 2)
    of_people = {who: line(report, "preference", who)["raw"] for who in "abc"}
    assert of_people == {"a": pytest.approx(2 / 3), "b": 1, "c": 0.5}
    step1 = line(report, "step1")
    assert (step1["raw"], step1["alpha"], step1["undefined"]) == (1, None, ["alpha", "kappa", "fleiss", "ac1"])


def test_figures_are_those_of_the_module_and_lie_within_their_intervals():
    given = votes(
        *(vote(f"{who} T{'FT'[n * m % 3 > 0]}T both", n) for n in range(1, 70) for m, who in ((1, "a"), (2, "b"))),
        *(vote(f"c T{'FT'[n % 5 > 0]}T both", n) for n in range(1, 70)),
    )
    report = measure_agreement("cer", given, draws=DRAWS)
    of_all = line(report, "step2")
    table = [[int(n % 3 > 0), int(2 * n % 3 > 0), int(n % 5 > 0)] for n in range(1, 70)]
    assert {name: of_all[name] for name in MEASURES} == pytest.approx(
        agreement(pl.DataFrame(table).to_numpy().T, 2), abs=2e-9
    )
    for measure in MEASURES:
        assert of_all[f"{measure}_low"] < of_all[measure] < of_all[f"{measure}_high"]
    of_c = line(report, "step2", "c")
    assert (of_c["n_items"], of_c["n_raters"]) == (69, 2)
    assert report.equals(measure_agreement("cer", given.reverse(), draws=DRAWS))


def test_other_versions_are_other_items():
    given = votes(vote("a TTT both"), vote("b TTT both", labelled="v2"))
    assert measure_agreement("cer", given, draws=DRAWS)["n_items"].to_list() == [0] * 12
    assert measure_agreement("cer", given.clear()).is_empty()


def test_two_professionals_who_read_one_chain():
    verdicts = {
        ("p:1", "a"): "accept",
        ("p:1", "b"): "accept",
        ("p:2", "a"): "mend",
        ("p:2", "b"): "reject",
        ("p:3", "a"): "mend",
    }
    rows = [
        row_of(CoeReviews, **COUNTS, post_id=post, annotator=who, verdict=verdict, task_id=post + who)
        for (post, who), verdict in verdicts.items()
    ]
    of_all = line(measure_agreement("coe", frame(CoeReviews, *rows), draws=DRAWS), "verdict")
    assert (of_all["n_items"], of_all["raw"]) == (2, 0.5)


def ranking(item: str, who: str, kind: str, **places: int) -> dict[str, Any]:
    known = {"models": list(places), "places": list(places.values()), "task_id": f"{item} {who}"}
    return row_of(Rankings, **COUNTS, item_id=item, annotator=who, kind=kind, **known)


def test_rankings_are_compared_pair_by_pair_and_drawn_question_by_question():
    rows = [
        *(ranking("q1", "a", "rank", x=1, y=2, z=3), ranking("q1", "b", "rank", x=1, y=3, z=2)),
        *(ranking("q2", "a", "rank", z=1, y=2, x=3), ranking("q2", "b", "rank", z=1, y=2, x=3)),
        *(ranking("q3", "a", "compare", x=1, y=1), ranking("q3", "b", "compare", x=1, y=2)),
    ]
    rankings = frame(Rankings, *rows)
    of_all = line(measure_agreement("rank", rankings, draws=DRAWS), "better")
    # x > y, x > z, y > z or z > y; three pairs the other way round on which both agree.
    assert (of_all["n_items"], of_all["n_raters"], of_all["raw"]) == (2, 2, pytest.approx(5 / 6))
    # Of two questions one or the other or both are drawn: 2/3, 1, 5/6.
    assert (of_all["raw_low"], of_all["raw_high"]) == (pytest.approx(2 / 3), 1)
    compared = line(measure_agreement("compare", rankings, draws=DRAWS), "better")
    assert (compared["n_items"], compared["raw"], compared["undefined"]) == (1, 0, [])


def test_undefined_is_said():
    given = votes(
        *(
            vote(f"{who} T{step}T both", n)
            for n in range(1, 60)
            for who, step in zip("ab", ("TF"[n % 4 == 0], "TF"[n % 3 == 0]), strict=True)
        )
    )
    shown = present(measure_agreement("cer", given, draws=DRAWS))
    assert shown.columns == ["question", "annotator", "items", "raters", *MEASURES]
    assert shown.row(0) == ("step1", "all", "59", "2", "1.00 (1.00–1.00)", *["undefined"] * 4)
    [step2] = shown.filter(question="step2", annotator="all").rows()
    assert all(len(text) >= len("0.10 (0.00–0.20)") for text in step2[4:])
    few = present(measure_agreement("cer", given.head(12), draws=DRAWS))
    assert few.filter(question="step2")["kappa"].str.contains(r"^-?\d\.\d\d$").all(), "six items: no interval"


def test_another_kind_is_refused():
    with pytest.raises(UnknownName, match="no kind of review 'cerr'"):
        measure_agreement("cerr", votes())


def test_the_table_holds_every_figure_and_says_what_is_undefined():
    empty = (CoeReviews.create_empty(), Rankings.create_empty())
    made, dropped = make_agreements(votes(*ALIKE), *empty)
    assert dropped.is_empty()
    Agreements.validate(made)
    assert set(made["annotator"]) == {"all", "a", "b"}
    of_step = dict(made.filter(question="step1", annotator="all").select("measure", "value").rows())
    assert set(of_step) == set(MEASURES)
    assert (of_step["raw"], of_step["alpha"]) == (1.0, None)
    nothing, _ = make_agreements(CerVotes.create_empty(), *empty)
    assert nothing.is_empty()


def test_labels_beside_a_suggestion_and_on_known_items_are_no_independent_ones():
    more = [vote(f"{who} FFF first", 9, **how) for who in ("a", "b") for how in ({"suggested": True}, {"role": "gold"})]
    more = [one | {"task_id": str(place)} for place, one in enumerate(more)]
    assert measure_agreement("cer", votes(*ALIKE, *more), draws=DRAWS).equals(
        measure_agreement("cer", votes(*ALIKE), draws=DRAWS)
    )


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
