"""What people's rankings and comparisons say of models (M §4.2, E §4.1.5, C "Human Evaluation"), and which tables no
rankings give.

Rankings are rows of `rankings`: `item_id`, `kind`, `annotator`, `models` and `places`, the place that each model is
given, from 1. Of two answers (`compare`) both may be first, which is "both good", or both second, "neither".

Intervals are by item: all who rated an item are drawn with it. What they share from item to item, one who always likes
the longer answer, is not in them; nor is it where everybody rates everything and other people would have been asked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from pipelines.core.estimates import DRAWS, bootstrap, bounded_share, ratios
from pipelines.errors import ImpossibleTable, RequestError

# A model among all that were ranked. Shares of rankings in which it is first, or among the first two.
STANDINGS = pl.Schema(
    {"model": pl.String, "n_items": pl.Int64, "n_rankings": pl.Int64}
    | {f"{figure}{bound}": pl.Float64 for figure in ("win1", "win2", "mean_rank") for bound in ("", "_low", "_high")}
)
# Two models. `win_rate` is the first's, a tie counting half; counts are of comparisons.
PAIRS = pl.Schema(
    {"model": pl.String, "other": pl.String, "n_items": pl.Int64}
    | dict.fromkeys(("wins", "losses", "both_good", "neither"), pl.Int64)
    | {f"win_rate{bound}": pl.Float64 for bound in ("", "_low", "_high")}
)
_OUTCOMES = {(1, 2): 0, (2, 1): 1, (1, 1): 2, (2, 2): 3}
_WORTH = np.array([1.0, 0.0, 0.5, 0.5])
_EXACT = 1e-9


class Standing(NamedTuple):
    """A line of a published table: shares from 0 to 1, and a mean rank from 1."""

    model: str
    win1: float
    win2: float
    mean_rank: float


def rank_models(rankings: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """Win@1, Win@2 and the mean rank of each model (E §4.1.5), over all rankings of the kind `rank`.

    Returns rows of STANDINGS, the lowest mean rank first; none where nothing was ranked.

    Raises RequestError for a ranking without each place from 1 once, and where not all rank the same models: shares of
    first places among three and among four cannot stand in one table.
    """
    rows = rankings.filter(kind="rank")
    if rows.is_empty():
        return STANDINGS.to_frame()
    models = sorted(rows["models"][0])
    places = np.zeros((len(rows), len(models)))
    for number, row in enumerate(rows.iter_rows(named=True)):
        place_of = dict(zip(row["models"], row["places"], strict=True))
        if sorted(row["models"]) != models:
            raise RequestError(
                f"one ranks {', '.join(sorted(row['models']))}, another {', '.join(models)}",
                where=_where(row),
                hint="rank the same models everywhere, or evaluate each set of models by itself",
            )
        if len(set(models)) < len(models):
            raise RequestError("a model is ranked twice", where=_where(row), hint=f"the models are {', '.join(models)}")
        if sorted(row["places"]) != list(range(1, len(models) + 1)):
            raise RequestError(
                f"of {len(models)} answers each has a place from 1 to {len(models)}, none twice",
                where=_where(row),
                hint=f"the places are {row['places']}",
            )
        places[number] = [place_of[model] for model in models]
    items = np.unique(rows["item_id"].to_numpy(), return_inverse=True)[1]
    n_items = int(items.max()) + 1
    sums, counts = np.zeros((n_items, 3 * len(models))), np.zeros((n_items, 1))
    np.add.at(sums, items, np.hstack([places == 1, places <= 2, places]).astype(np.float64))
    np.add.at(counts, items, 1.0)
    estimates = bootstrap(ratios(sums, counts), n_items, draws=draws, seed=seed)
    shares = 2 * len(models)  # Win@1 and Win@2
    estimates[:shares] = [
        bounded_share(one, of, counts[:, 0]) for one, of in zip(estimates[:shares], sums.T[:shares], strict=True)
    ]
    lines = [
        (model, n_items, len(rows), *(bound for figure in estimates[number :: len(models)] for bound in figure))
        for number, model in enumerate(models)
    ]
    return pl.DataFrame(lines, schema=STANDINGS, orient="row").sort("mean_rank", "model")


def compare_models(rankings: pl.DataFrame, *, draws: int = DRAWS, seed: int = 0) -> pl.DataFrame:
    """How often each model is better than each other, over all rows of the kind `compare`.

    Returns rows of PAIRS, by name. Raises RequestError for what is no comparison of two.
    """
    outcomes: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in rankings.filter(kind="compare").iter_rows(named=True):
        place_of = dict(zip(row["models"], row["places"], strict=True))
        pair = tuple(sorted(place_of))
        outcome = _OUTCOMES.get(tuple(place_of[model] for model in pair))
        if len(pair) != 2 or outcome is None:
            raise RequestError(
                "a comparison gives each of two models the place 1 or 2",
                where=_where(row),
                hint=f"the models are {', '.join(row['models'])}, their places {row['places']}",
            )
        outcomes.setdefault((pair[0], pair[1]), []).append((row["item_id"], outcome))
    lines = []
    for pair, found in sorted(outcomes.items()):
        items = np.unique([item for item, _ in found], return_inverse=True)[1]
        n_items = int(items.max()) + 1
        counts = np.zeros((n_items, len(_WORTH)))
        np.add.at(counts, (items, np.array([outcome for _, outcome in found])), 1.0)
        won, compared = counts @ _WORTH, counts.sum(axis=1)
        [win_rate] = bootstrap(ratios(won[:, None], compared[:, None]), n_items, draws=draws, seed=seed)
        win_rate = bounded_share(win_rate, won, compared)
        lines.append((*pair, n_items, *counts.sum(axis=0).astype(int).tolist(), *win_rate))
    return pl.DataFrame(lines, schema=PAIRS, orient="row")


def refuse_impossible(
    table: Sequence[Standing], *, share_unit: float = 1e-4, rank_unit: float = 1e-2, n_rankings: int | None = None
) -> None:
    """Raises ImpossibleTable, with all `contradictions`, for a table that no rankings give."""
    if found := contradictions(table, share_unit=share_unit, rank_unit=rank_unit, n_rankings=n_rankings):
        raise ImpossibleTable(found)


def contradictions(
    table: Sequence[Standing], *, share_unit: float = 1e-4, rank_unit: float = 1e-2, n_rankings: int | None = None
) -> list[str]:
    """Says why no rankings give such a table, where every rater ranks all of its models and there are no ties.

    Each figure is taken for any that rounds to it. What must hold for K models:

    * the Win@1 sum to 1, the Win@2 to 2, the mean ranks to K (K + 1) / 2;
    * of each model Win@1 ≤ Win@2, both from 0 to 1, and its mean rank lies between that with all other places third,
      and that with all others last: of three models it *is* 3 − Win@1 − Win@2;
    * with `n_rankings`, each figure is so many whole rankings (Brown and Heathers 2017, "The GRIM Test");
    * if none of these is broken: there are shares of places that give all of the table at once.

    Args:
        table: All models that were ranked.
        share_unit: The last digit that the shares are printed with: .0001 for 12.34 %.
        rank_unit: That of the mean ranks.
        n_rankings: How many rankings there are, where that is known.
    """
    if n_rankings is not None and n_rankings < 1:
        raise ValueError(f"n_rankings={n_rankings}: of no rankings there is no table")
    k, found = len(table), []
    if no_number := [one.model for one in table if not np.isfinite(one[1:]).all()]:
        return [f"{model}: a figure is no number" for model in no_number]
    share, rank = share_unit / 2 + _EXACT, rank_unit / 2 + _EXACT
    for name, total, must, slack in (
        ("Win@1", sum(one.win1 for one in table), 1.0, k * share),
        ("Win@2", sum(one.win2 for one in table), float(min(k, 2)), k * share),
        ("mean ranks", sum(one.mean_rank for one in table), k * (k + 1) / 2, k * rank),
    ):
        if abs(total - must) > slack:
            found.append(f"the {name} sum to {total:.4g}, and must to {must:.4g}")
    for one in table:
        if not -share <= one.win1 <= one.win2 + 2 * share <= 1 + 3 * share:
            found.append(f"{one.model}: Win@1 {one.win1:.4g} and Win@2 {one.win2:.4g} are not 0 ≤ Win@1 ≤ Win@2 ≤ 1")
        # Of each place after the second the third is the least, the last the greatest.
        low, high = (place - (place - 2) * one.win2 - one.win1 for place in (min(k, 3), k))
        slack = rank + (k - 1) * share
        if not low - slack <= one.mean_rank <= high + slack:
            bounds = f"{low:.4g}" if k <= 3 else f"between {low:.4g} and {high:.4g}"
            found.append(f"{one.model}: with its Win@1 and Win@2 the mean rank is {bounds}, not {one.mean_rank:.4g}")
        if n_rankings is not None:
            for name, value, slack in (
                ("Win@1", one.win1, share),
                ("Win@2", one.win2, share),
                ("mean rank", one.mean_rank, rank),
            ):
                if abs(value - round(value * n_rankings) / n_rankings) > slack:
                    found.append(f"{one.model}: no whole number of {n_rankings} rankings gives the {name} {value:.4g}")
    if not found and not _feasible(table, share, rank):
        found.append("no rankings give all figures of the table at once, though each could be")
    return found


def _feasible(table: Sequence[Standing], share: float, rank: float) -> bool:
    """Whether there are shares of models x places, of which each row and column sums to 1 (by Birkhoff's theorem such a
    table is a mixture of rankings), with these figures.
    """
    from scipy.optimize import linprog

    k = len(table)
    cells = np.eye(k * k).reshape(k, k, k * k)  # of a model and a place the variable
    figures = np.concatenate(
        [cells[:, 0], cells[:, :2].sum(axis=1), np.einsum("mpv,p->mv", cells, np.arange(1.0, k + 1))]
    )
    values = np.array([*(o.win1 for o in table), *(o.win2 for o in table), *(o.mean_rank for o in table)])
    slack = np.repeat([share, share, rank], k)
    result = linprog(
        np.zeros(k * k),
        A_ub=np.concatenate([figures, -figures]),
        b_ub=np.concatenate([values + slack, slack - values]),
        A_eq=np.concatenate([cells.sum(axis=0), cells.sum(axis=1)]),
        b_eq=np.ones(2 * k),
        bounds=(0, 1),
    )
    return bool(result.status != 2)  # 2: there are none


def _where(row: dict[str, object]) -> str:
    return f"rankings: item {row['item_id']}, annotator {row['annotator']}"
