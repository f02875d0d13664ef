"""The lock of a home: one refresh, release or erasure at a time."""

import contextlib
import datetime as dt
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from pipelines.core.files import held
from pipelines.errors import Busy
from pipelines.store.suppression import require_no_erasure


@contextlib.contextmanager
def alone(home: Path, *, finishing: bool = False) -> Iterator[None]:
    """Hold the home's refresh lock, with a note of who does.

    Raises Busy where another refresh is at work, or an erasure is unfinished, unless this is who finishes it.
    """
    path = home / "refresh.lock"
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(held(path, wait=False))
        except BlockingIOError as error:
            holder = json.loads(path.read_text(encoding="utf-8") or "{}")
            raise Busy(
                f"a refresh, a release or an erasure is at work: process {holder.get('pid')} on {holder.get('host')}, "
                f"since {holder.get('since')}",
                where=path,
                remedy="wait for it, or end that process",
            ) from error
        lock.truncate(0)
        since = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        lock.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        lock.flush()
        if not finishing:
            require_no_erasure(home)
        yield
