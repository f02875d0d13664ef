"""PNG files of pictures. The same picture gives the same bytes."""

import io
import logging
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# That its cache stands in a temporary folder, as that of a service does, is no news. A filter holds for the records of
# a logger itself, not for those of the ones below it.
logging.getLogger("matplotlib").addFilter(
    lambda record: not any(words in record.getMessage() for words in ("MPLCONFIGDIR", "mkdir -p"))
)
_CHINESE = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei"),
    *("PingFang SC", "Microsoft YaHei", "SimHei"),
)
_FIRST_CJK = "\u2e80"


def png(draw: Callable[["Axes"], None], size: tuple[float, float], dpi: int) -> tuple[bytes, str]:
    """What `draw` draws on a pair of axes and names by their title: the bytes of the file, and the title.

    `size` is width and height in inches, `dpi` pixels an inch.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # half a second, which no command that draws nothing should pay
    from matplotlib.text import Text

    with rc_context({"font.sans-serif": _fonts()}):
        figure = Figure(figsize=size, dpi=dpi, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        if len(_fonts()) == 1 and any(char >= _FIRST_CJK for one in figure.findobj(Text) for char in one.get_text()):
            _hint_at_fonts()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        file = io.BytesIO()
        figure.savefig(file, format="png", metadata={"Software": None})  # a version of matplotlib would be a new file
        return file.getvalue(), axes.get_title()


@cache
def _hint_at_fonts() -> None:
    """Once, and not for every character."""
    warnings.filterwarnings("ignore", message="Glyph .* missing from")
    logging.getLogger(__name__).warning("pictures show boxes for Chinese: no font here has it (fonts-noto-cjk has)")


@cache
def _fonts() -> list[str]:
    """The font of all pictures, and of those with Chinese characters what this machine has."""
    from matplotlib.font_manager import get_font_names

    here = set(get_font_names())
    return ["DejaVu Sans", *(name for name in _CHINESE if name in here)]
