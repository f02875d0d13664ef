"""People's rankings and comparisons, and tables of them that no rankings give."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ImpossibleTable, RequestError
from pipelines.evaluate.ranking import Standing, compare_models, contradictions, rank_models, refuse_impossible
from pipelines.operations.evaluate.papers import RANKED


def standings(table: str) -> list[Standing]:
    return [Standing(name.partition(": ")[2], *row.values()) for name, row in RANKED.items() if name.startswith(table)]


M_TABLE_3 = standings("M")
# E Table 2. Shares are printed as 44.30, but all end in 0.
E_EMPATHY_QA, E_PSYQA = standings("E, Empathy-QA"), standings("E, PsyQA")


def rows(kind: str, rated: list[tuple[str, dict[str, int]]]) -> pl.DataFrame:
    """Rows of `rankings`: of each the item and the places."""
    return pl.DataFrame(
        [
            {
                "item_id": item,
                "kind": kind,
                "annotator": f"a{number}",
                "models": [*places],
                "places": [*places.values()],
            }
            for number, (item, places) in enumerate(rated)
        ],
        schema={"item_id": pl.String, "kind": pl.String, "annotator": pl.String}
        | {"models": pl.List(pl.String), "places": pl.List(pl.Int64)},
    )


def test_shares_of_first_places_and_mean_ranks_by_hand_whatever_the_order_of_the_models():
    table = rank_models(
        rows(
            "rank",
            [
                ("q1", {"a": 1, "b": 2, "c": 3}),
                ("q1", {"c": 2, "a": 1, "b": 3}),
                ("q2", {"b": 1, "a": 2, "c": 3}),
                ("q2", {"c": 1, "b": 3, "a": 2}),
            ],
        )
    )
    figures = ("model", "n_items", "n_rankings", "win1", "win2", "mean_rank")
    assert table.select(figures).rows() == [
        ("a", 2, 4, 0.5, 1.0, 1.5),
        ("b", 2, 4, 0.25, 0.5, 2.25),
        ("c", 2, 4, 0.25, 0.5, 2.25),
    ]


@given(
    st.integers(2, 5).flatmap(
        lambda k: st.lists(st.tuples(st.integers(1, 4), st.permutations(range(1, k + 1))), min_size=1, max_size=12)
    )
)
def test_of_any_rankings_the_figures_fit_each_other_and_their_intervals(rated):
    k = len(rated[0][1])
    frame = rows("rank", [(f"q{item}", {f"m{n}": place for n, place in enumerate(of)}) for item, of in rated])
    table = rank_models(frame, draws=50)
    assert table["win1"].sum() == pytest.approx(1)
    assert table["win2"].sum() == pytest.approx(2)
    assert table["mean_rank"].sum() == pytest.approx(k * (k + 1) / 2)
    rounded = [
        Standing(row["model"], round(row["win1"], 4), round(row["win2"], 4), round(row["mean_rank"], 2))
        for row in table.iter_rows(named=True)
    ]
    assert contradictions(rounded, n_rankings=len(rated)) == []
    for figure in ("win1", "win2", "mean_rank"):
        bounded = table.drop_nulls(f"{figure}_low")
        assert len(bounded) == (len(table) if frame["item_id"].n_unique() > 1 else 0)
        assert (bounded[f"{figure}_low"] <= bounded[figure] + 1e-9).all()
        assert (bounded[figure] <= bounded[f"{figure}_high"] + 1e-9).all()


def test_intervals_are_by_item_and_follow_from_the_seed():
    """Ten who say the same of an item are no ten items."""
    once = [(f"q{n}", {"a": 1 + n % 2, "b": 2 - n % 2}) for n in range(12)]
    one, ten = rank_models(rows("rank", once)), rank_models(rows("rank", once * 10))
    bounds = ("model", "win1", "win1_low", "win1_high")
    assert one.select(bounds).equals(ten.select(bounds))
    assert rank_models(rows("rank", once), draws=101).equals(rank_models(rows("rank", once), draws=101))
    assert not rank_models(rows("rank", once), draws=101, seed=1).equals(rank_models(rows("rank", once), draws=101))


def test_intervals_hold_the_truth_in_93_to_97_of_100_studies():
    """40 questions, 3 models, 5 annotators: answers differ in worth by question, and people scatter about it."""
    rng = np.random.default_rng(7)
    strength = np.array([0.6, 0.2, 0.0])

    def places(items: int, raters: int) -> np.ndarray:
        worth = strength + rng.normal(0, 0.6, (items, 1, 3)) + rng.normal(0, 0.8, (items, raters, 3))
        return (-worth).argsort(axis=2).argsort(axis=2) + 1

    many = places(200_000, 1)
    truth = {"win1": (many == 1).mean(axis=(0, 1)), "mean_rank": many.mean(axis=(0, 1))}
    held = dict.fromkeys(truth, 0)
    studies = 300
    for _ in range(studies):
        rated = [
            (f"q{item}", dict(zip("abc", of, strict=True)))
            for item, raters in enumerate(places(40, 5).tolist())
            for of in raters
        ]
        table = rank_models(rows("rank", rated), draws=300).sort("model")
        for figure, true in truth.items():
            low, high = (table[f"{figure}_{bound}"].to_numpy() for bound in ("low", "high"))
            held[figure] += ((low <= true) & (true <= high)).sum()
    assert {figure: count / studies / 3 for figure, count in held.items()} == pytest.approx(
        dict.fromkeys(truth, 0.95), abs=0.02
    )


@pytest.mark.parametrize(
    ("rated", "says"),
    [
        ([("q1", {"a": 1, "b": 1})], "none twice"),
        ([("q1", {"a": 1, "b": 3})], "none twice"),
        ([("q1", {"a": 1, "b": 2}), ("q2", {"a": 1, "c": 2})], "one ranks a, c, another a, b"),
    ],
    ids=["tie", "gap", "other models"],
)
def test_what_is_no_ranking_of_all_is_refused_with_its_item(rated, says: str):
    with pytest.raises(RequestError, match=says) as caught:
        rank_models(rows("rank", rated))
    assert rated[-1][0] in str(caught.value)
    assert caught.value.hint


def test_of_comparisons_a_tie_counts_half():
    places = [(1, 2), (1, 2), (1, 2), (2, 1), (1, 1), (2, 2), (2, 2), (2, 2)]
    rated = [(f"q{n % 3}", {"b": b, "a": a}) for n, (a, b) in enumerate(places)]
    both = pl.concat([rows("compare", [*rated, ("q9", {"a": 2, "c": 1})]), rows("rank", [("q1", {"a": 1, "b": 2})])])
    table = compare_models(both)
    counts = ("model", "other", "n_items", "wins", "losses", "both_good", "neither", "win_rate")
    assert table.select(counts).rows() == [("a", "b", 3, 3, 1, 1, 3, 5 / 8), ("a", "c", 1, 0, 1, 0, 0, 0.0)]
    assert table["win_rate_low"][0] <= 5 / 8 <= table["win_rate_high"][0]
    assert table["win_rate_low"][1] is None, "one item says nothing of others"


@pytest.mark.parametrize("places", [{"a": 1, "b": 3}, {"a": 1, "b": 2, "c": 2}, {"a": 1}])
def test_what_is_no_comparison_of_two_is_refused(places: dict[str, int]):
    with pytest.raises(RequestError, match="each of two models the place 1 or 2"):
        compare_models(rows("compare", [("q1", places)]))


def test_of_nothing_there_are_empty_tables():
    assert rank_models(rows("rank", [])).is_empty()
    assert compare_models(rows("rank", [("q1", {"a": 1, "b": 2})])).is_empty()


def test_ms_table_3_is_refused():
    found = contradictions(M_TABLE_3)
    assert found == [
        "the Win@2 sum to 1.9, and must to 2",
        "MindChat: with its Win@1 and Win@2 the mean rank is 1.483, not 1.38",
    ]
    with pytest.raises(ImpossibleTable, match="no rankings give this table") as caught:
        refuse_impossible(M_TABLE_3)
    assert caught.value.contradictions == tuple(found)
    assert caught.value.hint


def test_ms_table_3_is_possible_but_for_one_digit_and_its_first_places_are_of_350_rankings():
    mended = [*M_TABLE_3[:2], M_TABLE_3[2]._replace(win2=0.906)]
    assert contradictions(mended, share_unit=2e-4) == []

    def of_no_whole_number(n_rankings: int) -> list[str]:
        return [
            one.split(":")[0] for one in contradictions(M_TABLE_3, n_rankings=n_rankings) if "gives the Win@1" in one
        ]

    assert of_no_whole_number(500) == [one.model for one in M_TABLE_3]
    assert of_no_whole_number(350) == []


def test_es_table_of_its_own_set_stands_and_that_of_psyqa_does_not_to_its_last_digit():
    assert contradictions(E_EMPATHY_QA, share_unit=1e-3, rank_unit=1e-3) == []
    refuse_impossible(E_EMPATHY_QA, share_unit=1e-3, rank_unit=1e-3)
    assert contradictions(E_PSYQA, share_unit=1e-3, rank_unit=1e-3) == ["the mean ranks sum to 20.99, and must to 21"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (Standing("c", 0.5, 0.4, 2.4), "not 0 ≤ Win@1 ≤ Win@2 ≤ 1"),
        (Standing("c", -0.1, 0.4, 2.6), "not 0 ≤ Win@1 ≤ Win@2 ≤ 1"),
        (Standing("c", 0.5, 1.1, 1.4), "not 0 ≤ Win@1 ≤ Win@2 ≤ 1"),
        (Standing("c", 0.2, 0.6, 2.1), r"the mean rank is 2.2, not 2.1"),
    ],
)
def test_a_line_that_is_impossible_by_itself_is_named(line: Standing, says: str):
    found = contradictions([Standing("a", 0.4, 0.7, 1.9), Standing("b", 0.4, 0.7, 1.9), line])
    assert any(one.startswith("c: ") and says in one for one in found)


def test_figures_that_only_together_are_impossible_are_refused():
    """Three models have all their later places third or fourth: there are not so many third places."""
    low, high = [0.2, 0.4, 2.6], [0.2, 0.4, 3.6]
    table = [Standing(name, *figures) for name, figures in zip("abcde", (low, low, low, high, high), strict=True)]
    assert contradictions(table) == ["no rankings give all figures of the table at once, though each could be"]


@given(
    st.lists(st.sampled_from([*permutations((1, 2, 3, 4))]), min_size=1, max_size=9), st.integers(0, 3), st.booleans()
)
def test_a_mean_rank_that_is_another_is_refused(rankings: list[tuple[int, ...]], model: int, up: bool):
    places = np.array(rankings)
    table = [Standing(str(n), (of == 1).mean(), (of <= 2).mean(), of.mean()) for n, of in enumerate(places.T)]
    assert contradictions(table, n_rankings=len(rankings)) == []
    table[model] = table[model]._replace(mean_rank=table[model].mean_rank + (0.05 if up else -0.05))
    assert any("mean ranks sum" in one for one in contradictions(table))


def test_in_the_report_a_table_that_cannot_be_is_marked_so():
    marked = {name.partition(":")[0] for name in RANKED}
    assert marked == {"E, Empathy-QA", "E, PsyQA (impossible)", "M (impossible)"}


def test_a_model_that_is_ranked_twice_is_refused():
    twice = rows("rank", [("q1", {"a": 1, "b": 2})]).with_columns(models=pl.lit(["a", "a"]))
    with pytest.raises(RequestError, match="ranked twice"):
        rank_models(twice)


def test_who_wins_always_or_never_is_not_certain_to():
    six = [(f"q{n}", {"a": 1, "b": 2}) for n in range(6)]
    table = rank_models(rows("rank", six)).to_dicts()
    assert [(row["model"], row["win1"]) for row in table] == [("a", 1), ("b", 0)]
    assert table[0]["win1_low"] < 0.7
    assert table[1]["win1_high"] > 0.3
    [pair] = compare_models(rows("compare", six)).to_dicts()
    assert (pair["win_rate"], pair["win_rate_high"]) == (1, 1)
    assert pair["win_rate_low"] < 0.7


def test_what_is_no_number_cannot_stand_in_a_table():
    table = [Standing("a", float("nan"), 1.0, 1.0), Standing("b", 0.0, 1.0, 2.0)]
    assert contradictions(table) == ["a: a figure is no number"]
    with pytest.raises(ValueError, match="n_rankings=0"):
        contradictions(table, n_rankings=0)
