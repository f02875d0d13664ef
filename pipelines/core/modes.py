"""File modes: what lies in a home is for its owner alone; what lies elsewhere has the modes of the user's umask."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipelines.core.home import PRIVATE

_OTHERS = 0o077  # all that a group and everybody else may do
_EVERYBODY = 0o007
_ENTERED = 0o011  # a folder that nobody else may enter shields what is in it

_SETTINGS = ("dagster.yaml*", "*.toml")  # one that was not finished, too

_umask: list[int] = []  # the user's, once it is no longer that of this process


def keep_private() -> None:
    """From here on what this process writes, and what those write that it starts, is for its owner alone."""
    if not _umask:
        _umask.append(os.umask(_OTHERS))


def hand_over(path: Path) -> None:
    """Gives a file or a folder that lies outside of a home the mode that it has where the user makes it."""
    if _umask:
        mode = path.stat().st_mode
        kept = mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX)
        path.chmod(kept | ((0o777 if stat.S_ISDIR(mode) else 0o666) & ~_umask[0]))


def close(home: Path) -> None:
    """Closes what everybody may read in a home, as earlier versions left it. What was opened to a group alone is
    shared on purpose, and stays so; a file system that takes no such change is left to `open_to_others`.
    """
    for path in _entries(home):
        with suppress(OSError):
            status = path.stat()
            if status.st_mode & _EVERYBODY and status.st_uid == os.geteuid():
                path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def open_to_others(home: Path) -> dict[Path, int]:
    """How much of each entry of a home others than its owner may read, change or enter: paths, itself included."""
    if not home.is_dir() or not home.stat().st_mode & _OTHERS:
        return {}
    counts = {path: 1 if path == home else sum(1 for _ in _open(path)) for path in _entries(home)}
    return {path: count for path, count in counts.items() if count}


def _open(path: Path) -> Iterator[Path]:
    with suppress(OSError):  # somebody removes it meanwhile, or keeps it from us as well
        mode = path.stat().st_mode
        if mode & _OTHERS:
            yield path
        if stat.S_ISDIR(mode) and mode & _ENTERED:
            for inner in path.iterdir():
                if not inner.is_symlink():
                    yield from _open(inner)


def _entries(home: Path) -> Iterator[Path]:
    """What of a home is ours: its entries by their names, and the folder itself where it is there for nothing else."""
    if not os.access(home, os.R_OK | os.X_OK) or not home.is_dir():
        return
    ours = {path for name in PRIVATE for path in home.glob(name)}
    if not home.stat().st_mode & stat.S_ISVTX:
        known = ours | {path for name in _SETTINGS for path in home.glob(name)}
        if known.issuperset(home.iterdir()):
            yield home
    yield from sorted(ours)
