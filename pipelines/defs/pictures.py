"""One picture a table, where it says more than numbers: lengths, topics, rounds, splits.

Labels are English: a machine without Chinese fonts would draw empty boxes.
"""

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import polars as pl

from pipelines.sample.gaussian import round_probabilities
from schemas.labels import SPLITS
from schemas.taxonomy import CATEGORY_OF

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BYTES = 50_000  # it stays in Dagster's event log for ever


def picture(table: str, rows: pl.DataFrame) -> str | None:
    """The picture of a table as Markdown with a PNG inside, or None where none is drawn."""
    draw = _PICTURES.get(table)
    if draw is None or rows.is_empty():
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), dpi=80, layout="constrained")
    axes = figure.subplots()
    draw(axes, rows)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    png = io.BytesIO()
    figure.savefig(png, format="png")
    if png.tell() > _MOST_BYTES:
        return None
    return f"![{axes.get_title()}](data:image/png;base64,{base64.b64encode(png.getvalue()).decode()})"


def _histogram(column: str, title: str, label: str) -> Callable[["Axes", pl.DataFrame], None]:
    def draw(axes: "Axes", rows: pl.DataFrame) -> None:
        axes.hist(rows[column].to_list(), bins=min(40, max(5, rows[column].n_unique())), color="#4c72b0")
        axes.set(title=title, xlabel=label, ylabel="rows")
        middle: Any = rows[column].median()
        axes.axvline(middle, color="#c44e52", linestyle="--", label=f"median {middle:.0f}")
        axes.legend()

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
    axes.legend()


def _splits(axes: "Axes", rows: pl.DataFrame) -> None:
    counted = dict(rows.group_by("split").len().iter_rows())
    counts = [counted.get(split, 0) for split in SPLITS]
    axes.bar_label(axes.bar(SPLITS, counts, color=["#4c72b0", "#dd8452", "#55a868"]))
    axes.set(title="Groups by split", ylabel="groups")


def _prompt_lengths(axes: "Axes", rows: pl.DataFrame) -> None:
    lengths = rows["extra_info"].struct.field("prompt_length").alias("length")
    unit = rows["extra_info"].struct.field("prompt_length_unit")[0]
    _histogram("length", "Prompt lengths", unit)(axes, lengths.to_frame())


_PICTURES: dict[str, Callable[["Axes", pl.DataFrame], None]] = {
    "clean_posts": _histogram("n_chars", "Lengths of posts", "characters"),
    "clean_dialogues": _histogram("n_rounds", "Rounds a dialogue", "rounds"),
    "unique_posts": _topics,
    "unique_dialogues": _histogram("n_chars", "Lengths of dialogues", "characters"),
    "splits": _splits,
    "sampled_turns": _rounds,
    "grpo_ecot": _prompt_lengths,
    "grpo_coe": _prompt_lengths,
    "grpo_cer": _prompt_lengths,
}
