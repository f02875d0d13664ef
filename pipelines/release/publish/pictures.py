"""The pictures on a card: how long the rows are, and what they are about. The same rows give the same bytes."""

from typing import TYPE_CHECKING

from pipelines.core.plotting import png
from pipelines.release.publish.measures import Measures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LENGTHS, TOPICS = PICTURES = ("pictures/lengths.png", "pictures/topics.png")
_COLOUR = "#4c72b0"
_LINE = "#c44e52"
_SIZE = (7.2, 3.6)
_DPI = 110


def pictures(found: Measures) -> dict[str, bytes]:
    """PNG files by name; none where there is nothing to draw."""
    drawn = {}
    if any(found.lengths.values()):
        drawn[LENGTHS] = png(lambda axes: _lengths(axes, found), _SIZE, _DPI)[0]
    if found.topics:
        drawn[TOPICS] = png(lambda axes: _topics(axes, found), _SIZE, _DPI)[0]
    return drawn


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
