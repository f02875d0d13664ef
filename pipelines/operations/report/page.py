"""Writes the report of a home as one HTML file, in English or Chinese."""

import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.core.page import render_page
from pipelines.errors import RequestError, UnknownName
from pipelines.operations.report.sections import sections
from pipelines.train.processes import no_erasure

Lang = Literal["en", "zh"]
_HERE = Path(__file__).parent


def write_report(home: Path, *, release: str | None = None, lang: str = "en", file: Path | None = None) -> Path:
    """Writes the report of a home, of its current release or another; where it is: `report-LANG.html` of the home, or
    `file`.

    It shows what people wrote: it is for those who may read the home. Raises UnknownName for a release or a language
    that there is not, RequestError where there is nothing to report, Busy during an erasure.
    """
    if lang not in get_args(Lang):
        raise UnknownName("language", lang, get_args(Lang))
    words: dict[str, Any] = tomllib.loads((_HERE / "words.toml").read_text(encoding="utf-8"))[lang]
    path = file or Home(home).folder / f"report-{lang}.html"
    with no_erasure(home):  # or what is erased meanwhile would stand on a page that is written behind it
        shown = [one for one in sections(home, release) if not one.empty]
        if not shown:
            hint = "gongqing import NAME PATH, or gongqing demo"
            raise RequestError("there is nothing to report", where=home, hint=hint)
        html = render_page(_HERE / "page.html.j2", words["title"], lang=lang, words=words, sections=shown, cell=_cell)
        write_whole(path, html)
    return path


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
