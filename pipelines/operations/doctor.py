"""Is this machine, this home and every version in it sound?"""

import importlib.metadata
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from pipelines import settings
from pipelines.core.dagster_state import require_state_in
from pipelines.core.home import Home
from pipelines.core.modes import open_to_others
from pipelines.errors import Busy, GongqingError, OlderSchema, SettingsError, StorageUnreachable
from pipelines.settings import author_key
from pipelines.store.store import Store
from pipelines.store.suppression import require_no_erasure
from schemas.tables import TABLES

LITTLE_ROOM = 2e9  # bytes
_FEW = 3  # paths, or things, that are named


class Finding(NamedTuple):
    """One thing looked at."""

    what: str
    state: Literal["ok", "warning", "broken"]
    detail: str


def examine(home: Path) -> Iterator[Finding]:
    """Look at Python, the pins, the home and who may read it, its settings and Dagster's, the author key, the ledger,
    and every version.
    """
    yield Finding("Python", "ok" if sys.version_info >= (3, 11) else "broken", sys.version.split()[0])
    yield _pins()
    yield _home(home)
    yield _permissions(home)
    yield _settings(home)
    yield _dagster(home)
    yield _author_key(home)
    try:
        require_no_erasure(home)
    except Busy as error:
        yield Finding("erasures", "broken", str(error))
    yield from _ledger(home)
    try:
        yield from _versions(Store(Home(home).data))
    except (SettingsError, StorageUnreachable) as error:
        yield Finding("storage", "broken", str(error))


def verdict(findings: Iterable[Finding]) -> str:
    """All findings in a line: how many things are to mend, or that nothing is, and which warnings there are."""
    by_state: dict[str, list[str]] = {"ok": [], "warning": [], "broken": []}
    for finding in findings:
        by_state[finding.state].append(finding.what)
    if broken := by_state["broken"]:
        line = f"{len(broken):,} thing{'' if len(broken) == 1 else 's'} to mend: {_named(broken)}"
    else:
        sound = len(by_state["ok"])
        line = f"ready: {sound:,} thing{' is' if sound == 1 else 's are'} sound"
    if warnings := by_state["warning"]:
        line += f"; {len(warnings):,} warning{'' if len(warnings) == 1 else 's'}: {_named(warnings)}"
    return line


def _named(names: list[str]) -> str:
    """Each once, the first few of them."""
    each = list(dict.fromkeys(names))
    return ", ".join(each[:_FEW]) + (", …" if len(each) > _FEW else "")


def _author_key(home: Path) -> Finding:
    key, what = author_key(home), "too short: 16 bytes or more are needed"
    if not key:
        what = "none: sets with authors cannot be imported (GONGQING_AUTHOR_KEY, or author.key in the home)"
    return Finding("author key", "ok", "set") if len(key or b"") >= 16 else Finding("author key", "warning", what)


def _pins() -> Finding:
    """Whether what is installed is what requirements/base.txt pins."""
    wrong = []
    for line in (settings.ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").splitlines():
        pin = re.fullmatch(r"([A-Za-z0-9._-]+)==([^ ;]+)", line.strip())  # pins with a marker are for some Pythons only
        if pin is None:
            continue
        try:
            installed = importlib.metadata.version(pin[1])
        except importlib.metadata.PackageNotFoundError:
            installed = "not installed"
        if installed != pin[2]:
            wrong.append(f"{pin[1]} {installed}, pinned {pin[2]}")
    return Finding("pins", "warning" if wrong else "ok", "; ".join(wrong) or "installed as pinned")


def _home(home: Path) -> Finding:
    if not home.is_dir():
        return Finding("home", "warning", f"{home} is not there yet; the first import makes it")
    if not os.access(home, os.W_OK):
        return Finding("home", "broken", f"{home} cannot be written to")
    free = shutil.disk_usage(home).free
    return Finding("home", "warning" if free < LITTLE_ROOM else "ok", f"{home}, {free / 1e9:.1f} GB free")


def _permissions(home: Path) -> Finding:
    """What in the home another user of this machine may read, change or enter."""
    counts = open_to_others(home)
    if not counts:
        return Finding("permissions", "ok", "what lies in the home is for you alone")
    paths = [shlex.quote(str(path)) for path in counts]
    named = ", ".join(paths[:_FEW]) + (", …" if len(paths) > _FEW else "")
    count = sum(counts.values())
    what = f"others may read {count:,} path{'' if count == 1 else 's'} in {named}"
    return Finding("permissions", "warning", f"{what}; to close them: chmod -R go= {' '.join(paths)}")


def _settings(home: Path) -> Finding:
    try:
        settings.load(home)
    except SettingsError as error:
        return Finding("settings", "broken", str(error))
    return Finding("settings", "ok", "gongqing.toml" if settings.settings_file(home).exists() else "the defaults")


def _dagster(home: Path) -> Finding:
    path = Home(home).dagster_yaml
    if not path.exists():
        return Finding("dagster.yaml", "warning", f"none in {home} yet; the first command that runs assets writes it")
    try:
        require_state_in(Home(home))
    except SettingsError as error:
        return Finding("dagster.yaml", "broken", str(error))
    return Finding("dagster.yaml", "ok", str(path))


def _ledger(home: Path) -> Iterator[Finding]:
    """Read the whole ledger, where a model was ever asked; to look makes none."""
    from pipelines.llm.ledger.ledger import Ledger

    path = Home(home).ledger
    if not path.exists():
        return
    try:
        with Ledger(path) as ledger:
            ledger.check()
    except GongqingError as error:
        yield Finding("ledger", "broken", str(error))
    else:
        yield Finding("ledger", "ok", f"{path}, read whole")


def _versions(store: Store) -> Iterator[Finding]:
    """Read every version of every table again, and compare it with its manifest and its name."""
    for table in TABLES:
        for place in store.places(table):
            name = table if place is None else f"{table}/{place}"
            ids = store.version_ids(table, place)
            errors: list[GongqingError] = []
            with _noted(errors):
                pointer = store.pointer(table, place)
            for one in ids:
                with _noted(errors):
                    store.verify(store.version(table, one, place))
            if ids and not errors and pointer is not None:
                with _noted(errors):
                    store.require_todays(store.version(table, partition=place))
            for error in errors:
                yield Finding(name, "warning" if isinstance(error, OlderSchema) else "broken", str(error))
            if ids and not errors:
                yield Finding(name, "ok", f"{len(ids)} version{'s' if len(ids) > 1 else ''}, read and compared")


@contextmanager
def _noted(errors: list[GongqingError]) -> Iterator[None]:
    try:
        yield
    except GongqingError as error:
        errors.append(error)
