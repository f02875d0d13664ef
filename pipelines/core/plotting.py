"""PNG files of pictures. The same picture gives the same bytes."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def png(draw: Callable[["Axes"], None], size: tuple[float, float], dpi: int) -> tuple[bytes, str]:
    """What `draw` draws on a pair of axes and names by their title: the bytes of the file, and the title.

    `size` is width and height in inches, `dpi` pixels an inch.
    """
    from matplotlib.figure import Figure  # half a second, which no command that draws nothing should pay

    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})  # a version of matplotlib would be a new file
    return file.getvalue(), axes.get_title()
