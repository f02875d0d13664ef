"""The errors of a crawl.

CrawlError           exit 1: the crawl failed, or its folder is not as it should be
└── RequestRefused   exit 2: the request was wrong, nothing was fetched
"""

import difflib
from collections.abc import Iterable


class CrawlError(Exception):
    """Base of all; `str()` gives what happened, where, and the hint, never a text of a page."""

    exit_code = 1

    def __init__(self, what: str, *, where: object = None, hint: str = "") -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.what}\n  where: {self.where}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class RequestRefused(CrawlError):
    """Raised before anything is fetched: an unknown site, a window that can not be, no key, no contact."""

    exit_code = 2


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name outside a closed set: the nearest one, and all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}known: {', '.join(known) or 'none'}"
