"""The pictures on a card: how long the rows are, and what they are about. The same rows give the same bytes."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.release.measures import Measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTHS, TOPICS = PICTURES = ("pictures/lengths.png", "pictures/topics.png")
_COLOUR = "#4c72b0"
_LINE = "#c44e52"


def pictures(found: Measures) -> dict[str, bytes]:
    """PNG files by name; none where there is nothing to draw."""
    drawn = {}
    if any(found.lengths.values()):
        drawn[LENGTHS] = _png(lambda axes: _lengths(axes, found))
    if found.topics:
        drawn[TOPICS] = _png(lambda axes: _topics(axes, found))
    return drawn


def _png(draw: Callable[["Axes"], None]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})  # a version of matplotlib would be a new file
    return png.getvalue()


def _lengths(axes: "Axes", found: Measures) -> None:
    """A box a config: quartiles, and the longest and shortest within 1.5 boxes."""
    configs = [config for config, lengths in found.lengths.items() if lengths][::-1]
    axes.boxplot(
        [found.lengths[config] for config in configs],
        orientation="horizontal",
        tick_labels=configs,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": _COLOUR, "alpha": 0.6},
        medianprops={"color": _LINE},
    )
    axes.set(title="Lengths of rows", xlabel="characters", xlim=(0, None))


def _topics(axes: "Axes", found: Measures) -> None:
    names, counts = zip(*reversed(found.topics.most_common()), strict=True)
    axes.bar_label(axes.barh(names, counts, color=_COLOUR))
    axes.set(title="Prompts by primary category (M Table 1)", xlabel="rows of the prompt sets")
