"""How the inner loops are compiled: by numba, once, into files beside the source, free of the interpreter's lock."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

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


def _compiled(function: F, **options: bool) -> F:
    config, compiler = cast(Any, numba.config), cast(Any, numba.njit)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(Path(before or HERE / "__pycache__") / f"kernels-{_source_digest()}")
    try:
        return cast(F, compiler(cache=True, nogil=True, error_model="numpy", **options)(function))
    finally:
        config.CACHE_DIR = before


@cache
def _source_digest() -> str:
    """A digest of the sources of all kernels: numba itself looks only at the file of the one that is called."""
    sources = [path.read_bytes() for path in sorted(HERE.parent.rglob("*.py"))]
    return hashlib.sha256(b"".join(source for source in sources if b".kernels import" in source)).hexdigest()[:16]
