"""Plots, where they say more than numbers: lengths, topics, rounds, splits; clusters; what was dropped and whose.

Labels are English: a machine without Chinese fonts would draw empty boxes. A legend asks for its "best" place by name:
as a default, matplotlib warns where a busy machine takes long to find it.
"""

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from pipelines.core.plotting import png
from pipelines.split.gaussian import round_probabilities
from schemas.labels import SPLITS
from schemas.taxonomy import CATEGORY_OF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BYTES = 50_000  # it stays in Dagster's event log for ever
_MOST_BARS = 12


Draw = Callable[["Axes"], None]
_OfRows = Callable[["Axes", pl.DataFrame], None]


def plots(table: str, rows: pl.DataFrame, dropped: pl.DataFrame) -> dict[str, str]:
    """The plots of a table by name, as Markdown with a PNG inside: of its rows, its clusters, and what it dropped."""
    draws: dict[str, Draw] = {}
    if table in _OF_ROWS and rows.height:
        draws["picture"] = lambda axes: _OF_ROWS[table](axes, rows)
    if "cluster_size" in rows.columns and rows.height:
        draws["cluster_sizes"] = lambda axes: _clusters(axes, rows)
    if dropped.height:
        draws["drops_by_source"] = lambda axes: _drops(axes, dropped)
    return {name: made for name, draw in draws.items() if (made := drawn(draw)) is not None}


def drawn(draw: Draw) -> str | None:
    """What `draw` draws, as Markdown with a PNG inside; None where that is too large to be kept for ever."""
    file, title = png(draw, (6.4, 3.2), dpi=80)
    return None if len(file) > _MOST_BYTES else f"![{title}](data:image/png;base64,{base64.b64encode(file).decode()})"


def _histogram(column: str, title: str, label: str) -> _OfRows:
    def draw(axes: "Axes", rows: pl.DataFrame) -> None:
        axes.hist(rows[column].to_list(), bins=min(40, max(5, rows[column].n_unique())), color="#4c72b0")
        axes.set(title=title, xlabel=label, ylabel="rows")
        middle: Any = rows[column].median()
        axes.axvline(middle, color="#c44e52", linestyle="--", label=f"median {middle:.0f}")
        axes.legend(loc="best")

    return draw


def _topics(axes: "Axes", rows: pl.DataFrame) -> None:
    named = [CATEGORY_OF.get(topic, "not of the taxonomy") if topic else "none given" for topic in rows["topic"]]
    counted = pl.Series("category", named).value_counts(sort=True)
    names, counts = counted["category"].to_list()[::-1], counted["count"].to_list()[::-1]
    axes.bar_label(axes.barh(names, counts, color="#4c72b0"))
    axes.set(title="Posts by category (M Table 1)", xlabel="posts")


def _rounds(axes: "Axes", rows: pl.DataFrame) -> None:
    """Which rounds were drawn, beside C's law for the same dialogues drawn once each."""
    longest = int(rows["n_rounds"].max())  # type: ignore[arg-type]
    drawn = dict(rows.group_by("round").len().iter_rows())
    expected = [0.0] * longest
    dialogues = rows.select("dialogue_id", "n_rounds", pl.len().over("dialogue_id").alias("drawn")).unique()
    for n_rounds, samples in dialogues.select("n_rounds", "drawn").iter_rows():
        for place, probability in enumerate(round_probabilities(n_rounds)):
            expected[place] += samples * float(probability)
    places = list(range(1, longest + 1))
    axes.bar(places, [drawn.get(place, 0) for place in places], color="#4c72b0", label="drawn, without replacement")
    axes.plot(places, expected, color="#c44e52", label="C eq. 1, each draw alone")
    axes.set(title="Sampled rounds", xlabel="round", ylabel="rows")
    axes.legend(loc="best")


def _splits(axes: "Axes", rows: pl.DataFrame) -> None:
    counted = dict(rows.group_by("split").len().iter_rows())
    counts = [counted.get(split, 0) for split in SPLITS]
    axes.bar_label(axes.bar(SPLITS, counts, color=["#4c72b0", "#dd8452", "#55a868"]))
    axes.set(title="Groups by split", ylabel="groups")


def _prompt_lengths(axes: "Axes", rows: pl.DataFrame) -> None:
    lengths = rows["extra_info"].struct.field("prompt_length").alias("length")
    unit = rows["extra_info"].struct.field("prompt_length_unit")[0]
    _histogram("length", "Prompt lengths", unit)(axes, lengths.to_frame())


