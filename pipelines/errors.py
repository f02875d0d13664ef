"""Every error that a person may meet, each saying what, where, and what to do.

GongqingError                exit 1: the work failed
├── RequestError             exit 2: the request was wrong
│   ├── SettingsError        a setting that does not exist or cannot be
│   ├── UnknownName          a table, data set, version, split … that does not exist
│   └── UnreadableFile       a file that is not there or not what it was said to be
├── StoreError               reading or writing a version failed
│   ├── NoVersion            a table that has no version yet
│   ├── DamagedVersion       files that do not match their manifest
│   ├── InvalidRows          rows that break their table's schema
│   └── StorageFull          no room left on the device
├── CrawlFailed              a crawl that was blocked, broken off, or failed
├── Unaccounted              a step whose rows in are not its rows kept and dropped
└── Busy                     another process holds what is needed
"""

import difflib
from collections.abc import Iterable


class GongqingError(Exception):
    """Base of all; `str()` gives what happened, where, and the remedy."""

    exit_code = 1

    def __init__(self, what: str, *, where: object = None, remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.what}\n  where: {self.where}"
        return f"{text}\n  remedy: {self.remedy}" if self.remedy else text


class RequestError(GongqingError):
    """Raised by the command line and the public calls for a request that cannot be carried out as asked."""

    exit_code = 2


class SettingsError(RequestError):
    """Raised by `pipelines.settings` for an unknown key or an impossible value."""


class UnknownName(RequestError):
    """Raised wherever a name is looked up in a closed set; names the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, remedy: str = "") -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        listed = ", ".join(known) if known else "none"
        super().__init__(f"there is no {kind} {name!r}", remedy=remedy or f"{hint}known: {listed}")


class UnreadableFile(RequestError):
    """Raised by `pipelines.ingest` for a file that is missing, empty, or in no known encoding or form."""


class StoreError(GongqingError):
    """Base of what `pipelines.store` raises."""


class NoVersion(StoreError):
    """Raised by `Store` when a table (or partition) is read that was never written."""


class DamagedVersion(StoreError):
    """Raised by `Store` when a file of a version is missing, cut short, or not what its manifest says."""


class InvalidRows(StoreError):
    """Raised by `Store.write` for rows that break their table's schema: nothing is written."""


class StorageFull(StoreError):
    """Raised by `Store.write` when the device is full: the pointer has not moved, and no scratch is left."""


class CrawlFailed(GongqingError):
    """Raised by `pipelines.crawl` for a crawl that did not come to its end."""


class Unaccounted(GongqingError):
    """Raised by `pipelines.accounts` when rows in are not rows kept and rows dropped."""


class Busy(GongqingError):
    """Raised by `pipelines.refresh` when another refresh is at work; says who holds the lock."""
