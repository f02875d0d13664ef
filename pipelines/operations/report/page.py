"""Writes the report of a home as one HTML file, in English or Chinese."""

import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pipelines.core.files import write_whole
from pipelines.core.home import Home
from pipelines.core.page import render_page
from pipelines.errors import LedgerError, RequestError, StoreError, UnknownName
from pipelines.operations.report import figures, samples
from pipelines.operations.report.section import Reasons, Section
from pipelines.release.publish.words import word
from pipelines.settings import storage_url
from pipelines.store.release_manifest import Release
from pipelines.store.releases import Releases
from pipelines.store.store import Store
from pipelines.train.processes import no_erasure
from schemas.reasoning import Lang

_HERE = Path(__file__).parent
# What turns a line around or takes no room would hide what somebody wrote. Emoji are joined by U+200D: it stays.
_UNSEEN = {
    code: f"⟨U+{code:04X}⟩"
    for code in (0x200B, 0x200C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF)
}


def write_report(home: Path, *, release: str | None = None, lang: str = "en", file: Path | None = None) -> Path:
    """Writes the report of a home, of its current release or another; where it is: `report-LANG.html` of the home, or
    `file`.

    It shows what people wrote: it is for those who may read the home. Raises UnknownName for a release or a language
    that there is not, RequestError where there is nothing to report, Busy during an erasure.
    """
    if lang not in get_args(Lang):
        raise UnknownName("language", lang, get_args(Lang))
    if not Home(home).data.is_dir() and storage_url(home) is None:
        raise _nothing(home)
    words: dict[str, Any] = tomllib.loads((_HERE / "words.toml").read_text(encoding="utf-8"))[lang]
    path = file or Home(home).folder / f"report-{lang}.html"
    if path.is_dir() or not path.parent.is_dir():
        problem = "a folder" if path.is_dir() else "in a folder that there is not"
        raise RequestError(f"the report cannot be written: its place is {problem}", where=path, hint="name a file")
    with no_erasure(home):  # or what is erased meanwhile would stand on a page that is written behind it
        shown = [one for one in sections(home, release) if not one.empty]
        if not shown:
            raise _nothing(home)
        of = f" --release {release}" if release else ""
        values = {"words": words, "sections": shown, "cell": partial(cell, lang=lang), "visible": _visible, "of": of}
        html = render_page(_HERE / "page.html.j2", words["title"], lang=lang, **values)
        write_whole(path, html)
    return path


def sections(home: Path, release: str | None = None, key: str | None = None) -> Iterator[Section]:
    """All sections, or one, some with nothing to show; of a release, by default the current one, where there is one.

    Of a release are its own section, what changed, and the papers' tables; all else is of the home as it is. A section
    that cannot be made says why, and the others stand. Raises UnknownName for another release or section.
    """
    store, releases = Store(Home(home).data), Releases(home)
    made = releases.current() if release is None else releases.read(release)
    makers: dict[str, Callable[[], Section]] = {
        "release": lambda: figures.of_release(made) if made else Section("release"),
        "funnel": partial(figures.funnel, home, made),
        "sets": partial(figures.sets, store),
        "cleaned": partial(samples.cleaned, store),
        "dropped": partial(samples.dropped, store),
        "merged": partial(samples.merged, store),
        "days": partial(figures.days, store),
        "personal": partial(figures.personal, store),
        "papers": partial(figures.papers, store, made if release is not None else None),
        "models": partial(figures.models, home),
        "people": partial(figures.people, store),
        "changes": lambda: _since(home, releases, made),
        "walked": partial(samples.walked, store),
    }
    if key is not None and key not in makers:
        raise UnknownName("section", key, makers)
    for name in makers if key is None else [key]:
        try:
            yield makers[name]()
        except (StoreError, LedgerError) as error:
            yield Section(name, "gongqing doctor", problem=error.what)


def _since(home: Path, releases: Releases, made: Release | None) -> Section:
    before = _before(releases, made.name) if made else None
    return figures.since(home, before, made.name) if made and before else Section("changes")


def _before(releases: Releases, name: str) -> str | None:
    names = releases.names()
    place = names.index(name)
    return names[place - 1] if place else None


def _nothing(home: Path) -> RequestError:
    hint = "gongqing import NAME PATH, or gongqing demo"
    return RequestError("there is nothing to report", where=home, hint=hint)


def cell(value: object, lang: str = "en") -> str:
    """A value as the page writes it: reasons by their codes, which commands take, in Chinese in words as well."""
    if value is None:
        return "–"
    if isinstance(value, Reasons):
        if lang == "zh":
            return "、".join(f"{word('reasons', one, 'zh')}（{one}）{n:,}" for one, n in value)
        return ", ".join(f"{one} {n:,}" for one, n in value)
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _visible(text: str) -> str:
    return text.translate(_UNSEEN)
