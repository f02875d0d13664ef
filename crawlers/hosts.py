"""One crawl a host at a time on this machine: a site counts the requests of all its processes."""

import fcntl
import os
import re
import tempfile
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from crawlers.errors import CrawlError


def lock_host(base_url: str) -> IO[str]:
    """The lock of the host and port of `base_url`; held until the file is closed or the process ends, however it ends.

    Raises:
        CrawlError: for a host that another process crawls, and where there is no folder for locks of ours alone.
    """
    parts = urlsplit(base_url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    path = _lock_folder() / f"{re.sub(r'[^a-z0-9.-]', '_', parts.hostname or '')}_{port}.lock"
    file = try_lock(path)
    if file is None:
        raise CrawlError(
            f"another crawl is fetching from {parts.netloc}: process {path.read_text('ascii') or 'unknown'}",
            where=path,
            hint="wait until it has ended: one crawl a host at a time",
        )
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def try_lock(lock: Path) -> IO[str] | None:
    """The open file of a lock, held until it is closed or the process ends; None where another process holds it."""
    file = lock.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _lock_folder() -> Path:
    """The folder of this user's locks, the same for a terminal and for a service, which has no folder of a session."""
    folder = Path(tempfile.gettempdir()) / f"gongqing-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise CrawlError(
            f"no folder for the locks of hosts: {error.strerror}", where=folder, hint="set TMPDIR to one that is yours"
        ) from None
    # What stands in a folder of all users may be another's, or a link elsewhere.
    if status.st_uid != os.getuid() or folder.is_symlink():
        raise CrawlError(
            "the folder for the locks of hosts is not ours", where=folder, hint="remove it, or set TMPDIR elsewhere"
        )
    return folder
