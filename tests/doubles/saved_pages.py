"""The saved pages: written by us in the sites' own markup, every word invented, each with the record expected of it.

`saved/NAME.html` (or `NAME.page.json`) is the page; `saved/NAME.json` says how it was fetched and what it gives.
"""

import importlib
import json
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from crawlers.pages import guard
from crawlers.records import ListPage, PostPage

FOLDER = Path(__file__).parent / "saved"


@dataclass(frozen=True, slots=True)
class SavedPage:
    name: str
    engine: str
    read: str  # list_page or post_page
    url: str
    fetched_at: datetime
    encoding: str
    gives: dict[str, Any]

    @property
    def is_json(self) -> bool:
        return (FOLDER / f"{self.name}.page.json").exists()

    def bytes(self) -> bytes:
        return (FOLDER / f"{self.name}{'.page.json' if self.is_json else '.html'}").read_bytes()

    def source(self) -> str:
        return self.bytes().decode(self.encoding)

    @property
    def parser(self) -> Callable[..., Any]:
        return getattr(importlib.import_module(f"crawlers.pages.{self.engine}"), self.read)

    def parse(self, source: str) -> Any:
        """What the page gives when it holds `source` instead."""
        anchors = getattr(importlib.import_module(f"crawlers.pages.{self.engine}"), "ANSWERS", None)
        body = json.loads(source) if self.is_json else guard.read_html(source, anchors)
        return self.parser(body, self.url, self.fetched_at)


def saved_pages() -> list[SavedPage]:
    return [page_named(path.stem) for path in sorted(FOLDER.glob("*.json")) if not path.match("*.page.json")]


def page_named(name: str) -> SavedPage:
    page = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    record = ListPage if page["read"] == "list_page" else PostPage
    unsaid = {one.name: one.default for one in fields(record) if one.default is not MISSING}
    at = datetime.fromisoformat(page["fetched_at"])
    return SavedPage(name, **{**page, "fetched_at": at, "gives": {**unsaid, **page["gives"]}})


def changed(name: str, old: str, new: str) -> Any:
    """What a saved page gives with `old` replaced."""
    page = page_named(name)
    assert old in page.source()
    return page.parse(page.source().replace(old, new))


def plain(record: Any) -> Any:
    """A record as JSON has it: times as texts in UTC."""
    return json.loads(json.dumps(asdict(record), default=datetime.isoformat))