def _drops(axes: "Axes", dropped: pl.DataFrame) -> None:
    """What was dropped and why, each reason parted by the source of its rows; the rarest reasons are left out."""
    counted = (
        dropped.select(source=pl.col("row_id").str.extract(r"^([^:]+):"), reason=pl.format("{}: {}", "unit", "reason"))
        .group_by("reason", "source")
        .len("rows")
        .with_columns(total=pl.col("rows").sum().over("reason"))
        .sort("total", "reason", "source", nulls_last=True)
    )
    reasons = counted["reason"].unique(maintain_order=True).to_list()[-_MOST_BARS:]
    left = dict.fromkeys(reasons, 0)
    for source in counted["source"].unique().sort(nulls_last=True):
        of_source = dict(counted.filter(pl.col("source").eq_missing(source)).select("reason", "rows").iter_rows())
        rows = [of_source.get(reason, 0) for reason in reasons]
        axes.barh(reasons, rows, left=list(left.values()), label=source or "other")
        left = {reason: left[reason] + more for reason, more in zip(reasons, rows, strict=True)}
    axes.set(title="Dropped, by reason and source", xlabel="rows")
    axes.legend(loc="best", fontsize="small")


def _clusters(axes: "Axes", rows: pl.DataFrame) -> None:
    """How many rows were merged of how many."""
    counted = rows.group_by("cluster_size").len("clusters").sort("cluster_size")
    sizes = [str(size) for size in counted["cluster_size"]]
    axes.bar_label(axes.bar(sizes, counted["clusters"].to_list(), color="#4c72b0"))
    axes.set(title="Near-duplicates: rows by size of cluster", xlabel="rows that are one", ylabel="rows", yscale="log")


def _elbows(axes: "Axes", rows: pl.DataFrame) -> None:
    """The curve by which K was chosen, of each role, on the axes on which it was read."""
    for place, row in enumerate(rows.iter_rows(named=True)):
        counts = list(range(1, len(row["curve"]) + 1))
        how = "the elbow" if row["elbow"] else "by the rule: no elbow shows"
        (line,) = axes.plot(counts, row["curve"], marker=".", label=f"{row['role']}s, K = {row['k']}, {how}")
        axes.plot(row["k"], row["curve"][row["k"] - 1], "o", color=line.get_color(), markersize=9 - 3 * place)
    axes.set(title="Personas: sum of squared errors", xlabel="clusters", ylabel="squared error")
    if min(min(row["curve"]) for row in rows.iter_rows(named=True)) > 0:
        axes.set_yscale("log")
    most = max(len(curve) for curve in rows["curve"])
    axes.set_xscale("log")
    ticks = [k for k in range(1, most + 1) if k <= 6 or k % 2 == 0]  # the last ones stand close together there
    axes.set_xticks(ticks, list(map(str, ticks)))
    axes.minorticks_off()
    axes.legend(loc="best", fontsize="small")


def diversity_bars(axes: "Axes", figures: pl.DataFrame, lang: str) -> None:
    """Before and after, side by side, of the figures that are shares."""
    shown = figures.filter(lang=lang).filter(pl.col("figure").str.contains("^(distinct|self|supporter ., mean)"))
    columns = [name for name in shown.columns if name not in ("lang", "figure")]
    width = 0.8 / len(columns)
    for place, name in enumerate(columns):
        at = [row + (place - (len(columns) - 1) / 2) * width for row in range(shown.height)]
        axes.bar(at, shown[name].fill_null(0.0).to_list(), width=width, label=name)
    names = [figure.replace("supporter ", "").replace(", mean", "") for figure in shown["figure"]]
    axes.set_xticks(range(shown.height), names, fontsize="small")
    axes.set(title=f"Diversity before and after ({lang}); D, I, S, C of supporters")
    axes.legend(loc="best", fontsize="small")


_OF_ROWS: dict[str, _OfRows] = {
    "clean_posts": _histogram("n_chars", "Lengths of posts", "characters"),
    "clean_dialogues": _histogram("n_rounds", "Rounds a dialogue", "rounds"),
    "unique_posts": _topics,
    "unique_dialogues": _histogram("n_chars", "Lengths of dialogues", "characters"),
    "splits": _splits,
    "sampled_turns": _rounds,
    "sampled_rewrites": _rounds,
    "persona_fits": _elbows,
    "grpo_ecot": _prompt_lengths,
    "grpo_coe": _prompt_lengths,
    "grpo_cer": _prompt_lengths,
}
