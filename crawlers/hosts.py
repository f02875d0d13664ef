"""One crawl a host at a time, whoever started it: a site counts what comes from this machine, not from one process."""

import fcntl
import os
import re
import tempfile
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from crawlers.errors import CrawlError


def take_turn(base_url: str) -> IO[str]:
    """The lock of the host and port of `base_url`; held until the file is closed or the process ends, however it ends.

    Raises:
        CrawlError: for a host that another process crawls, and where there is no room for locks of ours alone.
    """
    parts = urlsplit(base_url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    path = _room() / f"{re.sub(r'[^a-z0-9.-]', '_', parts.hostname or '')}_{port}.lock"
    file = taken(path)
    if file is None:
        raise CrawlError(
            f"another crawl is asking {parts.netloc}: process {path.read_text('ascii') or 'unknown'}",
            where=path,
            hint="wait until it has ended: a host is asked by one crawl at a time",
        )
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def taken(lock: Path) -> IO[str] | None:
    """The open file of a lock, held until it is closed or the process ends; None where another process holds it."""
    file = lock.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _room() -> Path:
    """The folder of this user's locks, the same for a terminal and for a service, which has no folder of a session."""
    room = Path(tempfile.gettempdir()) / f"gongqing-{os.getuid()}"
    try:
        room.mkdir(mode=0o700, exist_ok=True)
        found = room.lstat()
    except OSError as error:
        raise CrawlError(
            f"no folder for the locks of hosts: {error.strerror}", where=room, hint="set TMPDIR to one that is yours"
        ) from None
    # What stands in a folder of all users may be another's, or a link elsewhere.
    if found.st_uid != os.getuid() or room.is_symlink():
        raise CrawlError(
            "the folder for the locks of hosts is not ours", where=room, hint="remove it, or set TMPDIR elsewhere"
        )
    return room
