"""How the inner loops are compiled: by numba, once, into files beside the source, free of the interpreter's lock.

Where the source may not be written to, as in a container, the files stand in the home; without one nothing is kept.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import polars as pl
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]
Keys = NDArray[np.uint64]
Slots = NDArray[np.int32]
Places = NDArray[np.int64]
Shares = NDArray[np.float64]

HERE = Path(__file__).parent


def kernel(function: F) -> F:
    """`function`, compiled when first called.

    Kernels are plain loops over arrays. Indices are not checked: the caller has made sure of them
    (`pipelines.core.arrow`).
    """
    return _compiled(function)


def part(function: F) -> F:
    """A part of kernels that allocates nothing, compiled into each of its callers.

    Without numba's counting of references, which would cost an inner loop more than its work.
    """
    return _compiled(function, forceinline=True, _nrt=False)


def by_range(work: Callable[[int, int], T], n: int, least: int) -> list[T]:
    """What `work` gives for each range of rows, begin and end, that 0 … n is divided into: one range a thread.

    As many threads as polars has (POLARS_MAX_THREADS), but several only where each gets `least` rows. Kernels run
    beside each other; each range's work may write to its own rows alone. Rows may be anything that is numbered.
    """
    ranges = max(1, min(pl.thread_pool_size(), n // least))
    bounds = [n * place // ranges for place in range(ranges + 1)]
    if ranges == 1:
        return [work(0, n)]
    with ThreadPoolExecutor(ranges) as pool:
        return list(pool.map(work, bounds[:-1], bounds[1:]))


def _compiled(function: F, **options: bool) -> F:
    config, compiler = cast(Any, numba.config), cast(Any, numba.njit)
    before, folder = config.CACHE_DIR, _folder()
    config.CACHE_DIR = str(folder / f"kernels-{_source_digest()}") if folder else before
    try:
        return cast(F, compiler(cache=folder is not None, nogil=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


@cache
def _folder() -> Path | None:
    """Where compiled kernels are kept: in numba's own setting, beside the source, or in the home."""
    named, home = cast(Any, numba.config).CACHE_DIR, os.environ.get("GONGQING_HOME")
    if named:
        return Path(named)
    if os.access(HERE, os.W_OK):
        return HERE / "__pycache__"
    return Path(home, ".kernels") if home else None


@cache
def _source_digest() -> str:
    """A digest of the sources of all kernels: numba itself looks only at the file of the one that is called."""
    sources = [path.read_bytes() for path in sorted(HERE.parent.rglob("*.py"))]
    return hashlib.sha256(b"".join(source for source in sources if b".kernels import" in source)).hexdigest()[:16]
