"""Who makes tables, releases or erases: nobody else does meanwhile, in the same home."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.core.home import Home
from pipelines.store.suppression import require_no_erasure


@contextmanager
def alone(home: Path, *, finishing: bool = False, waits: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the home's refresh lock (`Home.refreshing`).

    Raises Busy where another process is at work and this one does not wait, or an erasure is unfinished, unless this is
    who finishes it.
    """
    with Home(home).refreshing(waits):
        if not finishing:
            require_no_erasure(home)
        yield
